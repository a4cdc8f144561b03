"""Every await of the pipeline, ended from outside in every way: one outcome, the right code, nothing left."""

import math
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden import start_agent_control
from tabwarden.authority.principals import Grant
from tabwarden.limits import Limits
from tabwarden.model import TraceOutcome

from tests.attacks.serving import OWN, Broker, serve, until
from tests.attacks.toolkit import Peer, Wire, connect
from tests.service.stations import STATIONS, HookTracer, Station

# What ends the call: (code in the audit, sealed status or None when the refusal or nothing is sent)
ENDINGS = {
    "deadline": ("deadline", 504),
    "principal revoked": ("revoked", None),
    "grant withdrawn": ("revoked", None),
    "issued again": ("revoked", None),
    "all revoked": ("revoked", None),
    "closed": ("shutting-down", 503),
    "policy changed": ("stale", 409),
    "hung up": ("disconnected", None),
    "reset": ("disconnected", None),
}
OF_ONE = {"principal revoked", "grant withdrawn", "issued again", "hung up", "reset"}


async def _two(broker: Broker) -> tuple[Peer, Peer]:
    await broker.control.reconcile_principals([Grant("one", 1), Grant("two", 1)])
    one, two = [await broker.control.issue_principal(name, 1) for name in ("one", "two")]
    return Peer(one, broker.runtime.clock), Peer(two, broker.runtime.clock)


async def _end(ending: str, broker: Broker, wire: Wire) -> None:
    control = broker.control
    if ending == "principal revoked":
        await control.revoke_principal("one")
    elif ending == "grant withdrawn":
        await control.reconcile_principals([Grant("two", 1)])
    elif ending == "issued again":
        await control.issue_principal("one", 1)
    elif ending == "all revoked":
        await control.revoke()
    elif ending == "closed":
        await control.close()
    elif ending == "policy changed":
        await control.policy_changed()
    elif ending == "hung up":
        wire.close()
    elif ending == "reset":
        wire.reset()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("place", STATIONS)
async def test_a_call_is_ended_wherever_it_waits(transport, place, ending):
    code, status = ENDINGS[ending]
    station, tracer = Station(place), HookTracer()
    # A person's time is not the action's: only the deadline that runs there ends the wait.
    short = (
        {"person_wait_s" if place == "person" else "action_deadline_s": 0.1} if ending == "deadline" else {}
    )
    async with serve(
        transport,
        authorize=station.authorize,
        actions={"sessions": station.act},
        audit=station.audit,
        tracer=tracer,
        identity_mode="individual",
        limits=Limits(batch_size=8, **short),
    ) as broker:
        one, two = await _two(broker)
        replies: list[object] = []

        async def honest() -> None:
            replies.append(await two.call(broker))

        async with trio.open_nursery() as nursery:
            if ending in OF_ONE:
                nursery.start_soon(honest)
                await until(lambda: station.waiting == 1)
            action = one.m3(await one.challenge(broker))
            async with connect(one.host) as wire:
                await wire.send(action.request.raw(one.host))
                others = ending in OF_ONE
                if ending != "deadline":
                    await until(lambda: station.waiting == 1 + others)
                await _end(ending, broker, wire)
                if status is not None:
                    message = action.open((await wire.receive()).body)
                    assert (message["status"], message["body"]["code"]) == (status, code)
                    assert message["body"]["effect"] == "not_started"
                elif ending not in ("hung up", "reset"):
                    assert await wire.rest() == broker.refusal
            await until(lambda: len(broker.audit.terminal()) == 1)
            # The other principal's call is still where it was, and comes to its end.
            assert station.waiting == others
            station.opened.set()
        assert station.cancelled == 1
        assert replies == ([(200, [])] if others else [])
        mine = [event for event in broker.audit.terminal() if event.principal_id == "one"]
        assert [event.code for event in mine] == [code]
        assert station.dispatched == (place == "dispatch") + others
        authorized = [event for event in broker.audit.agent_events if event.outcome == "authorized"]
        assert len(authorized) == (place in ("durable", "dispatch")) + others
        assert broker.control.statistics().calls_in_flight == 0
        outcome = {
            "deadline": "deadline",
            "revoked": "revoked",
            "shutting-down": "closed",
            "stale": "policy-changed",
        }.get(code, "disconnected")
        assert (TraceOutcome(outcome), code) in tracer.ended
        if ending not in ("all revoked", "closed"):
            assert await two.call(broker) == (200, [])


@pytest.mark.parametrize("place", STATIONS)
async def test_the_hosts_nursery_is_cancelled(place):
    station = Station(place)
    peers: list[Peer] = []
    async with trio.open_nursery() as host:
        start = partial(start_agent_control, actions={"sessions": station.act}, audit=station.audit)
        control = await start(host, authorize=station.authorize)
        broker = Broker(OWN, control, station.audit, None)
        peer = Peer(broker.descriptor, broker.runtime.clock)
        peers.append(peer)
        async with connect(peer.host) as wire:
            action = peer.m3(await peer.challenge(broker))
            await wire.send(action.request.raw(peer.host))
            await until(lambda: station.waiting == 1)
            host.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await until(lambda: len(station.audit.terminal()) == 1)
    assert [event.code for event in station.audit.terminal()] == ["shutting-down"]
    statistics = control.statistics()
    assert (statistics.calls_in_flight, statistics.connections) == (0, 0)
    # Closing what is gone is no fault.
    await control.close()
    await control.revoke()


async def test_the_hosts_nursery_is_cancelled_while_the_adapter_has_a_nursery_of_its_own():
    station, inside = Station("none"), trio.Event()

    async def act(arguments: object, context: object) -> list[object]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(trio.sleep_forever)
            inside.set()
        return []

    async with trio.open_nursery() as host:
        control = await start_agent_control(
            host, authorize=station.authorize, actions={"sessions": act}, audit=station.audit
        )
        broker = Broker(OWN, control, station.audit, None)
        peer = Peer(broker.descriptor, broker.runtime.clock)
        async with connect(peer.host) as wire:
            action = peer.m3(await peer.challenge(broker))
            await wire.send(action.request.raw(peer.host))
            await inside.wait()
            host.cancel_scope.cancel()
    # Cancellation came in a group; it is still a shut-down and no failure.
    assert [event.code for event in station.audit.terminal()] == ["shutting-down"]


async def test_the_first_cause_stays(transport):
    station = Station("dispatch")
    async with serve(
        transport,
        authorize=station.authorize,
        actions={"sessions": station.act},
        audit=station.audit,
        identity_mode="individual",
    ) as broker:
        one, _ = await _two(broker)
        action = one.m3(await one.challenge(broker))
        async with connect(one.host) as wire:
            await wire.send(action.request.raw(one.host))
            await until(lambda: station.waiting == 1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(broker.control.revoke_principal, "one")
                nursery.start_soon(broker.control.revoke)
                nursery.start_soon(broker.control.close)
        assert len(station.audit.terminal()) == 1
        assert station.audit.terminal()[0].code in ("revoked", "shutting-down")
        assert broker.control.statistics().calls_in_flight == 0


async def test_a_persons_time_does_not_count_as_the_actions(transport, autojump_clock):
    autojump_clock.autojump_threshold = math.inf
    station = Station("person")
    limits = Limits(action_deadline_s=0.3, person_wait_s=30, batch_size=8)
    async with serve(
        transport,
        authorize=station.authorize,
        actions={"sessions": station.act},
        audit=station.audit,
        limits=limits,
    ) as broker:
        peer = Peer(broker.descriptor, broker.runtime.clock)
        replies: list[object] = []

        async def honest() -> None:
            replies.append(await peer.call(broker))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(honest)
            await until(lambda: station.waiting == 1)
            autojump_clock.jump(0.8)  # well over the action's own deadline
            await trio.testing.wait_all_tasks_blocked()
            assert station.waiting == 1
            station.opened.set()
        assert replies == [(200, [])]


async def test_what_was_left_of_the_actions_time_runs_on_after_the_person(transport, autojump_clock):
    autojump_clock.autojump_threshold = math.inf
    station = Station("person")
    limits = Limits(action_deadline_s=0.3, person_wait_s=30, batch_size=8)
    begun, ended = trio.Event(), trio.Event()

    async def act(arguments: object, context: object) -> list[object]:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()
        return []

    async with serve(
        transport, authorize=station.authorize, actions={"sessions": act}, audit=station.audit, limits=limits
    ) as broker:
        peer = Peer(broker.descriptor, broker.runtime.clock)
        replies: list[Any] = []

        async def honest() -> None:
            replies.append(await peer.call(broker))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(honest)
            await until(lambda: station.waiting == 1)
            autojump_clock.jump(0.8)
            station.opened.set()
            await begun.wait()
            autojump_clock.jump(0.2)
            await trio.testing.wait_all_tasks_blocked()
            assert not ended.is_set()
            autojump_clock.jump(0.2)
        assert ended.is_set()
        ((status, body),) = replies
        assert (status, body["code"]) == (504, "deadline")
