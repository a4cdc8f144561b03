"""What was begun under another policy ends, and nothing of it leaves."""

import trio
from tabwarden.authority.principals import Grant
from tabwarden.control import IssuedPrincipal

from tests.attacks.serving import serve, until
from tests.attacks.toolkit import connect, envelope, peer_of
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
