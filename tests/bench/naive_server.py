"""Peer: the same two-message protocol done straightforwardly, on Quart-Trio and Hypercorn.

Honest, not crippled: the same primitives, checks and binary bodies as the subject, without its ideas. Each
challenge makes a fresh key pair and an inline pair of signatures, and each of a call's two audit records is
one inline write and fsync. Nothing is batched, made ahead or handed to a thread.
"""

import hmac
import json
import os
import secrets
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import trio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA87PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM1024PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from quart import Request, Response, request
from quart_trio import QuartTrio

from tests.bench import naive_crypto as n
from tests.bench.hypercorn_run import serve_app

WINDOW_MS = 30_000
LIFETIME_MS = 10_000


class Refused(Exception):
    """Anything wrong before the seal opens."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """One outstanding challenge."""

    kem: MLKEM1024PrivateKey
    exchange: X25519PrivateKey
    principal: str
    expires_ms: int
    transcript: bytes


class NaiveBroker:
    """All state of the naive build."""

    def __init__(self, folder: Path) -> None:
        self.counters: Counter[str] = Counter(calls=0, signatures=0, syncs=0)
        self._ed = Ed25519PrivateKey.generate()
        self._pq = MLDSA87PrivateKey.generate()
        self.ed_public = self._ed.public_key().public_bytes_raw()
        self.pq_public = self._pq.public_key().public_bytes_raw()
        self.instance = n.sha384(n.pae(self.ed_public, self.pq_public))[:32]
        self.principal = "bench"
        self.token = secrets.token_bytes(32)
        self._keys = n.token_keys(self.token, self.instance)
        self._nonces: dict[str, int] = {}
        self._challenges: dict[bytes, Challenge] = {}
        self._audit = os.open(folder / "naive-audit.jsonl", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def check_proof(self, route: str, key: bytes, asked: Request, body: bytes) -> bytes:
        """MAC, then freshness, then nonce. Gives what the MAC covered, with the MAC."""
        headers = asked.headers
        principal, timestamp = headers.get("x-principal", ""), headers.get("x-timestamp", "")
        nonce, given = headers.get("x-nonce", ""), headers.get("x-mac", "")
        covered = n.proof_input(route, principal, timestamp, nonce, body)
        expected = n.mac(key, covered)
        if not hmac.compare_digest(expected.hex().encode(), given.encode()) or principal != self.principal:
            raise Refused
        now = n.now_ms()
        if abs(now - int(timestamp)) > WINDOW_MS or nonce in self._nonces:
            raise Refused
        self._nonces[nonce] = now + 2 * WINDOW_MS
        # The dictionary is in order of arrival, so the expired ones are at its front.
        while self._nonces[oldest := next(iter(self._nonces))] < now:
            del self._nonces[oldest]
        return covered + expected

    def challenge(self, asked: Request, body: bytes) -> bytes:
        """M1 to M2: a fresh key pair and a fresh pair of signatures."""
        covered = self.check_proof(n.CHALLENGE_ROUTE, self._keys.challenge, asked, body)
        if body != n.ROUTE.encode():
            raise Refused
        kem, exchange = MLKEM1024PrivateKey.generate(), X25519PrivateKey.generate()
        identifier = secrets.token_bytes(n.ID_BYTES)
        expires = n.now_ms() + LIFETIME_MS
        offer = b"".join(
            (
                identifier,
                kem.public_key().public_bytes_raw(),
                exchange.public_key().public_bytes_raw(),
                expires.to_bytes(8, "big"),
            )
        )
        signed = n.pae(self.instance, offer, n.sha384(covered))
        reply = offer + self._ed.sign(signed) + self._pq.sign(signed, n.CONTEXT)
        self.counters["signatures"] += 1
        transcript = n.sha384(covered + reply)
        self._challenges[identifier] = Challenge(kem, exchange, self.principal, expires, transcript)
        return reply

    def call(self, asked: Request, body: bytes) -> bytes:
        """M3 to M4: open, audit, do nothing, audit, seal."""
        covered = self.check_proof(n.ROUTE, self._keys.request, asked, body)
        challenge = self._challenges.pop(body[: n.ID_BYTES], None)
        if challenge is None or challenge.expires_ms < n.now_ms():
            raise Refused
        ciphertext = body[n.ID_BYTES : n.ID_BYTES + n.KEM_BYTES]
        sealed_at = n.ID_BYTES + n.KEM_BYTES + n.X25519_BYTES
        peer = body[n.ID_BYTES + n.KEM_BYTES : sealed_at]
        shared = challenge.kem.decapsulate(ciphertext)
        shared += challenge.exchange.exchange(X25519PublicKey.from_public_bytes(peer))
        transcript = n.sha384(challenge.transcript + ciphertext + peer)
        keys = n.call_keys(self._keys.psk, shared, transcript)
        plain = keys.request.decrypt(keys.request_iv, body[sealed_at:], n.pae(b"request", transcript))
        envelope = json.loads(n.unpad(plain))
        if envelope["type"] != "agent-request" or envelope["action"] != "sessions":
            raise Refused
        self.audit("authorized", envelope["action"])
        result: list[object] = []
        self.audit("completed", envelope["action"])
        reply = json.dumps({"type": "agent-response", "status": 200, "body": result}).encode()
        self.counters["calls"] += 1
        return keys.reply.encrypt(keys.reply_iv, n.pad(reply), n.pae(b"reply", transcript, n.sha384(covered)))

    def audit(self, outcome: str, action: str) -> None:
        """One record, durable when this returns."""
        record = {"at": n.now_ms(), "outcome": outcome, "principal": self.principal, "action": action}
        os.write(self._audit, json.dumps(record).encode() + b"\n")
        os.fsync(self._audit)
        self.counters["syncs"] += 1


async def main() -> None:
    """Serve until end of input."""
    broker = NaiveBroker(Path(sys.argv[1]))
    app = QuartTrio(__name__)

    async def body() -> bytes:
        return cast(bytes, await request.get_data())

    @app.post(n.CHALLENGE_ROUTE)
    async def challenge() -> Response:
        try:
            return Response(broker.challenge(request, await body()), content_type="application/octet-stream")
        except Refused:
            return Response(b"", status=403)

    @app.post(n.ROUTE)
    async def agent() -> Response:
        try:
            return Response(broker.call(request, await body()), content_type="application/octet-stream")
        except Refused:
            return Response(b"", status=403)

    ready = {
        "principal": broker.principal,
        "token": broker.token.hex(),
        "ed_public": broker.ed_public.hex(),
        "pq_public": broker.pq_public.hex(),
    }
    await serve_app(app, ready, broker.counters)


if __name__ == "__main__":
    trio.run(main)
