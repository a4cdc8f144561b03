"""The public face: starting, pairing, issuing, revoking, closing."""

import pytest
import trio
from tabwarden import AgentClient, start_agent_control
from tabwarden.errors import ConfigurationError, HostReason, Unreachable
from tabwarden.limits import Limits
from tabwarden.model import ConnectionDescriptor
from tabwarden.protocol.primitives import NativeProvider

from tests.attacks.serving import free_port, no_tabs, serve, until
from tests.attacks.toolkit import connect, peer_of
from tests.service.stations import Station, lifecycle
from tests.support.fakes import AllowOnly, MemoryAudit


async def _start(nursery: trio.Nursery, **options: object):
    given = {"authorize": AllowOnly("sessions"), "actions": {"sessions": no_tabs}, "audit": MemoryAudit()}
    return await start_agent_control(nursery, **(given | options))


async def test_what_a_legacy_broker_shows():
    async with serve() as broker:
        control = broker.control
        descriptor = control.descriptor
        assert descriptor is not None
        assert control.address == descriptor.address
        assert control.address.startswith("127.0.0.1:")
        assert control.token == descriptor.token
        assert len(control.token) == 32
        assert (len(control.ed_public), len(control.pq_public)) == (32, 2592)
        assert control.protocol == descriptor.protocol
        assert (descriptor.principal_id, descriptor.generation) == ("legacy", 0)
        assert descriptor.expires_at_ms is None
        assert control.token.hex() not in repr(descriptor)
        assert repr(control.token) not in repr(descriptor)


async def test_two_brokers_share_nothing():
    async with serve() as one, serve() as two:
        for name in ("address", "token", "ed_public", "pq_public"):
            assert getattr(one.control, name) != getattr(two.control, name)


async def test_the_listener_is_on_loopback_only():
    async with serve() as broker:
        listener = broker.control._endpoint._listener
        assert listener.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "options",
    [
        {"credential_file": "token.json"},
        {"credential_file": b""},
        {"actions": {"no:such": no_tabs}},
        {"timeout": 0},
        {"max_requests_per_minute": 0},
        {"timeout": float("nan")},
    ],
    ids=["file name", "file", "unknown action", "no time", "no requests", "no number"],
)
async def test_what_cannot_be_is_refused_before_anything_is_opened(options):
    audit = MemoryAudit()
    async with trio.open_nursery() as nursery:
        with pytest.raises(ConfigurationError):
            await _start(nursery, audit=audit, **options)
        assert not nursery.child_tasks
    assert audit.events == []


async def test_the_short_forms_of_two_limits():
    async with serve(timeout=3, max_requests_per_minute=7, limits=Limits(batch_size=8)) as broker:
        limits = broker.runtime.limits
        assert (limits.action_deadline_s, limits.requests_per_minute, limits.batch_size) == (3, 7, 8)
    async with serve(limits=Limits(action_deadline_s=4, batch_size=8)) as broker:
        assert broker.runtime.limits.action_deadline_s == 4


async def test_persisting_the_one_legacy_credential():
    kept: list[ConnectionDescriptor] = []

    async def persist(descriptor: ConnectionDescriptor) -> None:
        await trio.lowlevel.checkpoint()
        kept.append(descriptor)

    async with serve(persist_credential=persist) as broker:
        assert kept == [broker.control.descriptor]
        assert await peer_of(broker).call(broker) == (200, [])
        assert lifecycle(broker.audit) == [("started", None, None)]


@pytest.mark.parametrize("error", [OSError("marked"), KeyboardInterrupt()], ids=repr)
async def test_a_credential_that_cannot_be_stored_leaves_no_broker(error):
    seen: list[ConnectionDescriptor] = []

    async def persist(descriptor: ConnectionDescriptor) -> None:
        seen.append(descriptor)
        raise error

    audit = MemoryAudit()
    async with trio.open_nursery() as nursery:
        with pytest.raises(type(error)):
            await _start(nursery, audit=audit, persist_credential=persist)
        # The host may go on; of the broker nothing is left, and what was made opens nothing.
        assert not nursery.child_tasks
        async with AgentClient(seen[0]) as client:
            with pytest.raises(Unreachable):
                await client.call("sessions")
    assert lifecycle(audit) == [("closed", None, None)]


async def test_cancelled_while_persisting():
    async def persist(descriptor: ConnectionDescriptor) -> None:
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        with trio.move_on_after(0.1) as scope:
            await _start(nursery, persist_credential=persist)
        assert scope.cancelled_caught
        assert not nursery.child_tasks


async def test_a_signer_that_cannot_be_made_leaves_nothing_open():
    class NoSigner(NativeProvider):
        def signer(self, seed: bytes | None = None):
            raise RuntimeError("marked")

    async with trio.open_nursery() as nursery:
        with pytest.raises(RuntimeError):
            await _start(nursery, provider=NoSigner())
        assert not nursery.child_tasks


async def test_revoke_returns_when_no_work_is_left_for_everybody_who_asked():
    station = Station("dispatch")
    async with serve(
        authorize=station.authorize, actions={"sessions": station.act}, audit=station.audit
    ) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker))
        left: list[int] = []

        async def revoke() -> None:
            await broker.control.revoke()
            left.append(broker.control.statistics().calls_in_flight)

        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await until(lambda: station.waiting == 1)
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(revoke)
        assert left == [0, 0, 0]


async def test_closing_refuses_new_calls_while_the_old_ones_end():
    station, release = Station("none"), trio.Event()

    async def slow(arguments: object, context: object) -> list[object]:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                release_asked.set()
                await release.wait()
        return []

    release_asked = trio.Event()
    limits = Limits(cancel_grace_s=5, batch_size=8)
    async with serve(authorize=station.authorize, actions={"sessions": slow}, limits=limits) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as running, connect(peer.host) as late, trio.open_nursery() as nursery:
            await running.send(action.request.raw(peer.host))
            await until(lambda: broker.control.statistics().calls_in_flight == 1)
            await until(lambda: broker.runtime.calls and next(iter(broker.runtime.calls)).ticket is not None)
            await trio.lowlevel.checkpoint()
            nursery.start_soon(broker.control.close)
            await release_asked.wait()
            await late.send(peer.m3(opened).request.raw(peer.host))
            assert await late.rest() == broker.refusal
            assert broker.refused("shutting-down") == 1
            release.set()
            message = action.open((await running.receive()).body)
            assert (message["status"], message["body"]["code"]) == (503, "shutting-down")
            assert await running.rest() == b""


async def test_an_audit_that_fails_does_not_keep_a_broker_from_closing():
    async with serve() as broker:
        broker.audit.broken = True
        await broker.control.revoke()
        await broker.control.close()
        assert set(broker.reasons.told) == {HostReason.AUDIT_UNAVAILABLE}
        broker.audit.broken = False


async def test_close_is_bounded_by_its_limit_when_the_audit_does_not_answer():
    class Stuck(MemoryAudit):
        async def flush(self) -> None:
            await trio.sleep_forever()

    async with serve(audit=Stuck(), limits=Limits(close_s=0.1, batch_size=8)) as broker:
        with trio.fail_after(3):
            await broker.control.close()


async def test_a_fault_of_the_broker_is_not_the_hosts():
    async with trio.open_nursery() as nursery:
        told: list[HostReason] = []
        control = await _start(nursery, on_error=told.append)

        async def fault() -> None:
            raise RuntimeError("marked")

        control._nursery.start_soon(fault)
        await control._runtime.stopped.wait()
        assert told == [HostReason.INTERNAL_FAULT]
        await control.close()
        assert not nursery.cancel_scope.cancel_called


async def test_serve_at_starts_no_listener():
    bound, address = free_port()
    with bound:
        async with trio.open_nursery() as nursery:
            control = await _start(nursery, serve_at=address)
            assert control.address == address
            assert control._endpoint is None
            assert control.statistics().connections == 0
            await control.close()


@pytest.mark.parametrize("address", ["localhost:80", "0.0.0.0:80", "[::1]:80", "nonsense"])
async def test_serve_at_takes_a_literal_loopback_address_only(address):
    async with trio.open_nursery() as nursery:
        with pytest.raises(ValueError, match="address"):
            await _start(nursery, serve_at=address)
        assert not nursery.child_tasks


async def test_statistics_count_what_happened(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        assert await peer.call(broker) == (200, [])
        assert (await peer.call(broker, b"junk"))[0] == 400
        statistics = broker.control.statistics()
        assert statistics.outcomes == {("sessions", "ok"): 1, ("", "bad-request"): 1}
        assert statistics.refusals == {}
        assert statistics.signatures == 1
        assert statistics.ready_challenges == 6
