"""The client of the naive build: checks both signatures of every challenge; remembers nothing."""

import json
import secrets

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA87PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM1024PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from tests.bench import naive_crypto as n
from tests.bench.http_client import HttpConnection, open_tcp
from tests.bench.stacks import Client, Ready

_REQUEST = b'{"type":"agent-request","action":"sessions","args":{}}'
_OFFER = n.ID_BYTES + n.KEM_BYTES + n.X25519_BYTES + 8


class NaiveClient:
    """One caller."""

    def __init__(self, connection: HttpConnection, ready: Ready) -> None:
        self._connection = connection
        self._principal: str = ready["principal"]
        ed_public, pq_public = bytes.fromhex(ready["ed_public"]), bytes.fromhex(ready["pq_public"])
        self._instance = n.sha384(n.pae(ed_public, pq_public))[:32]
        self._ed = Ed25519PublicKey.from_public_bytes(ed_public)
        self._pq = MLDSA87PublicKey.from_public_bytes(pq_public)
        self._keys = n.token_keys(bytes.fromhex(ready["token"]), self._instance)

    async def _post(self, route: str, key: bytes, body: bytes) -> tuple[bytes, bytes]:
        """POST with a proof; gives what the MAC covered, with the MAC, and the reply."""
        timestamp, nonce = str(n.now_ms()), secrets.token_hex(32)
        covered = n.proof_input(route, self._principal, timestamp, nonce, body)
        tag = n.mac(key, covered)
        headers = (
            f"x-principal: {self._principal}\r\nx-timestamp: {timestamp}\r\n"
            f"x-nonce: {nonce}\r\nx-mac: {tag.hex()}\r\n"
        )
        status, reply = await self._connection.post(route, headers, body)
        if status != 200:
            raise RuntimeError(f"refused: {status}")
        return covered + tag, reply

    async def call(self) -> None:
        """Make one no-op call."""
        covered, reply = await self._post(n.CHALLENGE_ROUTE, self._keys.challenge, n.ROUTE.encode())
        offer, signatures = reply[:_OFFER], reply[_OFFER:]
        signed = n.pae(self._instance, offer, n.sha384(covered))
        self._ed.verify(signatures[: n.ED25519_SIGNATURE_BYTES], signed)
        self._pq.verify(signatures[n.ED25519_SIGNATURE_BYTES :], signed, n.CONTEXT)
        kem_end = n.ID_BYTES + n.KEM_BYTES
        server_exchange = X25519PublicKey.from_public_bytes(offer[kem_end : kem_end + n.X25519_BYTES])
        shared, ciphertext = MLKEM1024PublicKey.from_public_bytes(offer[n.ID_BYTES : kem_end]).encapsulate()
        exchange = X25519PrivateKey.generate()
        public = exchange.public_key().public_bytes_raw()
        shared += exchange.exchange(server_exchange)
        transcript = n.sha384(n.sha384(covered + reply) + ciphertext + public)
        keys = n.call_keys(self._keys.psk, shared, transcript)
        sealed = keys.request.encrypt(keys.request_iv, n.pad(_REQUEST), n.pae(b"request", transcript))
        body = offer[: n.ID_BYTES] + ciphertext + public + sealed
        covered, reply = await self._post(n.ROUTE, self._keys.request, body)
        bound = n.pae(b"reply", transcript, n.sha384(covered))
        answer = json.loads(n.unpad(keys.reply.decrypt(keys.reply_iv, reply, bound)))
        if answer["status"] != 200:
            raise RuntimeError("the call failed")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._connection.aclose()


async def connect(ready: Ready, index: int) -> Client:
    """One caller with its own connection."""
    return NaiveClient(HttpConnection(await open_tcp(ready["address"])), ready)
