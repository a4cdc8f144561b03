"""Questions before the person: what ends them, and backends that misbehave while they run."""

import socket
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden_adapters.host import Answer, HostControlServer

from tests.host.support import (
    FakeHost,
    ask,
    ask_raw,
    code_of,
    everything,
    limits,
    never,
    open_stream,
    parsed,
    private_home,
    request,
    serving,
    until,
)

SITE = "https://shop.test"
APPROVE = ("POST", "/approve", {"kind": "site", "origin": SITE, "summary": "x"})
HANDOFF = ("POST", "/handoff", {"reason": "x", "origin": SITE})
BOTH = pytest.mark.parametrize("question", [APPROVE, HANDOFF], ids=["approve", "handoff"])


def waiting_host() -> FakeHost:
    host = FakeHost()
    host.approving = host.handing = never
    return host


@BOTH
@pytest.mark.parametrize("how", ["close", "reset", "more"])
async def test_the_engine_going_away_withdraws_the_question(tmp_path: Path, question: Any, how: str) -> None:
    host = waiting_host()
    async with serving(tmp_path, host) as server:
        stream = await open_stream(server)
        await stream.send_all(request(server, *question))
        await until(lambda: host.waiting == 1)
        if how == "more":
            await stream.send_all(b"GET")  # not one request
            assert await everything(stream) == b""
        elif how == "reset":
            stream.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SOL_SOCKET, SO_LINGER: close sends RST
        await stream.aclose()
        await until(lambda: host.withdrawn == 1)
        await until(lambda: server.statistics().connections == 0)
        assert (await ask(server, "GET", "/excluded-targets"))[0] == 200


@BOTH
async def test_an_engine_that_half_closes_still_gets_its_answer(tmp_path: Path, question: Any) -> None:
    host, answered = FakeHost(), trio.Event()

    async def later(request: object) -> Any:
        await answered.wait()
        return Answer.YES if question is APPROVE else True

    host.approving = host.handing = later
    async with serving(tmp_path, host) as server, await open_stream(server) as stream:
        await stream.send_all(request(server, *question))
        await stream.send_eof()
        await until(lambda: host.waiting == 1)
        # Longer than the server takes to look whether a half-closed peer is still there.
        with trio.move_on_after(0.5):
            await never(None)
        assert host.withdrawn == 0
        answered.set()
        assert parsed(await everything(stream)) == (
            200,
            {"answer": "yes"} if question is APPROVE else {"done": True},
        )


async def test_an_engine_that_half_closes_and_then_leaves_is_noticed(tmp_path: Path) -> None:
    host = waiting_host()
    async with serving(tmp_path, host) as server:
        stream = await open_stream(server)
        await stream.send_all(request(server, *APPROVE))
        await stream.send_eof()
        await until(lambda: host.waiting == 1)
        await stream.aclose()
        await until(lambda: host.withdrawn == 1)


@BOTH
async def test_revocation_ends_the_wait_and_everything_after(tmp_path: Path, question: Any) -> None:
    host = waiting_host()
    async with serving(tmp_path, host) as server:
        async with await open_stream(server) as stream:
            await stream.send_all(request(server, *question))
            await until(lambda: host.waiting == 1)
            server.revoke()
            assert not (tmp_path / "home" / "host.json").exists()
            assert code_of(await everything(stream)) == (403, "revoked")
        assert host.withdrawn == 1
        log = {"type": "x", "origin": SITE, "text": "x", "tokens": 1, "at": 1}
        for again in (question, ("GET", "/policy?origin=" + SITE), ("POST", "/log", log)):
            assert code_of(await ask_raw(server, request(server, *again))) == (403, "revoked")
        assert host.asked == [host.asked[0]]
        server.revoke()


@pytest.mark.parametrize("turns", range(0, 30, 2))
async def test_an_answer_given_just_before_a_revocation_does_not_arrive_after_it(
    tmp_path: Path, turns: int
) -> None:
    host, answered = FakeHost(), trio.Event()

    async def later(request: object) -> Any:
        await answered.wait()
        return Answer.YES

    host.approving = later
    async with serving(tmp_path, host) as server, await open_stream(server) as stream:
        await stream.send_all(request(server, *APPROVE))
        await until(lambda: host.waiting == 1)
        answered.set()
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        try:
            arrived = stream.socket._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            arrived = b""
        server.revoke()
        reply = await everything(stream)
        assert parsed(reply) == (200, {"answer": "yes"}) if arrived else code_of(reply) == (403, "revoked")


@BOTH
async def test_closing_ends_the_wait(tmp_path: Path, question: Any) -> None:
    host = waiting_host()
    async with serving(tmp_path, host) as server:
        stream = await open_stream(server)
        await stream.send_all(request(server, *question))
        await until(lambda: host.waiting == 1)
        await server.close()
        assert code_of(await everything(stream)) == (503, "closing")
        await stream.aclose()
        with pytest.raises(OSError):  # noqa: PT011
            await open_stream(server)
        await server.close()
    assert host.withdrawn == 1


async def test_a_person_who_never_answers_means_no(tmp_path: Path) -> None:
    host = waiting_host()
    async with serving(tmp_path, host, limits=limits(person_wait_s=0.05)) as server:
        assert code_of(await ask_raw(server, request(server, *APPROVE))) == (504, "deadline")
        assert host.withdrawn == 1


async def test_questions_are_bounded_and_leave_room_for_the_rest(tmp_path: Path) -> None:
    host = waiting_host()
    async with serving(tmp_path, host, limits=limits(waiting=2, connections=5)) as server:
        streams = [await open_stream(server) for _ in range(2)]
        for stream in streams:
            await stream.send_all(request(server, *APPROVE))
        await until(lambda: host.waiting == 2)
        assert code_of(await ask_raw(server, request(server, *HANDOFF))) == (429, "busy")
        assert await ask(server, "GET", "/policy?origin=" + SITE) == (200, {"mode": "off"})
        await streams.pop().aclose()
        await until(lambda: host.waiting == 1)
        host.approving = None
        assert await ask(server, *APPROVE) == (200, {"answer": "no"})
        await streams.pop().aclose()
        await until(lambda: server.statistics().waiting == 0)


async def test_a_backend_that_ignores_cancellation_holds_nothing_up(tmp_path: Path) -> None:
    host, release = FakeHost(), trio.Event()

    async def stubborn(request: object) -> Any:
        with trio.CancelScope(shield=True):
            await release.wait()
        return Answer.YES

    host.approving = stubborn
    options = limits(person_wait_s=0.05, cancel_grace_s=0.05, close_s=0.4, waiting=2)
    with trio.fail_after(30):
        async with serving(tmp_path, host, limits=options, leftovers=True) as server:
            for _ in range(2):
                assert code_of(await ask_raw(server, request(server, *APPROVE))) == (504, "deadline")
            # They still have their places, so that their number is bounded.
            assert code_of(await ask_raw(server, request(server, *APPROVE))) == (429, "busy")
            assert (await ask(server, "GET", "/excluded-targets"))[0] == 200
            await server.close()
            assert not (tmp_path / "home" / "host.json").exists()
            release.set()


@pytest.mark.parametrize("how", ["revoke", "close"])
async def test_a_backend_that_ignores_a_revocation_is_not_waited_for(tmp_path: Path, how: str) -> None:
    host, release = FakeHost(), trio.Event()

    async def stubborn(request: object) -> Any:
        with trio.CancelScope(shield=True):
            await release.wait()
        return Answer.YES

    host.approving = stubborn
    options = limits(close_s=0.4)
    async with (
        serving(tmp_path, host, limits=options, leftovers=True) as server,
        await open_stream(server) as stream,
    ):
        await stream.send_all(request(server, *APPROVE))
        await until(lambda: host.waiting == 1)
        if how == "revoke":
            server.revoke()
        else:
            await server.close()
        reply = await everything(stream)
        assert code_of(reply) == ((403, "revoked") if how == "revoke" else (503, "closing"))
        assert host.waiting == 1
        release.set()


async def test_a_cancellation_of_somebody_else_is_a_failure_like_any_other(tmp_path: Path) -> None:
    host = FakeHost()
    foreign: list[trio.Cancelled] = []
    with trio.CancelScope() as elsewhere:
        elsewhere.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as cancelled:
            foreign.append(cancelled)
            raise

    async def shared(request: object) -> Any:
        raise foreign[0]

    host.approving = shared
    async with serving(tmp_path, host) as server:
        assert code_of(await ask_raw(server, request(server, *APPROVE))) == (500, "failure")


async def test_an_answer_that_comes_after_its_cancellation_is_dropped(tmp_path: Path) -> None:
    host = FakeHost()

    async def late(request: object) -> Any:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return Answer.YES

    host.approving = late
    async with serving(tmp_path, host, limits=limits(person_wait_s=0.05)) as server:
        assert code_of(await ask_raw(server, request(server, *APPROVE))) == (504, "deadline")


class Odd(BaseException):
    pass


FAULTS: list[BaseException] = [
    ValueError("sk-secret"),
    RecursionError("sk-secret"),
    Odd("sk-secret"),
    SystemExit("sk-secret"),
    GeneratorExit("sk-secret"),
    ExceptionGroup("sk-secret", [ValueError("sk-secret")]),
    BaseExceptionGroup("sk-secret", [Odd(), ValueError("sk-secret")]),
    trio.TooSlowError("sk-secret"),
    StopAsyncIteration("sk-secret"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
async def test_whatever_a_backend_raises_is_a_typed_failure(
    tmp_path: Path, fault: BaseException, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    host = FakeHost()

    async def fail(*_: object) -> Any:
        raise fault

    host.site_mode = host.log = host.open_tab = host.excluded_targets = fail  # type: ignore[method-assign]
    host.approving = host.handing = fail
    log = {"type": "x", "origin": SITE, "text": "x", "tokens": 1, "at": 1}
    asked: list[Any] = [
        APPROVE, HANDOFF, ("GET", "/policy?origin=" + SITE), ("GET", "/excluded-targets"),
        ("POST", "/log", log), ("POST", "/tabs/open", {"url": SITE}),
    ]  # fmt: skip
    async with serving(tmp_path, host) as server:
        for question in asked:
            reply = await ask_raw(server, request(server, *question))
            assert code_of(reply) == (500, "failure")
            assert b"sk-secret" not in reply
        assert (await ask(server, "GET", "/sensitive-overrides"))[0] == 200
    out, err = capfd.readouterr()
    assert "sk-secret" not in caplog.text + out + err


async def test_a_backend_that_fails_while_it_is_cancelled_harms_nobody(tmp_path: Path) -> None:
    host = FakeHost()

    async def fail(request: object) -> Any:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
        finally:
            raise ValueError("cleaning up")

    host.approving = fail
    async with serving(tmp_path, host) as server:
        stream = await open_stream(server)
        await stream.send_all(request(server, *APPROVE))
        await until(lambda: host.waiting == 1)
        await stream.aclose()
        await until(lambda: host.waiting == 0)
        assert (await ask(server, "GET", "/excluded-targets"))[0] == 200


@pytest.mark.parametrize("when", range(12))
async def test_the_hosts_nursery_may_be_cancelled_at_any_moment(tmp_path: Path, when: int) -> None:
    """After `when` turns of the loop, wherever the request, or the start, is by then."""
    host, home = waiting_host(), private_home(tmp_path)
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                for _ in range(when * 3):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()

            async def live() -> None:
                async with HostControlServer(nursery, host, cdp_port=1, home=home) as server:
                    nursery.start_soon(partial(ask_raw, server, request(server, *APPROVE)))
                    await trio.sleep_forever()

            nursery.start_soon(live)
            nursery.start_soon(cancel)
    assert not (home / "host.json").exists()
    assert host.waiting == 0
