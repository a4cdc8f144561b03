"""Frozen values, one for each stage a request passes through, in the order it passes them.

`AuthenticatedRequest -> AgentRequest -> AuthorizedAction -> Outcome -> SealedReply`. Each validates when
it is built and is made from the one before, so a stage cannot be skipped by passing the wrong thing.
No value here prints a secret or a payload: the fields that hold one are kept out of `repr`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from tabwarden.errors import STATUS, Code, ContentClass, MalformedError, Refusal

if TYPE_CHECKING:
    import msgspec

Role = Literal["agent", "admin"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request was proven to come from. Legacy pairing is unattributed: both fields are None."""

    principal_id: str | None
    generation: int | None

    def __post_init__(self) -> None:
        if (self.principal_id is None) != (self.generation is None):
            raise ValueError("a caller has both an id and a generation, or neither")


@dataclass(frozen=True, slots=True)
class AuthenticatedRequest:
    """M3 after its proof, its challenge and its seal were all found good. `plaintext` stays untrusted."""

    caller: Caller
    plaintext: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A strictly parsed action envelope; `arguments` is the action table's own type for `action`."""

    caller: Caller
    action: str
    policy_scope: str
    internal_scope: str
    arguments: "msgspec.Struct" = field(repr=False)
    session_id: str | None
    idempotency_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Authorization:
    """An authorizer's answer. `scopes` are internal scopes; `rule` is audited, never sent to the agent.

    `ask` is the rule by which a person must agree first: while it is set, nothing is granted. `still_holds`
    is called right before the action begins, after its record is durable: unless it says True, what was
    decided no longer stands, and the call ends with `stale`. It must not wait.
    """

    allowed: bool
    role: Role = "agent"
    scopes: frozenset[str] = frozenset()
    code: Code = Code.POLICY_DENIED
    rule: str | None = None
    ask: str | None = None
    still_holds: Callable[[], bool] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.role not in ("agent", "admin"):
            raise ValueError("role must be agent or admin")

    def grants(self, internal_scope: str) -> bool:
        """True when the call is allowed, nobody need be asked any more, and the action's own internal scope
        is among those given."""
        return self.allowed is True and self.ask is None and internal_scope in self.scopes


@dataclass(frozen=True, slots=True)
class AuthorizedAction:
    """An action that may run: only made from a request whose internal scope was granted."""

    request: AgentRequest
    role: Role
    scopes: frozenset[str]
    rule: str | None
    still_holds: Callable[[], bool] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, request: AgentRequest, authorization: Authorization) -> "AuthorizedAction":
        """Raise ValueError unless `authorization` grants the internal scope of `request`."""
        if not authorization.grants(request.internal_scope):
            raise ValueError("not authorized")
        return cls(
            request,
            authorization.role,
            authorization.scopes,
            authorization.rule,
            authorization.still_holds,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an action ended: a projected body and no code, or a code. `committed` speaks of side effects,
    `content_class` of what was found where the code is `content-denied`."""

    code: Code | None
    body: Any = field(default=None, repr=False)
    committed: bool | None = False
    content_class: ContentClass | None = None

    @property
    def status(self) -> int:
        """The sealed status: 200, or the status of the code."""
        return 200 if self.code is None else STATUS[self.code]


@dataclass(frozen=True, slots=True)
class SealedReply:
    """M4 as it travels."""

    wire: bytes = field(repr=False)


class AuditOutcome(StrEnum):
    """The four outcomes of an agent event. Every authorized event is followed by exactly one other."""

    AUTHORIZED = "authorized"
    COMPLETED = "completed"
    DENIED = "denied"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One audit record about an authenticated call: metadata only, never arguments, results or tokens.

    `action` and `scope` are None when the envelope named no action of the table. `committed` is only
    given with an outcome after dispatch. Times: `wall_ms` since the Unix epoch, `boot_ms` by the clock that
    never steps.
    """

    outcome: AuditOutcome
    request_id: str
    wall_ms: int
    boot_ms: int
    action: str | None = None
    scope: str | None = None
    code: Code | None = None
    rule: str | None = None
    session_id: str | None = None
    principal_id: str | None = None
    generation: int | None = None
    committed: bool | None = None
    trace_id: str | None = None
    span_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalSummary:
    """All unauthenticated refusals of one window, counted by reason: a flood is one record."""

    window_start_ms: int
    window_end_ms: int
    counts: Mapping[Refusal, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleEvent:
    """The broker itself: started, revoked, closed, or a principal issued, revoked or expired."""

    event: Literal[
        "started", "revoked", "closed", "principal-issued", "principal-revoked", "principal-expired"
    ]
    wall_ms: int
    boot_ms: int
    principal_id: str | None = None
    generation: int | None = None


AuditEvent = AgentEvent | RefusalSummary | LifecycleEvent


class Phase(StrEnum):
    """The timed children of an `agent.request` trace."""

    CHALLENGE = "challenge"
    DECRYPTION = "decryption"
    AUTHORIZATION = "authorization"
    AUDIT = "audit"
    DISPATCH = "dispatch"
    PROJECTION = "projection"
    ENCRYPTION = "encryption"


class TraceOutcome(StrEnum):
    """How a traced request, or one phase of it, ended. Set by hand: exception text never reaches a span."""

    OK = "ok"
    DENIED = "denied"
    FAILED = "failed"
    DEADLINE = "deadline"
    REVOKED = "revoked"
    DISCONNECTED = "disconnected"
    CLOSED = "closed"
    POLICY_CHANGED = "policy-changed"


@dataclass(frozen=True, slots=True)
class ConnectionDescriptor:
    """What a paired agent knows. It exists in clear only in memory: a protector seals it for storage.

    `expires_at_ms` is wall time since the Unix epoch, or None for the life of the broker.
    """

    address: str
    token: bytes = field(repr=False)
    ed_public: bytes = field(repr=False)
    pq_public: bytes = field(repr=False)
    instance: bytes
    principal_id: str
    generation: int
    protocol: str
    expires_at_ms: int | None = None

    def __post_init__(self) -> None:
        host, _, port = self.address.partition(":")
        if host != "127.0.0.1" or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise MalformedError("address is not 127.0.0.1:PORT")
