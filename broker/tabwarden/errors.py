"""The closed sets of reasons, and the exceptions that carry them.

Four kinds of trouble are kept apart by type, because they call for different answers:

* a peer's mistake before the seal opens (`PeerRefused`): one uniform refusal, counted, never explained;
* a denial or another expected ending of an action (`ActionError`): a sealed status and a code of `Code`;
* busy (`ActionError` with `Code.BUSY`): nothing has begun, and the caller may try again;
* our own fault (`BrokerFault`): a sealed 500 for the caller, a loud reason for the host.

No exception here carries text from a peer, a page or a secret.
"""

from enum import StrEnum


class Code(StrEnum):
    """What a sealed reply may say when it is not a success. `STATUS` gives the status of each."""

    BAD_REQUEST = "bad-request"
    UNKNOWN_ACTION = "unknown-action"
    INVALID_ARGUMENTS = "invalid-arguments"
    POLICY_DENIED = "policy-denied"
    DESTINATION_DENIED = "destination-denied"
    TARGET_DENIED = "target-denied"
    CONTENT_DENIED = "content-denied"
    USER_DENIED = "user-denied"
    APPROVAL_TIMEOUT = "approval-timeout"
    NO_APPROVER = "no-approver"
    NOT_AVAILABLE = "not-available"
    UNKNOWN_SESSION = "unknown-session"
    CONFLICT = "conflict"
    BUSY = "browser-management-busy"
    STALE = "stale"
    STALE_REF = "stale-ref"
    RATE_LIMITED = "rate-limited"
    NAVIGATION_FAILED = "navigation-failed"
    SESSION_GONE = "session-gone"
    FAILURE = "failure"
    RESULT_TOO_LARGE = "result-too-large"
    AUDIT_UNAVAILABLE = "audit-unavailable"
    SHUTTING_DOWN = "shutting-down"
    DEADLINE = "deadline"
    REVOKED = "revoked"
    DISCONNECTED = "disconnected"


class ContentClass(StrEnum):
    """What was found in a text: with `content-denied` this is all that the caller is told of it."""

    CREDENTIAL = "credential"
    CARD = "card"
    IBAN = "iban"
    CORPORATE = "corporate"
    """Something that a rule of the policy's own names; which one goes to the audit alone."""
    INCOMPLETE = "incomplete"
    """Nothing, but not all of the text could be looked through."""


STATUS: dict[Code, int] = {
    Code.BAD_REQUEST: 400,
    Code.UNKNOWN_ACTION: 400,
    Code.INVALID_ARGUMENTS: 400,
    Code.POLICY_DENIED: 403,
    Code.DESTINATION_DENIED: 403,
    Code.TARGET_DENIED: 403,
    Code.CONTENT_DENIED: 403,
    Code.USER_DENIED: 403,
    Code.APPROVAL_TIMEOUT: 403,
    Code.NO_APPROVER: 403,
    Code.NOT_AVAILABLE: 404,
    Code.UNKNOWN_SESSION: 404,
    Code.CONFLICT: 409,
    Code.BUSY: 409,
    Code.STALE: 409,
    Code.STALE_REF: 409,
    Code.NAVIGATION_FAILED: 409,
    Code.SESSION_GONE: 409,
    Code.RATE_LIMITED: 429,
    Code.FAILURE: 500,
    Code.RESULT_TOO_LARGE: 500,
    Code.AUDIT_UNAVAILABLE: 503,
    Code.SHUTTING_DOWN: 503,
    Code.DEADLINE: 504,
    # These two are written to the audit; the caller itself is sent nothing but a closed connection
    # or the uniform refusal, because it no longer has a right to, or a way of, being told.
    Code.REVOKED: 403,
    Code.DISCONNECTED: 500,
}

# An ending with one of these codes was decided against the caller; every other one is a failure.
DENIALS: frozenset[Code] = frozenset(
    {
        Code.BAD_REQUEST,
        Code.UNKNOWN_ACTION,
        Code.INVALID_ARGUMENTS,
        Code.POLICY_DENIED,
        Code.DESTINATION_DENIED,
        Code.TARGET_DENIED,
        Code.CONTENT_DENIED,
        Code.USER_DENIED,
        Code.APPROVAL_TIMEOUT,
        Code.NO_APPROVER,
        Code.NOT_AVAILABLE,
        Code.UNKNOWN_SESSION,
        Code.RATE_LIMITED,
    }
)


class Refusal(StrEnum):
    """Why a request was refused before its seal opened. Counted in metrics and the audit, never sent."""

    HTTP = "http"
    TOO_SLOW = "too-slow"
    TOO_LARGE = "too-large"
    FOREIGN_USER = "foreign-user"
    TOO_MANY_CONNECTIONS = "too-many-connections"
    HOST = "host"
    BROWSER = "browser"
    ROUTE = "route"
    HEADERS = "headers"
    PROOF = "proof"
    TIMESTAMP = "timestamp"
    NONCE = "nonce"
    NONCE_CACHE_FULL = "nonce-cache-full"
    CHALLENGE_BUDGET = "challenge-budget"
    CHALLENGES_OUTSTANDING = "challenges-outstanding"
    UNKNOWN_CHALLENGE = "unknown-challenge"
    CHALLENGE_EXPIRED = "challenge-expired"
    WIRE = "wire"
    SEAL = "seal"
    REVOKED = "revoked"
    SHUTTING_DOWN = "shutting-down"


class HostReason(StrEnum):
    """What `on_error` may be told: a closed set, never text."""

    AUDIT_UNAVAILABLE = "audit-unavailable"
    AUDIT_NOT_SIGNED = "audit-not-signed"
    ADAPTER_FAILED = "adapter-failed"
    ADAPTER_IGNORED_CANCELLATION = "adapter-ignored-cancellation"
    AUTHORIZER_FAILED = "authorizer-failed"
    RESULT_NOT_PROJECTABLE = "result-not-projectable"
    RESULT_SUPPRESSED = "result-suppressed"
    CONNECTION_FAILED = "connection-failed"
    CHALLENGE_POOL_FAILED = "challenge-pool-failed"
    INTERNAL_FAULT = "internal-fault"


class TabwardenError(Exception):
    """The root of everything this package raises on purpose."""


class PeerRefused(TabwardenError):
    """The peer's mistake, found before the seal opened: answered by the uniform refusal."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason.value)
        self.reason = reason


class ActionError(TabwardenError):
    """An expected, typed ending of an action other than success. Adapters raise it.

    `rule` names the policy rule that decided; it goes to the audit and never to the agent.
    `committed` says what is known of side effects: True (done), False (not begun), None (unknown).
    `content_class` goes to the agent, with `content-denied` only.
    """

    def __init__(
        self,
        code: Code,
        *,
        rule: str | None = None,
        committed: bool | None = False,
        content_class: ContentClass | None = None,
    ) -> None:
        super().__init__(code.value)
        self.code = code
        self.rule = rule
        self.committed = committed
        self.content_class = content_class


class AuditUnavailable(TabwardenError):
    """A record could not be accepted or made durable: no action may begin until it can."""


class BrokerFault(TabwardenError):
    """Our own fault. `reason` is all that the host is told."""

    def __init__(self, reason: HostReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class MalformedError(TabwardenError, ValueError):
    """Bytes or JSON that the strict codec does not accept. Never says more than which rule failed."""


class ConfigurationError(TabwardenError, ValueError):
    """The embedding program or a settings file asked for something that cannot be; says what to do."""


class DescriptorError(TabwardenError):
    """A connection descriptor is absent, unprotected, tampered with, expired or for another protocol."""


class ClientError(TabwardenError):
    """The root of what an `AgentClient` call raises."""


class Unreachable(ClientError):
    """No connection to the broker, or it ended before a reply: the outcome of the call is unknown."""


class ClientDeadline(ClientError):
    """The client's own total deadline passed: the outcome of the call is unknown."""


class Refused(ClientError):
    """The broker answered with the uniform refusal. Re-pair if the broker was restarted or revoked you."""


class ChallengeLimited(ClientError):
    """Too many challenges asked for or left unused. `retry_after_s` is the broker's (unsealed) advice."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many challenges; wait {retry_after_s} s")
        self.retry_after_s = retry_after_s


class ProtocolViolation(ClientError):
    """The other side is not the paired broker, or somebody changed what it said. Nothing was believed."""


class CallFailed(ClientError):
    """The sealed reply says that the call did not succeed.

    `status` is the sealed status (400..599), `code` the broker's typed code, `retry_after_ms` is given
    with a 429. `effect` says what is known of side effects: `not_started`, `committed` or `unknown`.
    `content_class` is the value of a `ContentClass`, given with some `content-denied`.
    """

    def __init__(
        self,
        status: int,
        code: str,
        retry_after_ms: int | None = None,
        effect: str = "unknown",
        content_class: str | None = None,
    ) -> None:
        super().__init__(f"{code} ({status})")
        self.status = status
        self.code = code
        self.retry_after_ms = retry_after_ms
        self.effect = effect
        self.content_class = content_class
