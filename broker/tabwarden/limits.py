"""Every number, each with its reason. Wire formats are fixed; an embedding program may move the rest."""

from dataclasses import dataclass, fields

from tabwarden.errors import ConfigurationError

# ---- wire formats: part of the protocol, the same at both ends ------------------------------------
TOKEN_BYTES = 32  # as strong as AES-256's key
INSTANCE_BYTES = 32  # truncated SHA-384: 128-bit collision resistance
NONCE_BYTES = 32  # random, never repeats within any window
CHALLENGE_ID_BYTES = 16  # a look-up key, guarded by the MAC
HASH_BYTES = 48  # SHA-384
MAC_BYTES = 48  # HMAC-SHA384, not truncated
ED25519_PUBLIC_BYTES = 32  # RFC 8032
ED25519_SIGNATURE_BYTES = 64  # RFC 8032
MLDSA_PUBLIC_BYTES = 2592  # FIPS 204, ML-DSA-87
MLDSA_SIGNATURE_BYTES = 4627  # FIPS 204, ML-DSA-87
MLKEM_PUBLIC_BYTES = 1568  # FIPS 203, ML-KEM-1024
MLKEM_CIPHERTEXT_BYTES = 1568  # FIPS 203, ML-KEM-1024
X25519_BYTES = 32  # RFC 7748
AEAD_TAG_BYTES = 16  # AES-GCM, not truncated
MAX_BATCH = 256  # leaves under one root: a path of at most 8 hashes
MAX_WIRE_BODY = 128 * 1024  # one request or reply; larger results are cut into windows by the action
MAX_CHALLENGE_BODY = 256  # M1 carries one route name
PADDED_SIZES = (1024, 4096, 16384, 65536, 126976)  # hides lengths; the last fits the body cap sealed
MAX_JSON_DEPTH = 16  # deeper than any action's arguments, far from Python's recursion limit
MAX_SAFE_INTEGER = 2**53  # what JavaScript can hold exactly: both ends must agree on a number
MAX_ID_CHARACTERS = 64  # a principal's public id, in ASCII
MAX_REQUEST_FILE = 32 * 1024  # the command line's request file
MAX_REPLY = MAX_WIRE_BODY  # what a client reads of one reply
MAX_APPROVAL_MINUTES = 480  # a working day: what a person agreed to in the morning ends in the evening
BUSY_RETRY_MS = (200, 400, 600)  # a sealed busy only: long enough for a change in progress to end


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an embedding program may lower or raise. Times in seconds unless the name says otherwise."""

    action_deadline_s: float = 10.0  # longer than a page load, shorter than a person's patience
    person_wait_s: float = 300.0  # an approval or handoff: time to come back to the desk
    requests_per_minute: int = 60  # a careful agent acts about once a second
    challenges_per_minute: int | None = None  # None: twice the requests + 8, so retries never starve
    outstanding_challenges: int = 8  # per principal: more than one honest client has in flight
    challenge_lifetime_ms: int = 10_000  # from bound to used: a round trip and some thought
    leaf_lifetime_ms: int = 120_000  # in the pool: an idle broker signs twice a minute at the most
    freshness_window_ms: int = 30_000  # one machine, one clock: only scheduling delays
    connections: int = 64  # agents on one desk; each costs a task and a file descriptor
    idle_connection_s: float = 15.0  # a keep-alive client calls again soon or reconnects
    headers_s: float = 2.0  # loopback: anything slower is holding a slot
    body_s: float = 5.0  # 128 KiB over loopback, with room for a busy machine
    header_bytes: int = 8 * 1024  # five short headers and a proof need 600
    header_fields: int = 32  # as above: they are eight
    batch_size: int = 64  # challenges under one signature: a signature costs more than the rest of a call
    idle_batch_size: int = 8  # what an idle broker keeps ready
    close_s: float = 5.0  # how long close() and revoke() wait for work that ignores cancellation
    cancel_grace_s: float = 0.25  # an adapter's time to stop before its call is answered without it
    refusal_window_s: float = 60.0  # one audit record for all refusals of a window
    idempotency_entries: int = 128  # outcomes remembered per principal: more than two minutes of calls
    idempotency_ms: int = 600_000  # how long a caller may ask what became of a call

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0:
                raise ConfigurationError(f"limit {field.name} must be greater than 0")
        if self.batch_size > MAX_BATCH or self.idle_batch_size > self.batch_size:
            raise ConfigurationError(f"batch sizes must be idle_batch_size <= batch_size <= {MAX_BATCH}")

    @property
    def challenge_budget(self) -> int:
        """Challenges that one principal may ask for in a minute."""
        if self.challenges_per_minute is not None:
            return self.challenges_per_minute
        return 2 * self.requests_per_minute + 8

    @property
    def nonce_entries(self) -> int:
        """Nonces kept for one principal: all that its budgets can make fresh in a window, twice over."""
        minutes = 2 * self.freshness_window_ms / 60_000
        return 1024 + round(4 * minutes * (self.challenge_budget + self.requests_per_minute))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalLimits:
    """How much one agent, and all together, may ask of a person."""

    pending_per_principal: int = 3  # more questions at once than that nobody reads one by one
    pending: int = 16  # of all agents: a screenful
    asks_per_minute: int = 6  # per principal: nobody thinks faster, and denying is no full-time job
    quiet_after_no_ms: int = 60_000  # not the same question again so soon: agents try again at once
    refused: int = 256  # calls of which it is remembered that a person said no; each some hundred bytes
    remembered_per_principal: int = 32  # the oldest gives way
    remembered: int = 1024  # of all agents; each some hundred bytes
    text_characters: int = 2000  # of one argument, as it is shown to a person: what fits on a screen

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigurationError(f"limit {field.name} must be greater than 0")


DEFAULT_LIMITS = Limits()
