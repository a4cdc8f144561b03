"""A host in a process of its own that is killed while an engine waits."""

import subprocess
import sys
from pathlib import Path

import trio
from tabwarden_adapters.host import Answer, ApprovalKind, HostPolicy, HostProblem, SiteMode

from tests.host.support import private_home, serving

HOST = """
import pathlib, sys, trio
from tabwarden_adapters.host import HostControlServer

class Host:
    async def site_mode(self, origin):
        return "allowed"
    async def approve(self, request):
        print("asked", flush=True)
        await trio.sleep_forever()

async def main():
    async with trio.open_nursery() as nursery:
        async with HostControlServer(nursery, Host(), cdp_port=1, home=pathlib.Path(sys.argv[1])):
            print("ready", flush=True)
            await trio.sleep_forever()

trio.run(main)
"""


async def test_when_the_host_is_killed_everything_is_off_and_its_file_is_stale(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    command = [sys.executable, "-c", HOST, str(home)]
    answers: list[Answer] = []
    policy = HostPolicy(home)

    async def ask() -> None:
        answers.append(await policy.approve(ApprovalKind.SITE, "https://shop.test", "x"))

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert await trio.to_thread.run_sync(process.stdout.readline) == "ready\n"
            assert await policy.site_mode("https://shop.test") is SiteMode.ALLOWED
            with trio.fail_after(30):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(ask)
                    assert await trio.to_thread.run_sync(process.stdout.readline) == "asked\n"
                    process.kill()
        finally:
            process.kill()
    assert answers == [Answer.NO]
    # The file is still there; nobody believes it, and the next host takes its place.
    assert (home / "host.json").exists()
    assert await policy.site_mode("https://shop.test") is SiteMode.OFF
    assert policy.problem is HostProblem.DEAD
    async with serving(tmp_path):
        assert await policy.site_mode("https://shop.test") is SiteMode.OFF
        assert policy.problem is HostProblem.CHANGED
        assert await HostPolicy(home).allowed_sensitive_hosts() == frozenset()
