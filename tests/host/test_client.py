"""The engine's side against a host, and against everything that is not one."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden_adapters.host import (
    AllTargets,
    Answer,
    ApprovalKind,
    ApprovalRequest,
    ExcludesTargets,
    HandoffRequest,
    HostPolicy,
    HostProblem,
    HostUnavailable,
    KeepsLog,
    LogEntry,
    OpensTabs,
    OpenTabRequest,
    SiteMode,
    StaticPolicy,
    WaitsForUser,
)

from tests.host.support import FakeHost, never, private_home, serving, until
from tests.host.test_host_file import SPOILED, TOKEN, dead_pid, write
from tests.host.wrong_hosts import MISBEHAVING, YES, host_that, ok, received, says, silent

SITE = "https://shop.test"
ENTRY = LogEntry("page", SITE, "Hello", 2, 1)


async def assert_closed(policy: HostPolicy, problem: HostProblem) -> None:
    """Everything is off, and the reason is known."""
    assert await policy.site_mode(SITE) is SiteMode.OFF
    assert policy.problem is problem
    for kind in ApprovalKind:
        assert await policy.approve(kind, SITE, "x") is Answer.NO
    assert await policy.allowed_sensitive_hosts() == frozenset()
    excluded = await policy.excluded_targets()
    assert isinstance(excluded, AllTargets)
    assert "any" in excluded
    assert await policy.wait_for_user("x", SITE) is False
    assert await policy.log(ENTRY) is False
    assert await policy.open_tab(SITE) is False
    assert policy.problem is problem
    assert TOKEN not in repr(policy)


async def test_a_host_that_is_there(tmp_path: Path) -> None:
    host = FakeHost()
    host.modes[SITE], host.overrides, host.excluded, host.opens = SiteMode.ASK, ["bank.test"], ["A1"], True

    async def confirm(request: ApprovalRequest) -> Answer:
        return Answer.CONFIRM

    async def done(request: HandoffRequest) -> bool:
        return True

    host.approving, host.handing = confirm, done
    problems: list[HostProblem] = []
    async with serving(tmp_path, host) as server:
        policy = HostPolicy(tmp_path / "home", observe=problems.append)
        for optional in (WaitsForUser, KeepsLog, OpensTabs, ExcludesTargets):
            assert isinstance(policy, optional)
        assert policy.attach().cdp_port == 9222
        assert await policy.site_mode(SITE + "/a?b=c#d") is SiteMode.ASK
        assert await policy.approve(ApprovalKind.RISK, SITE, "Buy “it” & pay") is Answer.CONFIRM
        assert await policy.allowed_sensitive_hosts() == frozenset({"bank.test"})
        excluded = await policy.excluded_targets()
        assert ("A1" in excluded, "B2" in excluded) == (True, False)
        assert await policy.wait_for_user("Log in", SITE) is True
        assert await policy.log(LogEntry("page", SITE, "é" * 900_000, 2, 1, {"a": [1]})) is True
        assert await policy.open_tab(SITE, background=True, agent="Ada") is True
        assert policy.problem is None
        assert problems == []
        assert host.asked == [
            SITE,
            ApprovalRequest(ApprovalKind.RISK, SITE, "Buy “it” & pay"),
            HandoffRequest("Log in", SITE),
            OpenTabRequest(SITE + "/", background=True, agent="Ada"),
        ]
        assert server.token not in repr(policy) + repr(policy.attach())
        server.revoke()
        await assert_closed(policy, HostProblem.NO_FILE)
    assert set(problems) == {HostProblem.NO_FILE}


async def test_what_is_not_worth_asking_is_answered_at_once(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host):
        policy = HostPolicy(tmp_path / "home")
        for origin in ("null", "about:blank", "x", "https://me:pw@shop.test", "\ud800", "https://"):
            assert await policy.site_mode(origin) is SiteMode.OFF
        for origin in ("x", "https://me:pw@shop.test", "\ud800"):
            assert await policy.approve(ApprovalKind.SITE, origin, "x") is Answer.NO
            assert await policy.wait_for_user("x", origin) is False
        for url in ("x", "javascript:1", "https://me:pw@shop.test", "\ud800"):
            assert await policy.open_tab(url) is False
        assert await policy.approve(ApprovalKind.SITE, SITE, "\ud800") is Answer.NO
        assert await policy.log(LogEntry("page", SITE, "x" * 3_000_000, 2, 1)) is False
        assert await policy.log(LogEntry("page", SITE, "x", 2, 1, {"a": object()})) is False
        assert host.asked == []
        assert host.entries == []
        assert policy.problem is None


async def test_no_file(tmp_path: Path) -> None:
    await assert_closed(HostPolicy(tmp_path / "nowhere"), HostProblem.NO_FILE)
    await assert_closed(HostPolicy(private_home(tmp_path)), HostProblem.NO_FILE)


@pytest.mark.parametrize("how", SPOILED)
async def test_a_file_that_others_could_have_touched(tmp_path: Path, how: str) -> None:
    write(private_home(tmp_path))
    SPOILED[how](tmp_path / "home")
    await assert_closed(HostPolicy(tmp_path / "home"), HostProblem.FILE_REFUSED)


async def test_a_file_that_makes_no_sense_or_leads_elsewhere(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    write(home, token="x")
    await assert_closed(HostPolicy(home), HostProblem.FILE_MALFORMED)
    write(home, controlHost="192.0.2.1")
    await assert_closed(HostPolicy(home), HostProblem.NOT_LOOPBACK)


async def test_a_dead_host_is_not_even_called(tmp_path: Path) -> None:
    async with host_that(never, tmp_path, pid=dead_pid()) as policy:
        await assert_closed(policy, HostProblem.DEAD)
    async with host_that(never, tmp_path, startedTicks=1) as policy:
        await assert_closed(policy, HostProblem.DEAD)


async def test_nobody_listens(tmp_path: Path) -> None:
    home = private_home(tmp_path)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        write(home, controlPort=unused.getsockname()[1])
        await assert_closed(HostPolicy(home), HostProblem.UNREACHABLE)


@pytest.mark.parametrize("how", MISBEHAVING)
async def test_a_host_that_misbehaves(tmp_path: Path, how: str) -> None:
    problem, answers = MISBEHAVING[how]
    with trio.fail_after(60):
        async with host_that(answers, tmp_path) as policy:
            if how in ("not JSON", "empty", "an array", "not HTTP"):
                await assert_closed(policy, problem)
            else:
                # `{"ok": ...}` is a good answer to a log entry, so that one is left out.
                assert await policy.site_mode(SITE) is SiteMode.OFF
                assert policy.problem is problem
                assert await policy.approve(ApprovalKind.RISK, SITE, "x") is Answer.NO
                assert await policy.allowed_sensitive_hosts() == frozenset()
                assert await policy.wait_for_user("x", SITE) is False
                assert await policy.open_tab(SITE) is False
                assert "any" in await policy.excluded_targets()


async def test_a_host_that_says_nothing(tmp_path: Path) -> None:
    for slow in (silent, says(ok(YES)[:-1], close=False), says(b"HTTP/1.1 200 OK\r\n", close=False)):
        async with host_that(slow, tmp_path):
            await assert_closed(
                HostPolicy(tmp_path / "home", answer_s=0.1, person_wait_s=0.1), HostProblem.TIMEOUT
            )


async def test_what_other_hosts_may_do_is_understood(tmp_path: Path) -> None:
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(YES), YES)
    more = json.dumps({"mode": "allowed", "since": [1, {"a": None}]}).encode()
    for reply in (ok(YES), chunked, ok(more), ok(YES, b"connection: keep-alive")):
        async with host_that(says(reply, close=False), tmp_path) as policy:
            assert await policy.site_mode(SITE) is SiteMode.ALLOWED


async def test_what_is_sent_is_plain_and_the_environment_has_no_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads: list[bytes] = []

    async def note(stream: trio.SocketStream) -> None:
        heads.append(await received(stream))
        await stream.send_all(ok(YES))

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with host_that(note, tmp_path) as policy:
        assert await policy.site_mode(SITE) is SiteMode.ALLOWED
        assert await policy.approve(ApprovalKind.SITE, SITE, "x") is Answer.YES
        port = policy.attach().control_port
    assert heads[0].split(b"\r\n") == [
        b"GET /policy?origin=https%3A%2F%2Fshop.test HTTP/1.1",
        b"host: 127.0.0.1:%d" % port,
        b"authorization: Bearer " + TOKEN.encode(),
        b"accept: application/json",
        b"connection: close",
    ]
    assert heads[1].startswith(b"POST /approve HTTP/1.1\r\n")
    assert b"content-type: application/json" in heads[1]


async def test_whoever_asks_in_a_loop_lets_others_run(tmp_path: Path) -> None:
    policies: list[Any] = [HostPolicy(tmp_path / "nowhere"), StaticPolicy.from_flags()]
    for policy in policies:
        for origin in (SITE, "null"):
            with trio.testing.assert_checkpoints():
                await policy.site_mode(origin)
        with trio.testing.assert_checkpoints():
            await policy.approve(ApprovalKind.SITE, SITE, "x")
    with trio.testing.assert_checkpoints():
        await policies[0].excluded_targets()


@pytest.mark.parametrize("turns", range(0, 60, 5))
async def test_cancelling_a_question_after_any_number_of_turns_leaves_nothing(
    tmp_path: Path, turns: int
) -> None:
    async with serving(tmp_path) as server:
        policy = HostPolicy(tmp_path / "home")
        files = len(os.listdir("/proc/self/fd"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(policy.site_mode, SITE)
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        await until(lambda: server.statistics().connections == 0)
        assert len(os.listdir("/proc/self/fd")) <= files
        assert policy.problem is None


async def test_another_host_in_the_place_of_the_first(tmp_path: Path) -> None:
    async with host_that(says(ok(YES)), tmp_path) as policy:
        assert await policy.site_mode(SITE) is SiteMode.ALLOWED
        port = policy.attach().control_port
        write(tmp_path / "home", controlPort=port, token="cd" * 32)
        await assert_closed(policy, HostProblem.CHANGED)
        write(tmp_path / "home", controlPort=port)
        assert await policy.site_mode(SITE) is SiteMode.ALLOWED
        (tmp_path / "home" / "host.json").unlink()
        await assert_closed(policy, HostProblem.NO_FILE)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
async def test_a_port_that_another_user_has_taken_gets_no_token(tmp_path: Path) -> None:
    """The host crashed, its process id was given away, and a stranger listens where it did."""
    home = private_home(tmp_path)
    with socket.socket() as squatted:
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setuid(65534)
                with socket.socket() as squatter:
                    squatter.bind(("127.0.0.1", 0))
                    squatter.listen()
                    os.write(tell, b"%d\n" % squatter.getsockname()[1])
                    squatter.settimeout(10)
                    peer, _ = squatter.accept()
                    os.write(tell, b"got:" + peer.recv(65_536))
            finally:
                os._exit(0)
        os.close(tell)
        squatted.close()
        with os.fdopen(told, "rb") as pipe:
            write(home, controlPort=int(pipe.readline()))
            policy = HostPolicy(home)
            assert await policy.site_mode(SITE) is SiteMode.OFF
            assert policy.problem is HostProblem.FOREIGN
            assert pipe.read() == b"got:"
        await trio.to_thread.run_sync(os.waitpid, child, 0)


async def test_cancelling_an_approval_withdraws_the_question(tmp_path: Path) -> None:
    host = FakeHost()
    host.approving = host.handing = never
    async with serving(tmp_path, host):
        policy = HostPolicy(tmp_path / "home")
        for ask in (
            lambda: policy.approve(ApprovalKind.SITE, SITE, "x"),
            lambda: policy.wait_for_user("x", SITE),
        ):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                await until(lambda: host.waiting == 1)
                nursery.cancel_scope.cancel()
            await until(lambda: host.waiting == 0)
        assert host.withdrawn == 2
        assert policy.problem is None


async def test_a_host_that_is_killed_in_the_middle_means_no(tmp_path: Path) -> None:
    host = FakeHost()
    host.approving = never
    answers: list[Answer] = []
    async with trio.open_nursery() as nursery, serving(tmp_path, host) as server:
        policy = HostPolicy(tmp_path / "home")

        async def ask() -> None:
            answers.append(await policy.approve(ApprovalKind.SITE, SITE, "x"))

        nursery.start_soon(ask)
        await until(lambda: host.waiting == 1)
        await server.close()
    assert answers == [Answer.NO]
    with pytest.raises(HostUnavailable):
        policy.attach()
