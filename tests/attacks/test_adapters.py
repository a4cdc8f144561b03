"""Attacks 64 and 65: adapters that ignore cancellation, raise anything or return anything."""

import contextlib
import math
import threading
from collections.abc import Iterator

import pytest
import trio
from tabwarden.errors import ActionError, Code, HostReason
from tabwarden.limits import Limits

from tests.attacks.serving import Broker, serve
from tests.attacks.toolkit import envelope, peer_of
from tests.support.fakes import AllowOnly

SECRET = "marked-7f3a"
TAB = "00000000-0000-0000-0000-000000000000"
IMPATIENT = Limits(action_deadline_s=0.1, cancel_grace_s=0.05, batch_size=8)


def no_secret(broker: Broker, reply: object) -> None:
    for told in (reply, broker.audit.events, broker.reasons.told, broker.control.statistics()):
        assert SECRET not in repr(told)


async def test_attack_64_an_adapter_that_shields_itself_returns_after_the_deadline(transport):
    release, ended = trio.Event(), trio.Event()

    async def stubborn(arguments: object, context: object) -> dict[str, str]:
        with trio.CancelScope(shield=True):
            await release.wait()
        ended.set()
        return {"text": SECRET}

    async with serve(
        transport, allow=("read", "sessions"), actions={"read": stubborn}, limits=IMPATIENT
    ) as broker:
        peer = peer_of(broker)
        begun = trio.current_time()
        status, body = await peer.call(broker, envelope("read"))
        assert trio.current_time() - begun < 2
        # A read changes nothing, so nothing can have been left half-done.
        assert (status, body) == (504, {"code": "deadline", "effect": "not_started"})
        assert [event.code for event in broker.audit.terminal()] == ["deadline"]
        assert broker.control.statistics().calls_in_flight == 0
        release.set()
        await ended.wait()
        await broker.control.close()
        # What it came back with changed nothing any more.
        assert len(broker.audit.terminal()) == 1
        assert broker.reasons.told == [HostReason.ADAPTER_IGNORED_CANCELLATION]
        assert broker.control.statistics().outcomes == {("read", "deadline"): 1}
        no_secret(broker, body)


async def test_attack_64_an_adapter_in_a_thread_returns_after_the_deadline(transport):
    release = threading.Event()

    async def in_a_thread(arguments: object, context: object) -> dict[str, bool]:
        context.effects_begin()
        await trio.to_thread.run_sync(release.wait)
        return {"completed": True}

    async with serve(
        transport, allow=("reload",), actions={"reload": in_a_thread}, limits=IMPATIENT
    ) as broker:
        peer = peer_of(broker)
        try:
            status, body = await peer.call(broker, envelope("reload", args={"sessionId": TAB}))
        finally:
            release.set()
        assert (status, body) == (504, {"code": "deadline", "effect": "unknown"})
        [event] = broker.audit.terminal()
        assert (event.code, event.committed) == ("deadline", None)


async def test_attack_64_an_adapter_that_swallows_its_cancellation(transport):
    async def deaf(arguments: object, context: object) -> dict[str, bool]:
        with contextlib.suppress(trio.Cancelled):
            await trio.sleep_forever()
        return {"completed": True}

    async with serve(transport, allow=("reload",), actions={"reload": deaf}, limits=IMPATIENT) as broker:
        peer = peer_of(broker)
        status, body = await peer.call(broker, envelope("reload", args={"sessionId": TAB}))
        # It came back and said that it had acted: that is told, the result is not.
        assert (status, body) == (504, {"code": "deadline", "effect": "committed"})
        assert [event.code for event in broker.audit.terminal()] == ["deadline"]


async def test_attack_64_an_adapter_without_a_checkpoint_outruns_its_deadline(transport):
    async def busy(arguments: object, context: object) -> dict[str, str]:
        ends = trio.current_time() + 0.15
        while trio.current_time() < ends:
            pass
        return {"text": SECRET}

    async with serve(transport, allow=("read",), actions={"read": busy}, limits=IMPATIENT) as broker:
        peer = peer_of(broker)
        status, body = await peer.call(broker, envelope("read"))
        assert (status, body["code"]) == (504, "deadline")
        no_secret(broker, body)


class Odd(BaseException):
    pass


class Loud(Exception):
    def __str__(self) -> str:
        raise RuntimeError(SECRET)

    __repr__ = __str__


def _group(*errors: BaseException) -> BaseExceptionGroup[BaseException]:
    return BaseExceptionGroup(SECRET, list(errors))


ERRORS = {
    "ValueError": lambda: ValueError(SECRET),
    "KeyboardInterrupt": lambda: KeyboardInterrupt(SECRET),
    "SystemExit": lambda: SystemExit(SECRET),
    "BaseException": lambda: Odd(SECRET),
    "GeneratorExit": lambda: GeneratorExit(SECRET),
    "StopIteration": lambda: StopIteration(SECRET),
    "StopAsyncIteration": lambda: StopAsyncIteration(SECRET),
    "MemoryError": lambda: MemoryError(SECRET),
    "RecursionError": lambda: RecursionError(SECRET),
    "CancelledError": lambda: __import__("asyncio").CancelledError(SECRET),
    "TooSlowError": lambda: trio.TooSlowError(SECRET),
    "unprintable": Loud,
    "group": lambda: _group(ValueError(SECRET)),
    "nested groups": lambda: _group(_group(_group(ValueError(SECRET)), Odd(SECRET)), KeyError(SECRET)),
    "ActionError and another": lambda: _group(ActionError(Code.CONFLICT), ValueError(SECRET)),
    "two ActionErrors": lambda: _group(ActionError(Code.CONFLICT), ActionError(Code.STALE)),
    "with a cause": lambda: _caused(ValueError(SECRET), KeyError(SECRET)),
}


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    error.add_note(SECRET)
    return error


async def stray_cancellation() -> trio.Cancelled:
    """A Cancelled of a scope that has nothing to do with the call, as a shared task may hand it on."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as cancelled:
            return cancelled
    raise AssertionError


@pytest.mark.parametrize("kind", [*ERRORS, "stray Cancelled", "group of Cancelled and error"])
@pytest.mark.parametrize("where", ["adapter", "authorizer"])
async def test_attack_65_an_adapter_or_authorizer_that_raises_anything(transport, where, kind):
    async def fail(*_: object, **__: object) -> object:
        if kind == "stray Cancelled":
            raise await stray_cancellation()
        if kind == "group of Cancelled and error":
            raise _group(await stray_cancellation(), ValueError(SECRET))
        raise ERRORS[kind]()

    options = {"authorize": fail} if where == "authorizer" else {"authorize": AllowOnly("reload", "sessions")}
    async with serve(transport, actions={"reload": fail}, **options) as broker:
        peer = peer_of(broker)
        status, body = await peer.call(broker, envelope("reload", args={"sessionId": TAB}))
        effect = "unknown" if where == "adapter" else "not_started"
        assert (status, body) == (500, {"code": "failure", "effect": effect})
        reason = HostReason.ADAPTER_FAILED if where == "adapter" else HostReason.AUTHORIZER_FAILED
        assert broker.reasons.told == [reason]
        [event] = broker.audit.terminal()
        assert (event.outcome, event.code) == ("failed", "failure")
        no_secret(broker, body)
        # The broker lives, and serves the next one.
        broker.runtime.authorize = AllowOnly("sessions")
        assert (await peer.call(broker))[0] in (200, 404)
        assert broker.idle or await broker.quiet() is None


@pytest.mark.parametrize("depth", [0, 1, 3])
async def test_attack_65_a_typed_ending_is_found_in_the_groups_of_the_adapters_nurseries(transport, depth):
    async def refuse(arguments: object, context: object) -> None:
        error: BaseException = ActionError(Code.TARGET_DENIED, rule="test.rule")
        for _ in range(depth):
            error = _group(error)
        raise error

    async with serve(transport, allow=("reload",), actions={"reload": refuse}) as broker:
        peer = peer_of(broker)
        status, body = await peer.call(broker, envelope("reload", args={"sessionId": TAB}))
        assert (status, body) == (403, {"code": "target-denied", "effect": "not_started"})
        [event] = broker.audit.terminal()
        assert (event.outcome, event.code, event.rule) == ("denied", "target-denied", "test.rule")
        assert broker.reasons.told == []


class Hostile:
    def __getattribute__(self, name: str) -> object:
        raise ValueError(SECRET)


def _endless() -> Iterator[dict[str, str]]:
    while True:
        yield {"id": SECRET}


def _deep() -> object:
    value: object = SECRET
    for _ in range(5000):
        value = [value]
    return value


_SESSION = {"id": TAB, "title": "t", "foreground": True}

VALUES = {
    "None": None,
    "object": object(),
    "hostile object": Hostile(),
    "text": SECRET,
    "bytes": SECRET.encode(),
    "generator": _endless(),
    "deep": _deep(),
    "wrong type": [_SESSION | {"title": 1}],
    "missing field": [{"id": TAB, "title": SECRET}],
    "bad id": [_SESSION | {"id": SECRET}],
    "lone surrogate": [_SESSION | {"title": SECRET + "\ud800"}],
    "NaN": math.nan,
    "a type": type,
    "exception": ValueError(SECRET),
    "huge number": 10**5000,
}


@pytest.mark.parametrize("kind", VALUES)
async def test_attack_65_an_adapter_that_returns_what_is_no_result(transport, kind):
    async def give(arguments: object, context: object) -> object:
        return VALUES[kind]

    async with serve(transport, actions={"sessions": give}) as broker:
        peer = peer_of(broker)
        status, body = await peer.call(broker)
        assert (status, body["code"]) == (500, "failure")
        assert broker.reasons.told == [HostReason.RESULT_NOT_PROJECTABLE]
        assert [event.code for event in broker.audit.terminal()] == ["failure"]
        no_secret(broker, body)
        assert (await peer.call(broker))[0] == 500


async def test_attack_65_an_authorizer_that_answers_something_else(transport):
    class Yes:
        allowed = True
        scopes = frozenset({"sessions:list"})
        role = "admin"
        rule = SECRET

        def grants(self, scope: str) -> bool:
            return True

    for answer in (True, None, "yes", Yes()):

        async def decide(*_: object, answer: object = answer, **__: object) -> object:
            return answer

        async with serve(transport, authorize=decide) as broker:
            status, body = await peer_of(broker).call(broker)
            assert (status, body["code"]) == (500, "failure")
            assert broker.reasons.told == [HostReason.AUTHORIZER_FAILED]
            no_secret(broker, body)


async def test_attack_65_what_a_result_has_besides_its_fields_stays_here(transport):
    async def give(arguments: object, context: object) -> list[dict[str, object]]:
        return [_SESSION | {"cookie": SECRET}]

    async with serve(transport, actions={"sessions": give}) as broker:
        status, body = await peer_of(broker).call(broker)
        assert (status, body) == (200, [_SESSION])


async def test_attack_65_a_result_larger_than_a_reply(transport):
    sizes = iter([126_000, 127_000, 10_000_000])

    async def give(arguments: object, context: object) -> dict[str, str]:
        return {"text": "a" * next(sizes)}

    async with serve(transport, allow=("read",), actions={"read": give}) as broker:
        peer = peer_of(broker)
        assert (await peer.call(broker, envelope("read")))[0] == 200
        for _ in range(2):
            status, body = await peer.call(broker, envelope("read"))
            assert (status, body["code"]) == (500, "result-too-large")


async def test_attack_65_an_observer_that_raises(transport):
    def observe(reason: HostReason) -> None:
        raise KeyboardInterrupt(SECRET)

    async def fail(arguments: object, context: object) -> object:
        raise ValueError(SECRET)

    async with serve(transport, actions={"sessions": fail}, on_error=observe) as broker:
        peer = peer_of(broker)
        for _ in range(2):
            status, body = await peer.call(broker)
            assert (status, body["code"]) == (500, "failure")
