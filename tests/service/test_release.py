"""Attacks 44 and 45, and what else can happen between an action's end and its reply's release."""

import pytest
import trio
from tabwarden.authority.principals import Grant
from tabwarden.errors import HostReason, Refusal
from tabwarden.limits import Limits
from tabwarden.model import Phase

from tests.attacks.serving import Broker, serve, until
from tests.attacks.toolkit import Peer, assert_refused, connect, envelope, peer_of
from tests.service.stations import HookTracer, Station, at_once
from tests.support.fakes import ManualClock, MemoryAudit

REVOCATIONS = {
    "principal": lambda broker: broker.control.revoke_principal("one"),
    "all": lambda broker: broker.control.revoke(),
    "grant": lambda broker: broker.control.reconcile_principals([]),
}


async def _one(broker: Broker) -> Peer:
    await broker.control.reconcile_principals([Grant("one", 1)])
    return Peer(await broker.control.issue_principal("one", 1), broker.runtime.clock)


@pytest.mark.parametrize("revocation", REVOCATIONS)
async def test_attack_44_revoked_between_challenge_and_action(transport, revocation):
    async with serve(transport, identity_mode="individual") as broker:
        peer = await _one(broker)
        action = peer.m3(await peer.challenge(broker))
        await REVOCATIONS[revocation](broker)
        await assert_refused(broker, action.request.raw(peer.host), Refusal.PROOF)
        await assert_refused(broker, peer.m1().raw(peer.host), Refusal.PROOF)
        assert broker.audit.agent_events == []
        assert broker.runtime.registry._accounts["one"].challenges._bound == {}


async def test_attack_44_legacy_revocation_is_for_good(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker))
        await broker.control.revoke()
        await assert_refused(broker, action.request.raw(peer.host), Refusal.PROOF)
        await assert_refused(broker, peer.m1().raw(peer.host), Refusal.PROOF)


@pytest.mark.parametrize("revocation", REVOCATIONS)
@pytest.mark.parametrize("where", ["dispatch", "settle", "sealing", "audit phase"])
async def test_attack_45_revoked_so_late_that_the_result_is_there(transport, where, revocation):
    brokers: list[Broker] = []
    audit, armed = MemoryAudit(), [True]

    def revoke() -> None:
        if armed:
            armed.clear()
            at_once(REVOCATIONS[revocation](brokers[0]))

    async def act(arguments: object, context: object) -> list[object]:
        if where == "dispatch":
            # It does not even notice: no checkpoint comes after.
            brokers[0].runtime.registry.remove("one")
        return []

    def hook(phase: Phase) -> None:
        sealing = (where, phase) == ("sealing", Phase.ENCRYPTION)
        if sealing or ((where, phase) == ("audit phase", Phase.AUDIT) and audit.agent_events):
            revoke()

    if where == "settle":
        audit.settle_hook = revoke
    tracer = HookTracer(hook)
    async with serve(
        transport, identity_mode="individual", actions={"sessions": act}, audit=audit, tracer=tracer
    ) as broker:
        brokers.append(broker)
        peer = await _one(broker)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            assert await wire.rest() == broker.refusal
        assert len(audit.terminal()) == 1
        if where != "dispatch":
            assert broker.reasons.told == [HostReason.RESULT_SUPPRESSED]
        await assert_refused(broker, peer.m1().raw(peer.host), Refusal.PROOF)


async def test_attack_45_replaced_by_a_new_credential_while_sealing(transport):
    brokers: list[Broker] = []

    def hook(phase: Phase) -> None:
        if phase is Phase.ENCRYPTION and brokers:
            at_once(brokers[0].control.issue_principal("one", 1))

    async with serve(transport, identity_mode="individual", tracer=HookTracer(hook)) as broker:
        peer = await _one(broker)
        brokers.append(broker)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            assert await wire.rest() == broker.refusal
        assert broker.reasons.told == [HostReason.RESULT_SUPPRESSED]


@pytest.mark.parametrize("place", ["authorize", "durable", "dispatch"])
async def test_a_credential_that_expires_in_mid_call(transport, place):
    clock, station = ManualClock(), Station(place)
    async with serve(
        transport,
        clock=clock,
        identity_mode="individual",
        authorize=station.authorize,
        actions={"sessions": station.act},
        audit=station.audit,
    ) as broker:
        await broker.control.reconcile_principals([Grant("one", 1, clock.wall + 1000)])
        peer = Peer(await broker.control.issue_principal("one", 1), clock)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await until(lambda: station.waiting == 1)
            clock.advance(1000)
            station.opened.set()
            assert await wire.rest() == broker.refusal
        assert [event.code for event in station.audit.terminal()] == ["revoked"]
        assert station.dispatched == (place == "dispatch")
        # Nor is anything recorded as about to begin that was over before.
        authorized = [event for event in station.audit.agent_events if event.outcome == "authorized"]
        assert len(authorized) == (place != "authorize")


@pytest.mark.parametrize("ending", ["revoked", "closed", "principal"])
async def test_an_adapter_that_ignores_cancellation_holds_nobody_up(transport, ending):
    started, release = trio.Event(), trio.Event()

    async def stubborn(arguments: object, context: object) -> list[object]:
        started.set()
        with trio.CancelScope(shield=True):
            await release.wait()
        return []

    # Any wait for the action's own deadline would be much longer than this test may take.
    limits = Limits(action_deadline_s=60, cancel_grace_s=0.05, close_s=0.3, batch_size=8)
    async with serve(
        transport, identity_mode="individual", actions={"sessions": stubborn}, limits=limits, leftovers=True
    ) as broker:
        peer = await _one(broker)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await started.wait()
            with trio.fail_after(5):
                if ending == "revoked":
                    await broker.control.revoke()
                elif ending == "principal":
                    await broker.control.revoke_principal("one")
                else:
                    await broker.control.close()
                assert len(broker.audit.terminal()) == 1
                if ending == "closed":
                    message = action.open((await wire.receive()).body)
                    assert (message["status"], message["body"]["code"]) == (503, "shutting-down")
                else:
                    assert await wire.rest() == broker.refusal
        assert broker.control.statistics().calls_in_flight == 0
        assert HostReason.ADAPTER_IGNORED_CANCELLATION in broker.reasons.told
        release.set()
        assert len(broker.audit.terminal()) == 1


async def test_a_result_that_comes_after_revocation_is_dropped(transport):
    started = trio.Event()

    async def deaf(arguments: object, context: object) -> dict[str, str]:
        started.set()
        with trio.CancelScope() as scope:
            scope.shield = True
            with trio.move_on_after(0.05):
                await trio.sleep_forever()
        return {"text": "marked"}

    async with serve(
        transport, identity_mode="individual", allow=("read",), actions={"read": deaf}
    ) as broker:
        peer = await _one(broker)
        action = peer.m3(await peer.challenge(broker), envelope("read"))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await started.wait()
            await broker.control.revoke_principal("one")
            assert await wire.rest() == broker.refusal
        assert [event.code for event in broker.audit.terminal()] == ["revoked"]
