"""Individual mode: grants, what is issued under them, and how it is taken away."""

import pytest
import trio
from tabwarden import AgentClient, Grant
from tabwarden.errors import ConfigurationError, Refused
from tabwarden.model import AgentEvent, ConnectionDescriptor

from tests.attacks.serving import serve, until
from tests.attacks.toolkit import Peer, peer_of
from tests.service.stations import Station, lifecycle
from tests.support.fakes import ManualClock


async def test_individual_mode_has_no_token():
    async with serve(identity_mode="individual") as broker:
        control = broker.control
        assert control.token is None
        assert control.descriptor is None
        assert broker.runtime.registry.find("legacy", 0, 0) is None
        with pytest.raises(ConfigurationError):
            broker.runtime.registry.pair_legacy(bytes(32))
        with pytest.raises(ConfigurationError):
            Grant("legacy", 1)


async def test_legacy_mode_issues_nobody():
    async with serve() as broker:
        with pytest.raises(ConfigurationError):
            await broker.control.issue_principal("one", 1)
        with pytest.raises(ConfigurationError):
            await broker.control.reconcile_principals([Grant("one", 1)])
        assert await peer_of(broker).call(broker) == (200, [])


async def test_issuing_needs_the_very_grant(transport):
    clock = ManualClock()
    async with serve(transport, identity_mode="individual", clock=clock) as broker:
        control = broker.control
        await control.reconcile_principals(
            [
                Grant("one", 2),
                Grant("off", 1, enabled=False),
                Grant("past", 1, clock.wall),
                Grant("soon", 1, clock.wall + 5000),
            ]
        )
        for asked in (("none", 1), ("one", 1), ("one", 3), ("off", 1), ("past", 1)):
            with pytest.raises(ConfigurationError):
                await control.issue_principal(*asked)
        with pytest.raises(ConfigurationError):
            await control.issue_principal("one", 2, clock.wall)
        descriptor = await control.issue_principal("one", 2)
        assert (descriptor.principal_id, descriptor.generation) == ("one", 2)
        # The earlier of the two ends counts.
        assert (await control.issue_principal("soon", 1)).expires_at_ms == clock.wall + 5000
        later = await control.issue_principal("soon", 1, clock.wall + 9000)
        assert later.expires_at_ms == clock.wall + 5000
        sooner = await control.issue_principal("soon", 1, clock.wall + 1000)
        assert sooner.expires_at_ms == clock.wall + 1000
        status, _ = await Peer(descriptor, clock).call(broker)
        assert status == 200
        [event] = broker.audit.terminal()
        assert isinstance(event, AgentEvent)
        assert (event.principal_id, event.generation) == ("one", 2)
        # A lower generation than one that was seen is as good as none.
        await control.reconcile_principals([Grant("one", 1)])
        with pytest.raises(ConfigurationError):
            await control.issue_principal("one", 1)


async def test_two_grants_of_one_id_change_nothing():
    async with serve(identity_mode="individual") as broker:
        await broker.control.reconcile_principals([Grant("one", 1)])
        peer = Peer(await broker.control.issue_principal("one", 1), broker.runtime.clock)
        with pytest.raises(ConfigurationError):
            await broker.control.reconcile_principals([Grant("one", 1), Grant("one", 2)])
        assert await peer.call(broker) == (200, [])


async def test_an_issue_that_is_refused_ends_no_call(transport):
    station = Station("dispatch")
    async with serve(
        transport,
        identity_mode="individual",
        authorize=station.authorize,
        actions={"sessions": station.act},
        audit=station.audit,
    ) as broker:
        await broker.control.reconcile_principals([Grant("one", 1)])
        peer = Peer(await broker.control.issue_principal("one", 1), broker.runtime.clock)
        replies: list[object] = []

        async def honest() -> None:
            replies.append(await peer.call(broker))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(honest)
            await until(lambda: station.waiting == 1)
            with pytest.raises(ConfigurationError):
                await broker.control.issue_principal("one", 2)
            station.opened.set()
        assert replies == [(200, [])]


async def test_a_principals_credential_that_cannot_be_stored_does_not_exist(transport):
    seen: list[ConnectionDescriptor] = []

    async def persist(descriptor: ConnectionDescriptor) -> None:
        seen.append(descriptor)
        if len(seen) == 2:
            raise OSError("marked")

    async with serve(transport, identity_mode="individual", persist_credential=persist) as broker:
        await broker.control.reconcile_principals([Grant("one", 1)])
        old = Peer(await broker.control.issue_principal("one", 1), broker.runtime.clock)
        assert await old.call(broker) == (200, [])
        with pytest.raises(OSError, match="marked"):
            await broker.control.issue_principal("one", 1)
        for descriptor in seen:
            async with AgentClient(descriptor) as client:
                with pytest.raises(Refused):
                    await client.call("sessions")
        await broker.control.issue_principal("one", 1)
        assert lifecycle(broker.audit) == [
            ("started", None, None),
            ("principal-issued", "one", 1),
            ("principal-issued", "one", 1),
        ]


async def test_the_audit_of_principals_lives():
    async with serve(identity_mode="individual") as broker:
        control = broker.control
        await control.reconcile_principals([Grant("one", 1), Grant("two", 1)])
        await control.issue_principal("one", 1)
        await control.issue_principal("two", 1)
        await control.revoke_principal("one")
        await control.revoke_principal("one")
        await control.revoke_principal("nobody")
        await control.reconcile_principals([])
        await control.revoke()
        await control.revoke()
        await control.close()
        await control.close()
        assert lifecycle(broker.audit) == [
            ("started", None, None),
            ("principal-issued", "one", 1),
            ("principal-issued", "two", 1),
            ("principal-revoked", "one", 1),
            ("principal-revoked", "two", 1),
            ("revoked", None, None),
            ("closed", None, None),
        ]


async def test_revoked_for_good(transport):
    async with serve(transport, identity_mode="individual") as broker:
        control = broker.control
        await control.reconcile_principals([Grant("one", 1)])
        peer = Peer(await control.issue_principal("one", 1), broker.runtime.clock)
        await control.revoke()
        await control.reconcile_principals([Grant("one", 1), Grant("two", 1)])
        for name in ("one", "two"):
            with pytest.raises(ConfigurationError):
                await control.issue_principal(name, 1)
        async with AgentClient(peer.descriptor) as client:
            with pytest.raises(Refused):
                await client.call("sessions")
