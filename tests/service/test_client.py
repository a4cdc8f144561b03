"""The client on trio and asyncio, the blocking client, retries, deadlines and outcomes."""

import functools
import itertools
import threading
from dataclasses import replace

import anyio
import pytest
import trio
from tabwarden import AgentClient, BlockingClient
from tabwarden.client import VerifiedRoots
from tabwarden.errors import (
    ActionError,
    CallFailed,
    ClientDeadline,
    ClientError,
    Code,
    ProtocolViolation,
    Refused,
    Unreachable,
)
from tabwarden.limits import Limits

from tests.attacks.fake_broker import Wrong, fake_broker, listening
from tests.attacks.middle import between
from tests.attacks.serving import free_port, serve, until
from tests.service.stations import HookTracer
from tests.support.fakes import ManualClock

TAB = "00000000-0000-0000-0000-000000000000"
_SESSION = {"id": TAB, "title": "t", "foreground": True}


async def one_tab(arguments: object, context: object) -> list[dict[str, object]]:
    return [_SESSION]


async def test_a_call_from_trio(transport):
    async with serve(transport, actions={"sessions": one_tab}) as broker:
        async with AgentClient(broker.descriptor) as client:
            assert await client.call("sessions") == [_SESSION]
            with pytest.raises(CallFailed) as raised:
                await client.call("read")
        assert (raised.value.status, raised.value.code) == (403, "policy-denied")
        assert raised.value.effect == "not_started"


async def test_a_call_from_asyncio(transport):
    async with serve(transport, actions={"sessions": one_tab}) as broker:
        descriptor = broker.descriptor

        async def agent() -> list[object]:
            async with AgentClient(descriptor) as client:
                results = [await client.call("sessions")]
                async with anyio.create_task_group() as tasks:
                    for _ in range(5):
                        tasks.start_soon(client.call, "sessions")
                with pytest.raises(CallFailed):
                    await client.call("read")
                return results

        run = functools.partial(anyio.run, agent, backend="asyncio")
        assert await trio.to_thread.run_sync(run) == [[_SESSION]]


async def test_a_call_from_a_plain_thread(transport):
    async with serve(transport, actions={"sessions": one_tab}) as broker:
        descriptor, results = broker.descriptor, []

        def script() -> None:
            with BlockingClient(descriptor) as client:
                results.append(client.call("sessions"))
                try:
                    client.call("read", {})
                except CallFailed as failed:
                    results.append(failed.code)

        thread = threading.Thread(target=script)
        thread.start()
        await trio.to_thread.run_sync(thread.join)
        assert results == [[_SESSION], "policy-denied"]
        await broker.quiet()


async def test_the_blocking_client_needs_its_with_statement():
    async with serve() as broker:
        with pytest.raises(RuntimeError):
            BlockingClient(broker.descriptor).call("sessions")


async def test_one_connection_serves_call_after_call():
    async with serve() as broker, AgentClient(broker.descriptor) as client:
        for _ in range(5):
            await client.call("sessions")
        assert broker.control.statistics().connections == 1
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(client.call, "sessions")
        assert broker.control.statistics().connections <= 4


async def test_busy_is_tried_again_three_times_and_no_more(transport):
    tries: list[float] = []

    async def busy(arguments: object, context: object) -> None:
        tries.append(trio.current_time())
        raise ActionError(Code.BUSY)

    async with (
        serve(transport, actions={"sessions": busy}) as broker,
        between(broker.descriptor) as (client, middle),
    ):
        with pytest.raises(CallFailed) as raised:
            await client.call("sessions")
        assert (raised.value.status, raised.value.code) == (409, "browser-management-busy")
        assert len(tries) == 4
        pauses = [later - earlier for earlier, later in itertools.pairwise(tries)]
        assert all(pause >= least for pause, least in zip(pauses, (0.2, 0.4, 0.6), strict=True))
        # A fresh challenge and a fresh seal each time.
        for stage in ("M1", "M2", "M3", "M4"):
            assert len(middle.seen[stage]) == 4
        assert len(set(middle.seen["M2"])) == len(set(middle.seen["M3"])) == 4


async def test_busy_that_ends_is_a_success():
    tries: list[object] = []

    async def busy_once(arguments: object, context: object) -> list[object]:
        tries.append(arguments)
        if len(tries) == 1:
            raise ActionError(Code.BUSY)
        return []

    async with serve(actions={"sessions": busy_once}) as broker, AgentClient(broker.descriptor) as client:
        assert await client.call("sessions") == []
    assert len(tries) == 2
    assert tries[0] == tries[1]


@pytest.mark.parametrize(
    "code", [code for code in Code if code not in (Code.BUSY, Code.REVOKED, Code.DISCONNECTED)]
)
async def test_nothing_else_is_ever_tried_again(code):
    tries: list[object] = []

    async def fail(arguments: object, context: object) -> None:
        tries.append(arguments)
        raise ActionError(code)

    async with serve(actions={"sessions": fail}) as broker, AgentClient(broker.descriptor) as client:
        with pytest.raises(CallFailed) as raised:
            await client.call("sessions")
    assert raised.value.code == code.value
    assert len(tries) == 1


@pytest.mark.parametrize("status", [400, 408, 429, 500, 503])
async def test_busy_with_another_status_is_not_busy(status):
    clock = ManualClock()
    plain = b'{"type":"agent-response","status":%d,"body":{"code":"browser-management-busy"}}' % status
    async with fake_broker(clock, Wrong(plaintext=lambda _: plain)) as fake:
        async with AgentClient(fake.descriptor, clock=clock) as client:
            with pytest.raises(CallFailed):
                await client.call("sessions")
        assert fake.requests == 1


async def test_409_in_the_clear_is_not_busy():
    clock = ManualClock()
    wrong = Wrong(head=lambda route, head: head.replace(b"200 OK", b"409 Conflict"))
    async with fake_broker(clock, wrong) as fake, AgentClient(fake.descriptor, clock=clock) as client:
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")
        assert len(fake.seen) == 1


async def test_the_clients_own_deadline(transport):
    ended = trio.Event()

    async def hang(arguments: object, context: object) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with serve(transport, actions={"sessions": hang}) as broker:
        async with AgentClient(broker.descriptor, deadline_s=0.2) as client:
            with pytest.raises(ClientDeadline):
                await client.call("sessions")
        await ended.wait()
        await broker.quiet()
        assert [event.code for event in broker.audit.terminal()] == ["disconnected"]


async def test_the_deadline_counts_the_pauses_too():
    async def busy(arguments: object, context: object) -> None:
        raise ActionError(Code.BUSY)

    async with serve(actions={"sessions": busy}) as broker:
        async with AgentClient(broker.descriptor, deadline_s=0.1) as client:
            with pytest.raises(ClientDeadline):
                await client.call("sessions")
        assert len(broker.audit.terminal()) == 1


async def test_cancelling_a_call_is_a_hang_up(transport):
    started, ended = trio.Event(), trio.Event()

    async def hang(arguments: object, context: object) -> None:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with serve(transport, actions={"sessions": hang}) as broker:
        async with AgentClient(broker.descriptor) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.call, "sessions")
            await started.wait()
            nursery.cancel_scope.cancel()
        await ended.wait()
        await broker.quiet()


async def test_nobody_listens():
    bound, address = free_port()
    with bound:
        async with serve() as broker:
            descriptor = broker.descriptor
    async with AgentClient(descriptor) as client:
        with pytest.raises(Unreachable):
            await client.call("sessions")
    assert address != descriptor.address


async def test_a_broker_that_was_started_again_on_a_kept_connection():
    async with serve() as broker:
        client = AgentClient(broker.descriptor)
        await client.call("sessions")
    with pytest.raises(Unreachable):
        await client.call("sessions")
    await client.aclose()


async def test_what_cannot_be_sent():
    async with serve() as broker, AgentClient(broker.descriptor) as client:
        for args in ({"a": object()}, {"a": "x" * 130_000}, {"a": "\ud800"}):
            with pytest.raises(ClientError):
                await client.call("sessions", args)
        with pytest.raises(CallFailed) as raised:
            await client.call("sessions", {"a": "x" * 120_000})
        assert raised.value.code == "invalid-arguments"


async def test_verified_roots_are_bounded():
    clock = ManualClock()
    roots = VerifiedRoots()
    async with (
        fake_broker(clock) as fake,
        AgentClient(fake.descriptor, clock=clock, verified_roots=roots) as client,
    ):
        for _ in range(70):
            assert await client.call("sessions") == "believed"
        assert len(roots) == 64


async def test_clients_of_one_process_share_what_they_verified_and_brokers_do_not_mix():
    roots = VerifiedRoots()
    async with serve() as one, serve() as other:
        for broker in (one, one, other):
            async with AgentClient(broker.descriptor, verified_roots=roots) as client:
                await client.call("sessions")
        assert {entry[0] for entry in roots._entries} == {
            one.descriptor.instance,
            other.descriptor.instance,
        }


async def test_a_root_is_verified_once_and_only_after_both_signatures():
    roots = VerifiedRoots()
    async with serve() as broker, between(broker.descriptor, verified_roots=roots) as (client, middle):
        middle.rewrite["M2"] = lambda m2: m2[:1692] + bytes(len(m2) - 1692 - 300) + m2[-300:]
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")
        assert len(roots) == 0
        middle.rewrite.clear()
        for _ in range(3):
            await client.call("sessions")
        assert len(roots) == 1


async def test_a_reply_that_never_ends_and_one_that_never_comes():
    async def silent(stream: trio.SocketStream) -> None:
        async with stream:
            while await stream.receive_some(65536):
                pass

    clock = ManualClock()
    async with listening(silent) as address, serve() as broker:
        from tests.attacks.middle import DivertedClient

        async with DivertedClient(broker.descriptor, address, deadline_s=0.1) as client:
            with pytest.raises(ClientDeadline):
                await client.call("sessions")
    assert clock.boottime_ms() == 1_000_000


OUTCOMES = {
    "committed": ("reload", True),
    "failed after it began": ("reload", None),
    "typed ending before anything": ("reload", False),
}


@pytest.mark.parametrize("kind", OUTCOMES)
async def test_what_became_of_a_call(transport, kind):
    action, committed = OUTCOMES[kind]

    async def act(arguments: object, context: object) -> dict[str, bool]:
        if committed is None:
            context.effects_begin()
            raise ActionError(Code.NAVIGATION_FAILED, committed=None)
        if committed is False:
            raise ActionError(Code.CONFLICT)
        return {"completed": True}

    async with serve(transport, allow=("reload",), actions={"reload": act}) as broker:
        async with AgentClient(broker.descriptor) as client:
            assert await client.outcome("key-0001") == "not_started"
            try:
                await client.call(action, {"sessionId": TAB}, idempotency_key="key-0001")
                effect = "committed"
            except CallFailed as failed:
                effect = failed.effect
            expected = {True: "committed", None: "unknown", False: "not_started"}[committed]
            assert effect == expected
            assert await client.outcome("key-0001") == expected
            # Never twice, whatever became of the first.
            with pytest.raises(CallFailed) as raised:
                await client.call(action, {"sessionId": TAB}, idempotency_key="key-0001")
            assert (raised.value.status, raised.value.code) == (409, "conflict")
            assert await client.outcome("key-0001") == expected
        authorized = [event for event in broker.audit.agent_events if event.outcome == "authorized"]
        assert len(authorized) == 1


async def test_outcome_of_a_call_whose_reply_was_lost():
    started, release = trio.Event(), trio.Event()

    async def act(arguments: object, context: object) -> dict[str, bool]:
        context.effects_begin()
        started.set()
        await release.wait()
        return {"completed": True}

    async with (
        serve(allow=("reload",), actions={"reload": act}) as broker,
        AgentClient(broker.descriptor) as client,
        AgentClient(broker.descriptor) as asker,
    ):
        async with trio.open_nursery() as nursery:
            arguments = {"sessionId": TAB}
            nursery.start_soon(
                functools.partial(client.call, "reload", arguments, idempotency_key="key-0001")
            )
            await started.wait()
            assert await asker.outcome("key-0001") == "unknown"
            nursery.cancel_scope.cancel()
        await until(lambda: len(broker.audit.terminal()) >= 2)
        assert await asker.outcome("key-0001") == "unknown"


async def test_outcomes_are_each_principals_own_and_forgotten_ones_are_unknown(transport):
    from tabwarden import Grant

    async def act(arguments: object, context: object) -> dict[str, bool]:
        return {"completed": True}

    limits = Limits(idempotency_entries=2, batch_size=8)
    async with serve(
        transport, allow=("reload",), actions={"reload": act}, identity_mode="individual", limits=limits
    ) as broker:
        await broker.control.reconcile_principals([Grant("one", 1), Grant("two", 1)])
        one, two = [await broker.control.issue_principal(name, 1) for name in ("one", "two")]
        async with AgentClient(one) as mine, AgentClient(two) as theirs:
            for at in range(3):
                await mine.call("reload", {"sessionId": TAB}, idempotency_key=f"key-000{at}")
            assert await theirs.outcome("key-0002") == "not_started"
            assert await mine.outcome("key-0002") == "committed"
            assert await mine.outcome("key-0000") == "unknown"
            assert await mine.outcome("key-9999") == "unknown"


async def test_traceparent_is_adopted_only_from_inside_the_seal(transport):
    parent = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"
    tracer = HookTracer()
    async with serve(transport, tracer=tracer) as broker:
        async with AgentClient(broker.descriptor) as client:
            await client.call("sessions", traceparent=parent)
            await client.call("sessions")
        assert [trace.adopted for trace in tracer.traces] == [[parent], []]
        traced = [event.trace_id for event in broker.audit.terminal()]
        assert traced == ["ab" * 16, "0" * 31 + "1"]
        # Outside of it the very same header is only a header.
        from tests.attacks.toolkit import connect, peer_of

        peer = peer_of(broker)
        async with connect(peer.host) as wire:
            action = peer.m3(await peer.challenge_on(wire))
            reply = await wire.ask(action.request.raw(peer.host, b"traceparent: " + parent.encode()))
        assert action.open(reply.body)["status"] == 200
        assert tracer.traces[-1].adopted == []
        # And before the caller is known to be within its rate it is not adopted either.
        assert len(tracer.ended) == 3


async def test_a_descriptor_of_the_wrong_token_is_refused(transport):
    async with serve(transport) as broker:
        client = AgentClient(replace(broker.descriptor, token=bytes(32)))
        with pytest.raises(Refused):
            await client.call("sessions")
        await client.aclose()
