"""The one await before the seal: waiting for a challenge while the pool is empty."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
from tabwarden.errors import Refusal
from tabwarden.limits import Limits
from tabwarden.protocol.primitives import KemKey, NativeProvider, PqSigner

from tests.attacks.serving import Broker, serve, until
from tests.attacks.toolkit import connect, peer_of
from tests.service.stations import at_once


class SlowSigner:
    """A real signer that can be held up, as a busy machine holds one up."""

    def __init__(self, signer: PqSigner) -> None:
        self._signer = signer
        self.public = signer.public
        self.going = threading.Event()
        self.once = threading.Semaphore(0)

    def sign(self, data: bytes, context: bytes) -> bytes:
        while not self.once.acquire(timeout=0.005):
            if self.going.is_set():
                break
        return self._signer.sign(data, context)


class SlowProvider(NativeProvider):
    """Its one signer is a `SlowSigner`."""

    def signer(self, seed: bytes | None = None) -> SlowSigner:  # type: ignore[override]
        self.slow = SlowSigner(super().signer(seed))
        return self.slow


@contextmanager
def going(provider: SlowProvider) -> Iterator[None]:
    """Whatever happens in the block, the signing thread ends."""
    try:
        yield
    finally:
        if hasattr(provider, "slow"):
            provider.slow.going.set()


def _waiting(broker: Broker) -> int:
    return len(broker.runtime.pool._waiting)


def _held(broker: Broker) -> int:
    return len(broker.runtime.registry._accounts["legacy"].challenges)


async def test_those_who_wait_longest_are_served_first(transport):
    provider = SlowProvider()
    limits = Limits(batch_size=8, outstanding_challenges=64)
    with going(provider):
        async with serve(transport, provider=provider, limits=limits, filled=False) as broker:
            peer = peer_of(broker)
            served: list[int] = []

            async def ask(number: int) -> None:
                await peer.challenge(broker)
                served.append(number)

            async with trio.open_nursery() as nursery:
                for number in range(12):
                    nursery.start_soon(ask, number)
                    await until(lambda number=number: _waiting(broker) == number + 1)
                assert _held(broker) == 12
                provider.slow.once.release()
                await until(lambda: len(served) == 8)
                assert sorted(served) == list(range(8))
                assert _waiting(broker) == 4
                assert broker.control.statistics().signatures == 1
                provider.slow.going.set()
            assert sorted(served[8:]) == [8, 9, 10, 11]
            assert await peer.call(broker) == (200, [])


@pytest.mark.parametrize("how", ["deadline", "revoked", "closed", "hung up", "reset", "cancelled"])
async def test_waiting_for_a_challenge_ends(transport, how):
    provider = SlowProvider()
    limits = Limits(action_deadline_s=0.1 if how == "deadline" else 10, batch_size=8)
    with going(provider):
        async with serve(transport, provider=provider, limits=limits, filled=False) as broker:
            peer = peer_of(broker)
            async with connect(peer.host) as wire:
                await wire.send(peer.m1().raw(peer.host))
                await until(lambda: _waiting(broker) == 1)
                if how == "deadline":
                    # Without a challenge there is nothing to seal a status with.
                    assert await wire.rest() in (b"", broker.refusal)
                elif how == "revoked":
                    await broker.control.revoke()
                    provider.slow.going.set()
                    assert await wire.rest() == broker.refusal
                    assert broker.refused(Refusal.REVOKED) == 1
                elif how == "closed":
                    provider.slow.going.set()
                    await broker.control.close()
                    reply = await wire.rest() if transport == "own" else broker.refusal
                    assert reply in (b"", broker.refusal) or b" 200 OK" in reply
                elif how == "cancelled":
                    broker.control._nursery.cancel_scope.cancel()
                    provider.slow.going.set()
                    if transport == "own":
                        assert await wire.rest() == b""
                elif how == "hung up":
                    wire.close()
                else:
                    wire.reset()
            provider.slow.going.set()
            assert broker.audit.agent_events == []
            if how in ("hung up", "reset"):
                await until(lambda: _waiting(broker) == 0)
                await broker.quiet()
                assert await peer.call(broker) == (200, [])
        assert _waiting(broker) == 0 or how in ("closed", "cancelled")


async def test_one_who_gives_up_hands_its_turn_on(transport):
    provider = SlowProvider()
    limits = Limits(action_deadline_s=0.2, batch_size=8)
    with going(provider):
        async with serve(transport, provider=provider, limits=limits, filled=False) as broker:
            peer = peer_of(broker)
            async with connect(peer.host) as wire:
                await wire.send(peer.m1().raw(peer.host))
                await wire.rest()
            assert _waiting(broker) == 0
            assert _held(broker) == 0
            provider.slow.going.set()
            await until(lambda: broker.control.statistics().ready_challenges == 8)
            assert await peer.call(broker) == (200, [])


async def test_revoked_in_the_very_moment_of_being_served():
    provider = SlowProvider()
    with going(provider):
        async with serve(provider=provider, filled=False) as broker:
            peer = peer_of(broker)
            async with connect(peer.host) as wire:
                await wire.send(peer.m1().raw(peer.host))
                await until(lambda: _waiting(broker) == 1)
                provider.slow.going.set()
                await until(lambda: broker.control.statistics().signatures == 1)
                at_once(broker.control.revoke())
                reply = await wire.receive()
            assert reply.raw == broker.refusal or reply.status == 200
            # Whichever came first: what was handed out opens nothing.
            assert broker.runtime.registry._accounts["legacy"].challenges._bound == {}


class Failing(NativeProvider):
    """Its keys fail until they are mended."""

    broken = True

    def kem_key(self, seed: bytes | None = None) -> KemKey:
        if self.broken:
            self.broken = False
            raise RuntimeError("marked")
        return super().kem_key(seed)


async def test_a_pool_that_fails_is_reported_and_tries_again():
    async with serve(provider=Failing(), filled=False) as broker:
        await until(lambda: broker.reasons.told == ["challenge-pool-failed"])
        # The next try is a second later; a caller waits for it.
        assert await peer_of(broker).call(broker) == (200, [])
