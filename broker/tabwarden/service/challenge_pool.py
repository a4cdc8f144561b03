"""Challenges made ahead of need: fresh one-use key pairs, one Merkle root, one pair of signatures.

A signature and a key pair cost more than everything else in a call together, so they are made when
nobody waits for them. Making a key pair holds the interpreter lock, so a thread would gain nothing: each
challenge handed out has one key pair made on the loop just after (`replenish`), while its client is busy
with its own part. A full batch is signed in a thread, since signing releases the lock.
"""

import os
from collections import deque
from dataclasses import dataclass, field

import trio

from tabwarden.limits import CHALLENGE_ID_BYTES, NONCE_BYTES, Limits
from tabwarden.ports import Clock
from tabwarden.protocol.challenge import Leaf, SignedLeaf, sign_batch
from tabwarden.protocol.primitives import Ed25519Signer, KemKey, PqProvider, PqSigner, X25519Key


@dataclass(frozen=True, slots=True, eq=False)
class ReadyChallenge:
    """A signed leaf and its private keys."""

    signed: SignedLeaf
    kem: KemKey = field(repr=False)
    x: X25519Key = field(repr=False)


class _Turn:
    """One place in the line; the challenge is put into it, so that nobody can step in between."""

    __slots__ = ("challenge", "served")

    def __init__(self) -> None:
        self.served = trio.Event()
        self.challenge: ReadyChallenge | None = None


class ChallengePool:
    """First in, first out, for challenges and for those who wait for one.

    `run()` must be running for the pool to fill. `signatures` counts pairs of signatures made, `signed` the
    challenges under them.
    """

    def __init__(
        self,
        instance: bytes,
        ed: Ed25519Signer,
        pq: PqSigner,
        provider: PqProvider,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self._instance = instance
        self._ed = ed
        self._pq = pq
        self._provider = provider
        self._limits = limits
        self._clock = clock
        self._ready: deque[ReadyChallenge] = deque()
        self._waiting: deque[_Turn] = deque()
        self._stock: list[tuple[KemKey, X25519Key]] = []
        self._wanted = trio.Event()
        self._taken_lately = 0
        self.signatures = 0
        self.signed = 0

    def __len__(self) -> int:
        return len(self._ready)

    def take_ready(self) -> ReadyChallenge | None:
        """The oldest ready challenge, without waiting; None when there is none or others wait already."""
        if self._waiting:
            return None
        return self._pop()

    async def take(self) -> ReadyChallenge:
        """The oldest ready challenge; waits in line for the batch being made. Cancel it to give up."""
        challenge = self.take_ready()
        if challenge is not None:
            return challenge
        turn = _Turn()
        self._waiting.append(turn)
        self._wanted.set()
        try:
            await turn.served.wait()
        except trio.Cancelled:
            if turn.challenge is None:
                self._waiting.remove(turn)
            else:
                # Served and cancelled at once: it goes to the next in line.
                self._ready.appendleft(turn.challenge)
                self._serve_waiting()
            raise
        assert turn.challenge is not None  # noqa: S101 - set before the event
        return turn.challenge

    def _pop(self) -> ReadyChallenge | None:
        now = self._clock.boottime_ms()
        ready = self._ready
        # A leaf must outlive the time in which its new holder may use it.
        soonest = now + self._limits.challenge_lifetime_ms
        while ready and ready[0].signed.leaf.not_after <= soonest:
            ready.popleft()
        if not ready:
            return None
        self._taken_lately += 1
        return ready.popleft()

    @property
    def _batch_size(self) -> int:
        busy = self._waiting or self._taken_lately >= self._limits.idle_batch_size // 2
        return self._limits.batch_size if busy else self._limits.idle_batch_size

    def _serve_waiting(self) -> None:
        while self._waiting and (challenge := self._pop()) is not None:
            turn = self._waiting.popleft()
            turn.challenge = challenge
            turn.served.set()

    def replenish(self) -> None:
        """Make up for one challenge that was handed out; wakes `run` when there is more to do than that."""
        if self._lacking() > 0:
            self._make_key()
        if self._lacking() > 0 or self._signing_is_due():
            self._wanted.set()

    async def run(self) -> None:
        """Keep the pool filled until cancelled: one small batch while idle, two full ones while busy."""
        while True:
            self._drop_stale()
            if self._signing_is_due():
                await self._sign()
            elif self._lacking() > 0:
                self._make_key()
                await trio.lowlevel.checkpoint()
            else:
                await self._rest()

    def _lacking(self) -> int:
        size = self._batch_size
        target = size if size == self._limits.idle_batch_size else 2 * size
        return target - len(self._ready) - len(self._stock)

    def _make_key(self) -> None:
        self._stock.append((self._provider.kem_key(), X25519Key()))

    def _signing_is_due(self) -> bool:
        size = self._batch_size
        # With an empty pool those who wait are served by what there is, but not by a signature each.
        if self._ready:
            return len(self._ready) < size <= len(self._stock)
        return len(self._stock) >= min(size, max(len(self._waiting), self._limits.idle_batch_size))

    async def _rest(self) -> None:
        self._wanted = trio.Event()
        with trio.move_on_after(self._renewal_s()) as resting:
            await self._wanted.wait()
        if resting.cancelled_caught:
            self._taken_lately = 0

    def _renewal_s(self) -> float:
        # In time for the challenges in the pool to be replaced before they are too old to hand out.
        usable_ms = self._limits.leaf_lifetime_ms - self._limits.challenge_lifetime_ms
        return max(usable_ms * 0.9, 100) / 1000

    def _drop_stale(self) -> None:
        now = self._clock.boottime_ms()
        while self._ready and self._ready[0].signed.leaf.not_after - now <= (
            self._limits.leaf_lifetime_ms - self._renewal_s() * 1000 + 1
        ):
            self._ready.popleft()

    async def _sign(self) -> None:
        size = self._batch_size
        keys, self._stock = self._stock[:size], self._stock[size:]
        not_after = self._clock.boottime_ms() + self._limits.leaf_lifetime_ms
        leaves = [
            Leaf(
                self._instance,
                os.urandom(CHALLENGE_ID_BYTES),
                os.urandom(NONCE_BYTES),
                kem.public,
                x.public,
                not_after,
            )
            for kem, x in keys
        ]
        signed = await trio.to_thread.run_sync(sign_batch, leaves, self._ed, self._pq)
        self.signatures += 1
        self.signed += len(signed)
        self._ready.extend(ReadyChallenge(leaf, kem, x) for leaf, (kem, x) in zip(signed, keys, strict=True))
        self._serve_waiting()
