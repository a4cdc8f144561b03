"""Chromium as a process: found, started, ended."""

import os
import signal
import stat

import pytest
import trio
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden_adapters.browser import ChromiumHost, find_chromium, launch_chromium
from tabwarden_adapters.browser.cdp import SessionEnded
from tabwarden_adapters.browser.cdp.generated import browser
from tabwarden_adapters.browser.process import GroupProcess, living_members

from tests.browser.agent import Agent


def program(folder, name, body):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o700)
    return path


def test_it_is_found_by_name_and_by_variable(tmp_path):
    named = program(tmp_path, "google-chrome", "exit 0")
    chosen = program(tmp_path, "mine", "exit 0")
    path = str(tmp_path)
    assert find_chromium({"PATH": path}) == named
    assert find_chromium({"PATH": path, "TABWARDEN_CHROMIUM": "mine"}) == chosen
    assert find_chromium({"PATH": "", "TABWARDEN_CHROMIUM": str(chosen)}) == chosen


@pytest.mark.parametrize("variables", [{}, {"TABWARDEN_CHROMIUM": "/nowhere/chromium"}])
def test_when_it_is_missing_the_error_says_what_to_do(tmp_path, variables):
    with pytest.raises(ConfigurationError, match="TABWARDEN_CHROMIUM"):
        find_chromium({"PATH": str(tmp_path), **variables})


async def test_it_runs_in_a_private_profile_and_leaves_nothing(nursery):
    async with launch_chromium(nursery) as chromium:
        folder = chromium.profile
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert "Chrom" in chromium.product
        group = chromium.pid
        assert len(living_members(group)) > 1
        with open(f"/proc/{group}/cmdline", "rb") as file:  # noqa: ASYNC230
            arguments = file.read().split(b"\0")
        assert b"--remote-debugging-pipe" in arguments
        assert not [a for a in arguments if a.startswith(b"--remote-debugging-port")]
        assert b"--webrtc-ip-handling-policy=disable_non_proxied_udp" in arguments
    assert living_members(group) == []
    assert not folder.exists()
    with pytest.raises(SessionEnded):
        await chromium.connection.root.call(browser.get_version())


async def test_cancelling_ends_it_too():
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery, launch_chromium(nursery) as chromium:
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert living_members(chromium.pid) == []
    assert not chromium.profile.exists()


async def test_an_error_of_the_block_passes_unchanged(nursery):
    with pytest.raises(LookupError):
        async with launch_chromium(nursery) as chromium:
            raise LookupError
    assert living_members(chromium.pid) == []


async def test_its_death_ends_calls_and_leaves_the_host_running(nursery):
    async with launch_chromium(nursery) as chromium:
        agent = Agent()
        agent.attach(await ChromiumHost.start(chromium, policy_version=lambda: 1))
        captured = agent.host.get_context(None)
        os.killpg(chromium.pid, signal.SIGKILL)
        await chromium.connection.root.wait_ended()
        assert not agent.host.ready
        assert not agent.host.context_current(captured.token)
        assert await agent.call("sessions") == []
        assert (await agent.call("application:state"))["ready"] is False
        assert await agent.fails("read", sessionId=captured.session_id) is Code.UNKNOWN_SESSION
        assert await agent.fails("tabs:create") is Code.SESSION_GONE
        with pytest.raises(ActionError):
            await ChromiumHost.start(chromium, policy_version=lambda: 1)
    assert living_members(chromium.pid) == []


async def test_a_program_that_ends_at_its_start(nursery, tmp_path):
    with pytest.raises(ConfigurationError, match="status 7"):
        async with launch_chromium(nursery, executable=program(tmp_path, "bad", "exit 7")):
            raise AssertionError


async def test_a_program_that_cannot_be_run(nursery, tmp_path):
    with pytest.raises(ConfigurationError, match="could not be started"):
        async with launch_chromium(nursery, executable=tmp_path / "nothing"):
            raise AssertionError


async def test_a_program_that_does_not_answer(nursery, tmp_path):
    mute = program(tmp_path, "mute", f"echo $$ > {tmp_path}/pid; exec tail -f /dev/null")
    with pytest.raises(ConfigurationError, match=r"0\.5 s"):
        async with launch_chromium(nursery, executable=mute, start_timeout=0.5):
            raise AssertionError
    assert living_members(int((tmp_path / "pid").read_text())) == []


async def test_a_group_that_ignores_the_request_is_killed(tmp_path):
    os.mkfifo(tmp_path / "ready")
    body = f"trap '' TERM; tail -f /dev/null & echo > {tmp_path}/ready; wait"
    process = GroupProcess.start([str(program(tmp_path, "deaf", body))], {"PATH": os.environ["PATH"]}, {})
    await trio.to_thread.run_sync((tmp_path / "ready").read_bytes)
    assert len(living_members(process.pid)) == 2
    assert await process.end(grace_s=0.05, kill_s=2)
    assert living_members(process.pid) == []
    assert await process.end(grace_s=0.05, kill_s=2)


async def test_chromium_gets_no_variable_that_is_not_meant_for_it(nursery, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=token")
    async with launch_chromium(nursery) as chromium:
        with open(f"/proc/{chromium.pid}/environ", "rb") as file:  # noqa: ASYNC230
            assert b"OTEL" not in file.read()
