"""What happens before the seal opens. Nothing here tells a stranger anything, costs a signature or is kept
for one; `PeerRefused` is answered by the uniform refusal."""

import trio

from tabwarden.authority.challenges import BoundChallenge
from tabwarden.authority.principals import Capability
from tabwarden.authority.replay import check_fresh
from tabwarden.errors import MalformedError, PeerRefused, Refusal
from tabwarden.model import Phase
from tabwarden.protocol.challenge import Binding, bind
from tabwarden.protocol.primitives import equal, hmac_sha384
from tabwarden.protocol.proof import (
    AGENT_ROUTE,
    CHALLENGE_ROUTE,
    L_AGENT_REQUEST_MAC,
    L_CHALLENGE_REQUEST,
    METHOD,
    Proof,
    challenge_body,
    mac_input,
)
from tabwarden.protocol.seal import (
    CallKeys,
    RequestWire,
    request_associated,
    response_associated,
    transcript_hash,
)
from tabwarden.service.call import Call
from tabwarden.service.challenge_pool import ReadyChallenge
from tabwarden.service.http_gate import HttpReply, RequestHead, challenge_limited
from tabwarden.service.runtime import Runtime

_TARGET_BODY = challenge_body()


class Pipeline:
    """M1 in and M2 out; M3 in and an opened `Call` out."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._instance = runtime.identity.instance

    async def handle(self, head: RequestHead, body: bytes) -> HttpReply | Call:
        """A reply to M1, or the opened call of M3. Raises `PeerRefused`."""
        if head.route == CHALLENGE_ROUTE:
            return await self.challenge(head, body)
        return self.open(head, body)

    async def challenge(self, head: RequestHead, body: bytes) -> HttpReply:
        """Answer M1 with a challenge bound to its caller, or with 429 when the caller must slow down."""
        runtime = self._runtime
        capability, proof, request_input = self._prove(L_CHALLENGE_REQUEST, head, body)
        if body != _TARGET_BODY:
            raise PeerRefused(Refusal.WIRE)
        account = capability.account
        wait_ms = account.challenge_budget.take(runtime.clock.monotonic_ms())
        if wait_ms:
            runtime.refusals.count(Refusal.CHALLENGE_BUDGET)
            return challenge_limited(_seconds(wait_ms))
        wait_ms = account.challenges.reserve(runtime.clock.boottime_ms())
        if wait_ms:
            runtime.refusals.count(Refusal.CHALLENGES_OUTSTANDING)
            return challenge_limited(_seconds(wait_ms))
        try:
            trace = runtime.tracer.start_request()
            with trace.phase(Phase.CHALLENGE):
                ready = runtime.pool.take_ready() or await self._wait_for_challenge(capability)
                issued = runtime.clock.boottime_ms()
                lifetime = runtime.limits.challenge_lifetime_ms
                binding = Binding(
                    METHOD,
                    AGENT_ROUTE,
                    proof.principal_id,
                    proof.generation,
                    proof.nonce,
                    issued,
                    lifetime,
                )
                wire = bind(ready.signed, binding, capability.keys.binding, request_input, proof.mac)
            account.challenges.put(
                BoundChallenge(
                    challenge_id=ready.signed.leaf.challenge_id,
                    generation=capability.generation,
                    kem=ready.kem,
                    x=ready.x,
                    request_input=request_input,
                    request_mac=proof.mac,
                    wire=wire,
                    expires_ms=issued + lifetime,
                    trace=trace,
                )
            )
        finally:
            account.challenges.unreserve()
        return HttpReply(200, wire)

    async def _wait_for_challenge(self, capability: Capability) -> ReadyChallenge:
        runtime = self._runtime
        with trio.move_on_after(runtime.limits.action_deadline_s):
            ready = await runtime.pool.take()
            if runtime.closing or not runtime.registry.is_current(capability, runtime.wall_ms()):
                raise PeerRefused(Refusal.REVOKED)
            return ready
        raise PeerRefused(Refusal.TOO_SLOW)

    def open(self, head: RequestHead, body: bytes) -> Call:
        """Prove M3, take its challenge, open its seal. Synchronous: one challenge opens one call."""
        runtime = self._runtime
        capability, proof, _ = self._prove(L_AGENT_REQUEST_MAC, head, body)
        try:
            wire = RequestWire.parse(body)
        except MalformedError:
            raise PeerRefused(Refusal.WIRE) from None
        # Deleted before anything secret is computed with it, so that it can serve for one try only.
        bound = capability.account.challenges.take(
            wire.challenge_id, capability.generation, runtime.clock.boottime_ms()
        )
        with bound.trace.phase(Phase.DECRYPTION):
            transcript = transcript_hash(
                bound.request_input, bound.request_mac, bound.wire, wire.kem_ciphertext, wire.x_public
            )
            associated = request_associated(
                head.method,
                head.route,
                self._instance,
                wire.challenge_id,
                proof.principal_id,
                proof.generation,
                transcript,
            )
            try:
                keys = CallKeys.derive(
                    capability.keys.psk,
                    bound.kem.decapsulate(wire.kem_ciphertext),
                    bound.x.exchange(wire.x_public),
                    transcript,
                )
                plaintext = keys.open_request(wire.sealed, associated)
            except MalformedError:
                raise PeerRefused(Refusal.SEAL) from None
        return Call(runtime, capability, keys, response_associated(transcript, body), bound.trace, plaintext)

    def _prove(self, label_bytes: bytes, head: RequestHead, body: bytes) -> tuple[Capability, Proof, bytes]:
        """MAC, then freshness, then nonce. The MAC costs the same whether the id is known or not."""
        runtime = self._runtime
        if runtime.closing:
            raise PeerRefused(Refusal.SHUTTING_DOWN)
        try:
            proof = Proof.parse(head.headers)
        except MalformedError:
            raise PeerRefused(Refusal.PROOF) from None
        capability = runtime.registry.find(proof.principal_id, proof.generation, runtime.wall_ms())
        keys = runtime.registry.decoy_keys if capability is None else capability.keys
        key = keys.challenge if label_bytes is L_CHALLENGE_REQUEST else keys.request
        request_input = mac_input(
            label_bytes,
            head.method,
            head.route,
            self._instance,
            proof.principal_id,
            proof.generation,
            proof.timestamp,
            proof.nonce,
            body,
        )
        if not equal(hmac_sha384(key, request_input), proof.mac) or capability is None:
            raise PeerRefused(Refusal.PROOF)
        now = runtime.clock.boottime_ms()
        check_fresh(proof.timestamp, now, runtime.limits.freshness_window_ms)
        capability.account.nonces.add(proof.nonce, now)
        return capability, proof, request_input


def _seconds(milliseconds: int) -> int:
    return -(-milliseconds // 1000)
