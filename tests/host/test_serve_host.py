"""`tabwarden serve --host` where it cannot begin: each says what to do."""

from pathlib import Path

import trio

from tests.cli.running import tabwarden
from tests.host.support import private_home, serving


def refused(tmp_path: Path, *arguments: str) -> str:
    files = ("--connection", str(tmp_path / "connection.json"), "--audit", str(tmp_path / "audit"))
    home = ("--host", "--host-home", str(tmp_path / "home"), "--protector", "key-file")
    done = tabwarden(tmp_path, "serve", *home, *files, "--approver", "none", *arguments)
    assert done.status == 1
    assert done.failure["code"] == "configuration"
    message: str = done.failure["message"]
    return message


def test_there_is_no_host(tmp_path: Path) -> None:
    private_home(tmp_path)
    assert "no host.json: is the host running?" in refused(tmp_path)


def test_a_hosts_browser_is_shared_and_runs_already(tmp_path: Path) -> None:
    assert "leave out one of the two" in refused(tmp_path, "--headless")
    (tmp_path / "serve.toml").write_text('browser_context = "isolated"\n')
    assert "say shared" in refused(tmp_path, "--config", str(tmp_path / "serve.toml"))


async def test_there_is_a_host_without_its_browser(tmp_path: Path) -> None:
    with trio.socket.socket() as unused:
        await unused.bind(("127.0.0.1", 0))
        async with serving(tmp_path, cdp_port=unused.getsockname()[1], leftovers=True):
            message = await trio.to_thread.run_sync(refused, tmp_path)
    assert "is it running, with remote debugging?" in message
