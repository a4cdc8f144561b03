"""What was begun under another policy ends, and nothing of it leaves."""

import pytest
import trio
import trio.testing
from tabwarden.authority.principals import Grant
from tabwarden.control import IssuedPrincipal
from tabwarden.errors import ConfigurationError

from tests.attacks.serving import serve, until
from tests.attacks.toolkit import Peer, connect, envelope, peer_of
from tests.support.fakes import ManualClock

TAB = "00000000-0000-0000-0000-000000000000"


async def test_a_result_is_not_released_though_something_was_done(transport):
    begun, marked = trio.Event(), {"completed": True}

    async def deaf(arguments: object, context: object) -> dict[str, bool]:
        context.effects_done()  # type: ignore[attr-defined]
        begun.set()
        with trio.CancelScope(shield=True), trio.move_on_after(0.05):
            await trio.sleep_forever()
        return marked

    async with serve(transport, allow=("reload",), actions={"reload": deaf}) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker), envelope("reload", args={"sessionId": TAB}))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await begun.wait()
            await broker.control.policy_changed()
            message = action.open((await wire.receive()).body)
        assert (message["status"], message["body"]) == (409, {"code": "stale", "effect": "committed"})
        [event] = broker.audit.terminal()
        assert (event.outcome, event.code, event.committed) == ("failed", "stale", True)


async def test_a_deaf_adapter_holds_no_policy_up(transport):
    begun, release = trio.Event(), trio.Event()

    async def deaf(arguments: object, context: object) -> list[object]:
        begun.set()
        with trio.CancelScope(shield=True):
            await release.wait()
        return []

    async with serve(transport, actions={"sessions": deaf}, leftovers=True) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await begun.wait()
            await broker.control.policy_changed()
            assert broker.control.statistics().calls_in_flight == 0
            message = action.open((await wire.receive()).body)
            assert message["body"]["code"] == "stale"
        release.set()
        await until(lambda: len(broker.audit.terminal()) == 1)


async def test_credentials_stay_and_are_told(transport):
    clock = ManualClock()
    async with serve(transport, identity_mode="individual", clock=clock) as broker:
        control = broker.control
        await control.reconcile_principals([Grant("two", 3), Grant("one", 1), Grant("three", 1)])
        await control.issue_principal("two", 3)
        await control.issue_principal("one", 1, clock.wall + 1000)
        await control.policy_changed()
        assert control.principals() == (
            IssuedPrincipal("one", 1, clock.wall + 1000),
            IssuedPrincipal("two", 3, None),
        )
        clock.advance(1000)
        assert [one.principal_id for one in control.principals()] == ["two"]


async def test_nobody_is_named_in_legacy_mode(transport):
    async with serve(transport) as broker:
        assert broker.control.principals() == ()


async def test_nobody_is_answered_while_an_adapter_of_a_revoked_agent_holds_out(transport):
    begun, release, go = [trio.Event(), trio.Event()], trio.Event(), trio.Event()
    replies: list[object] = []

    async def act(arguments: object, context: object) -> list[object]:
        if context.caller.principal_id == "one":  # type: ignore[attr-defined]
            begun[0].set()
            with trio.CancelScope(shield=True):
                await release.wait()
        else:
            begun[1].set()
            await go.wait()
        return []

    async with serve(
        transport, identity_mode="individual", actions={"sessions": act}, leftovers=True
    ) as broker:
        control = broker.control
        await control.reconcile_principals([Grant("one", 1), Grant("two", 1)])
        one, two = [
            Peer(await control.issue_principal(name, 1), broker.runtime.clock) for name in ("one", "two")
        ]
        async with connect(one.host) as gone, trio.open_nursery() as nursery:
            await gone.send(one.m3(await one.challenge(broker)).request.raw(one.host))

            async def other() -> None:
                replies.append(await two.call(broker))

            nursery.start_soon(other)
            for event in begun:
                await event.wait()
            nursery.start_soon(control.policy_changed, [Grant("two", 1)])
            await trio.testing.wait_all_tasks_blocked()
            go.set()
            await until(lambda: len(replies) == 1)
            assert replies == [(409, {"code": "stale", "effect": "not_started"})]
            release.set()
        codes = {event.principal_id: event.code for event in broker.audit.terminal()}
        assert codes == {"one": "revoked", "two": "stale"}
        assert [issued.principal_id for issued in control.principals()] == ["two"]


async def test_time_that_was_seen_before_the_start_counts(transport):
    clock = ManualClock()
    seen = clock.wall + 10_000
    async with serve(transport, identity_mode="individual", clock=clock, latest_wall_ms=seen) as broker:
        await broker.control.reconcile_principals([Grant("one", 1), Grant("over", 1, seen)])
        for name, expires in (("one", seen - 1), ("over", None)):
            with pytest.raises(ConfigurationError):
                await broker.control.issue_principal(name, 1, expires)
        assert broker.control.principals() == ()
