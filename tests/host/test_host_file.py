"""host.json: who may have written it, who is alive, and whose it is when it is removed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.host import (
    HostControlServer,
    HostFile,
    HostProblem,
    HostUnavailable,
    default_home,
    read_host_file,
)
from tabwarden_adapters.host.host_file import parse_host_file, process_started

from tests.host.support import FakeHost, ask, private_home, serving

TOKEN = "ab" * 32


def write(home: Path, **changed: Any) -> Path:
    """A host.json of this living process, with changes; None removes a field."""
    fields: dict[str, Any] = {"cdpPort": 9222, "controlPort": 1, "token": TOKEN, "pid": os.getpid()}
    fields = {name: value for name, value in (fields | changed).items() if value is not None}
    file = home / "host.json"
    file.write_text(json.dumps(fields))
    file.chmod(0o600)
    return file


def problem_of(home: Path) -> HostProblem:
    with pytest.raises(HostUnavailable) as caught:
        read_host_file(home)
    assert TOKEN not in str(caught.value) + repr(caught.value)
    return caught.value.problem


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_wb_home_or_the_references_folder() -> None:
    assert default_home({"WB_HOME": "/somewhere"}) == Path("/somewhere")
    assert default_home({}) == Path.home() / ".whittlebrowser"
    assert default_home({"WB_HOME": ""}) == Path.home() / ".whittlebrowser"
    with pytest.raises(ConfigurationError, match="WB_HOME"):
        default_home({"WB_HOME": "relative"})


def test_a_file_of_another_host_is_read(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    write(home, later="ignored", host="127.0.0.1")
    file = read_host_file(home)
    assert (file.cdp_port, file.control_port, file.token, file.pid) == (9222, 1, TOKEN, os.getpid())
    assert file.started_ticks is None
    assert file.alive
    assert TOKEN not in repr(file)


def _link(home: Path) -> None:
    (home / "real").write_bytes((home / "host.json").read_bytes())
    (home / "real").chmod(0o600)
    (home / "host.json").unlink()
    (home / "host.json").symlink_to("real")


def _fifo(home: Path) -> None:
    (home / "host.json").unlink()
    os.mkfifo(home / "host.json", 0o600)


def _folder(home: Path) -> None:
    (home / "host.json").unlink()
    (home / "host.json").mkdir()


def _foreign(home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to give a file away")
    os.chown(home / "host.json", 65534, -1)


def _foreign_folder(home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to give a folder away")
    os.chown(home, 65534, -1)


def _linked_folder(home: Path) -> None:
    home.rename(home.parent / "elsewhere")
    home.symlink_to("elsewhere")


SPOILED: dict[str, Callable[[Path], object]] = {
    "readable by the group": lambda home: (home / "host.json").chmod(0o640),
    "readable by others": lambda home: (home / "host.json").chmod(0o604),
    "writable by others": lambda home: (home / "host.json").chmod(0o602),
    "symbolic link": _link,
    "hard link": lambda home: os.link(home / "host.json", home / "other"),
    "FIFO": _fifo,
    "folder": _folder,
    "another user's": _foreign,
    "folder open to others": lambda home: home.chmod(0o755),
    "another user's folder": _foreign_folder,
    "folder is a link": _linked_folder,
}


@pytest.mark.parametrize("how", SPOILED)
async def test_a_file_that_others_could_have_touched_is_refused_by_both_sides(
    tmp_path: Path, how: str
) -> None:
    home = private_home(tmp_path)
    write(home)
    SPOILED[how](home)
    assert problem_of(home) is HostProblem.FILE_REFUSED
    async with trio.open_nursery() as nursery:
        with pytest.raises(ConfigurationError) as caught:
            async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=home):
                pass
        assert TOKEN not in str(caught.value)
    assert [entry.name for entry in home.iterdir()].count("host.json") == 1


def test_no_file_and_no_folder(tmp_path: Path) -> None:
    assert problem_of(tmp_path / "nowhere") is HostProblem.NO_FILE
    assert problem_of(private_home(tmp_path)) is HostProblem.NO_FILE


MALFORMED: list[dict[str, Any]] = [
    {"cdpPort": 0}, {"cdpPort": 65536}, {"cdpPort": "9222"}, {"cdpPort": 9222.5}, {"cdpPort": True},
    {"cdpPort": None},
    {"controlPort": -1}, {"controlPort": "evil.test:80"}, {"controlPort": None},
    {"token": ""}, {"token": "ab"}, {"token": "x" * 64}, {"token": TOKEN + "\r\nX: y"},
    {"token": TOKEN + "\n"},
    {"token": "ab" * 200}, {"token": 5}, {"token": None},
    {"pid": 0}, {"pid": -1}, {"pid": 2**40}, {"pid": "1"}, {"pid": None},
    {"startedTicks": "x"}, {"startedTicks": -1},
    {"more": "x" * 5000},
]  # fmt: skip


def test_a_malformed_file_is_refused_whole(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    for changed in MALFORMED:
        write(home, **changed)
        assert problem_of(home) is HostProblem.FILE_MALFORMED, changed
    for data in (b"", b"{}", b"[]", b"null", b"\xff", b'{"pid": 1, "pid": 2}', b"[" * 4000, b"x" * 5000):
        with pytest.raises(HostUnavailable) as caught:
            parse_host_file(data)
        assert caught.value.problem is HostProblem.FILE_MALFORMED


@pytest.mark.parametrize("name", ["host", "address", "controlHost", "cdpHost"])
@pytest.mark.parametrize("value", ["10.0.0.1", "localhost", "192.168.0.1", "::1", "evil.test", "", 1])
def test_a_file_that_names_another_address_is_refused(tmp_path: Path, name: str, value: object) -> None:
    home = private_home(tmp_path)
    write(home, **{name: value})
    assert problem_of(home) is HostProblem.NOT_LOOPBACK


def test_a_dead_or_reused_process_id_is_no_host(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    write(home, pid=dead_pid())
    assert not read_host_file(home).alive
    started = process_started(os.getpid())
    if started is None:
        pytest.skip("the system does not tell when a process began")
    write(home, startedTicks=started)
    assert read_host_file(home).alive
    write(home, startedTicks=started - 1)
    assert not read_host_file(home).alive


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to start another user's process")
def test_a_process_that_may_not_be_signalled_is_no_host() -> None:
    ours = HostFile(1, 1, TOKEN, os.getpid())
    assert ours.alive
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        os._exit(7 if not ours.alive else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


async def test_a_second_host_is_told_of_the_first(tmp_path: Path) -> None:
    async with serving(tmp_path) as first, trio.open_nursery() as nursery:
        with pytest.raises(ConfigurationError, match=r"a host is running already \(process \d+\)"):
            async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=tmp_path / "home"):
                pass
        assert not nursery.child_tasks
        assert read_host_file(tmp_path / "home").token == first.token
        assert (await ask(first, "GET", "/excluded-targets"))[0] == 200


async def test_of_two_hosts_that_start_at_once_one_starts(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    started: list[HostControlServer] = []
    refused: list[str] = []
    settled = trio.Event()

    async def start() -> None:
        try:
            async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=home) as server:
                started.append(server)
                await settled.wait()
        except ConfigurationError as error:
            refused.append(str(error))
            settled.set()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(start)
            nursery.start_soon(start)
            await settled.wait()
            assert len(started) == 1
            assert refused == [f"a host is running already (process {os.getpid()}): close it first"]
    assert not (home / "host.json").exists()


async def test_stale_files_are_replaced(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    with trio.socket.socket() as unused:
        await unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]  # bound, and nobody listens
        for changed in ({"pid": dead_pid()}, {"startedTicks": 1}, {"controlPort": port}, {"token": "x"}):
            write(home, **({"controlPort": port} | changed))
            async with serving(tmp_path) as server:
                assert read_host_file(home).token == server.token


async def test_a_stale_file_whose_port_another_host_has_now_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with serving(tmp_path / "other") as other:
        home = private_home(tmp_path)
        write(home, controlPort=int(other.address.partition(":")[2]))
        async with serving(tmp_path) as server:
            assert read_host_file(home).token == server.token


async def test_only_our_own_file_is_removed(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    async with trio.open_nursery() as nursery:
        async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=home):
            theirs = write(home)
        assert theirs.exists()
        theirs.unlink()
        async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=home):
            theirs.unlink()
        async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=home):
            home.chmod(0o755)  # by now anybody may have been there
        assert theirs.exists()


async def test_what_is_written_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = private_home(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "full")

    async with trio.open_nursery() as nursery:
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(ConfigurationError, match=r"cannot write host\.json"):
            async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=home):
                pass
        monkeypatch.undo()
    assert [entry.name for entry in home.iterdir()] in ([], ["host.lock"])


async def test_arguments_that_cannot_be(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    async with trio.open_nursery() as nursery:
        for changed in ({"cdp_port": 0}, {"cdp_port": 65536}, {"port": -1}, {"port": 65536}):
            with pytest.raises(ConfigurationError, match="port"):
                HostControlServer(nursery, FakeHost(), **({"cdp_port": 1, "home": home} | changed))  # type: ignore[arg-type]
        async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=home) as server:
            port = int(server.address.partition(":")[2])
            with pytest.raises(ConfigurationError, match="cannot listen"):
                async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=home, port=port):
                    pass
            with pytest.raises(RuntimeError, match="once"):
                await server.__aenter__()
    for ours in (HostFile(1, 2, TOKEN, 3), HostFile(65535, 65535, TOKEN, 2**22, 2**40)):
        assert parse_host_file(ours.encode()) == ours
