"""The crypto floor: what one call's primitives cost with the signature inline, and nothing else.

Both ends of one call, in one process, one after another: the least that any implementation of the protocol
could take if it signed each challenge when asked. No network, no parsing, no record. Hashes, HMACs and the
one-block HKDF expansions use the standard library's OpenSSL binding, which is quicker than `cryptography`'s
for short inputs: the floor is to be low.

Beside it, the broker's part alone with the signatures of a batch shared by its calls (amortised): what the
processor time of a broker under load is compared with.
"""

import hashlib
import hmac
import json
import os
import sys
import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA87PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM1024PrivateKey, MLKEM1024PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.bench.load import encode_samples

_CONTEXT = b"tabwarden-bench-floor"
BATCH = 64  # challenges under one pair of signatures, as `Limits.batch_size` has it
BATCHES = 2  # in one measurement


def _sha(data: bytes) -> bytes:
    return hashlib.sha384(data).digest()


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha384")


class Floor:
    """Long-lived keys, and one call's primitives."""

    def __init__(self) -> None:
        self._ed, self._pq = Ed25519PrivateKey.generate(), MLDSA87PrivateKey.generate()
        self._ed_public, self._pq_public = self._ed.public_key(), self._pq.public_key()
        self._key = os.urandom(48)
        self._input = os.urandom(300)
        self._body = os.urandom(1024)

    def _derive(self, shared: bytes, transcript: bytes) -> tuple[AESGCM, bytes, AESGCM, bytes]:
        root = _mac(self._key, shared)
        out = [_mac(root, transcript + bytes((index, 1))) for index in range(4)]
        return AESGCM(out[0][:32]), out[1][:12], AESGCM(out[2][:32]), out[3][:12]

    def batch(self) -> float:
        """Seconds of processor time for the broker's part of one call, one pair of signatures for `BATCH`."""
        wires = [self._request() for _ in range(BATCH)]
        begun = time.process_time()
        for kem_seed, wire in wires:
            self._broker(kem_seed, wire)
        # The inner nodes of the batch's tree: as many as leaves, but one.
        for _ in range(BATCH - 1):
            _sha(self._input[:97])
        signed = _sha(self._input)
        self._ed.sign(signed)
        self._pq.sign(signed, _CONTEXT)
        return (time.process_time() - begun) / BATCH

    def _request(self) -> tuple[bytes, bytes]:
        """The seed of a key pair and a sealed request for it, made outside of what is measured."""
        seed = os.urandom(64)
        kem = MLKEM1024PrivateKey.from_seed_bytes(seed)
        _, ciphertext = kem.public_key().encapsulate()
        own_public = X25519PrivateKey.generate().public_key().public_bytes_raw()
        return seed, ciphertext + own_public + os.urandom(len(self._body) + 16)

    def _broker(self, seed: bytes, wire: bytes) -> None:
        """Every primitive of the broker's for one call, but for its share of the signatures."""
        # M1's proof and the body's hash; one leaf of the batch; the binding.
        _mac(self._key, self._input + _sha(b"/v1/agent"))
        # From a seed it costs what a fresh one does.
        kem, exchange = MLKEM1024PrivateKey.from_seed_bytes(seed), X25519PrivateKey.generate()
        kem_public = kem.public_key().public_bytes_raw()
        exchange_public = exchange.public_key().public_bytes_raw()
        _sha(kem_public + exchange_public + self._input)
        _mac(self._key, self._input + _sha(self._input))
        # M3.
        _mac(self._key, self._input + _sha(wire))
        shared = kem.decapsulate(wire[:1568])
        shared += exchange.exchange(X25519PublicKey.from_public_bytes(wire[1568:1600]))
        transcript = _sha(self._input + kem_public + wire[:1600])
        open_request, request_iv, seal_reply, reply_iv = self._derive(shared, transcript)
        # Sealing and opening cost the same; this way no second end has to seal first.
        open_request.encrypt(request_iv, self._body, self._input)
        # M4.
        seal_reply.encrypt(reply_iv, self._body, self._input + _sha(wire))

    def call(self) -> None:
        """Every primitive of one call, both ends."""
        # M1: the proof is made, then checked; each end hashes the body.
        for _ in range(2):
            _mac(self._key, self._input + _sha(b"/v1/agent"))
        # M2, broker: fresh keys, two signatures, the binding.
        kem, exchange = MLKEM1024PrivateKey.generate(), X25519PrivateKey.generate()
        kem_public = kem.public_key().public_bytes_raw()
        exchange_public = exchange.public_key().public_bytes_raw()
        signed = _sha(kem_public + exchange_public + self._input)
        ed_signature, pq_signature = self._ed.sign(signed), self._pq.sign(signed, _CONTEXT)
        _mac(self._key, self._input + _sha(self._input))
        challenge = kem_public + exchange_public + ed_signature + pq_signature + self._input
        # M2, agent: the leaf's hash, both signatures, the binding.
        _sha(kem_public + exchange_public + self._input)
        self._ed_public.verify(ed_signature, signed)
        self._pq_public.verify(pq_signature, signed, _CONTEXT)
        _mac(self._key, self._input + _sha(self._input))
        # M3, agent.
        shared, ciphertext = MLKEM1024PublicKey.from_public_bytes(kem_public).encapsulate()
        own = X25519PrivateKey.generate()
        own_public = own.public_key().public_bytes_raw()
        shared += own.exchange(X25519PublicKey.from_public_bytes(exchange_public))
        transcript = _sha(self._input + challenge + ciphertext + own_public)
        seal, seal_iv, open_reply, open_iv = self._derive(shared, transcript)
        wire = ciphertext + own_public + seal.encrypt(seal_iv, self._body, self._input)
        _mac(self._key, self._input + _sha(wire))
        # M3, broker.
        _mac(self._key, self._input + _sha(wire))
        shared = kem.decapsulate(ciphertext)
        shared += exchange.exchange(X25519PublicKey.from_public_bytes(own_public))
        transcript = _sha(self._input + challenge + ciphertext + own_public)
        open_request, request_iv, seal_reply, reply_iv = self._derive(shared, transcript)
        open_request.decrypt(request_iv, wire[1600:], self._input)
        # M4: each end hashes M3's wire for the reply's associated data.
        reply = seal_reply.encrypt(reply_iv, self._body, self._input + _sha(wire))
        open_reply.decrypt(open_iv, reply, self._input + _sha(wire))


def main() -> None:
    """Answer each line `{"seconds": s}` with the times of one call and the broker's part, until end of
    input."""
    floor = Floor()
    for _ in range(50):
        floor.call()
    for line in sys.stdin:
        samples: list[float] = []
        end = time.perf_counter() + json.loads(line)["seconds"]
        while (begun := time.perf_counter()) < end:
            floor.call()
            samples.append(time.perf_counter() - begun)
        broker = sum(floor.batch() for _ in range(BATCHES)) / BATCHES
        sys.stdout.write(json.dumps({"samples": encode_samples(samples), "broker": broker}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
