"""The one host that an engine is attached to, and the first sign that it has gone."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from tabwarden_adapters.host import HostFile, HostLink, HostProblem, HostUnavailable, attach_host
from tabwarden_adapters.host.host_file import process_started

from tests.host.support import private_home, serving


def sleeping() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)


def file_of(pid: int) -> HostFile:
    return HostFile(1, 2, "ab" * 16, pid, process_started(pid))


async def test_the_kernel_tells_of_its_end() -> None:
    with sleeping() as process:
        try:
            link = HostLink()
            with trio.fail_after(30):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(link.watch, file_of(process.pid))
                    await trio.testing.wait_all_tasks_blocked()
                    assert link.alive
                    process.kill()
                    await link.wait_ended()
            assert not link.alive
        finally:
            process.kill()


async def test_a_process_that_is_gone_or_another_by_now() -> None:
    with sleeping() as process:
        process.kill()
    link = HostLink()
    await link.watch(file_of(process.pid))
    assert not link.alive
    link, file = HostLink(), file_of(os.getpid())
    await link.watch(replace(file, started_ticks=(file.started_ticks or 0) + 1))
    assert not link.alive


@pytest.mark.parametrize("problem", HostProblem)
def test_problems_that_are_for_good(problem: HostProblem) -> None:
    link = HostLink()
    link.observe(problem)
    passing = {
        HostProblem.UNREACHABLE,
        HostProblem.TIMEOUT,
        HostProblem.REDIRECT,
        HostProblem.STATUS,
        HostProblem.ANSWER,
        HostProblem.TOO_LARGE,
        HostProblem.FILE_MALFORMED,
    }
    assert link.alive is (problem in passing)


async def test_attaching(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    with pytest.raises(HostUnavailable):
        attach_host(home)
    async with serving(tmp_path) as server:
        policy, link, file = attach_host(home)
        assert f"127.0.0.1:{file.control_port}" == server.address
        await policy.site_mode("https://shop.test")
        assert link.alive
        server.revoke()
        await policy.site_mode("https://shop.test")
        assert not link.alive
