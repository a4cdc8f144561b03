"""What the broker needs from outside: small protocols. Adapters implement them; fakes in tests do too, and
deny by default. Nothing here holds state."""

from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import msgspec

from tabwarden.approval import ApprovalAnswer, ApprovalRequest
from tabwarden.errors import HostReason
from tabwarden.model import (
    AgentEvent,
    AuditEvent,
    Authorization,
    Caller,
    ConnectionDescriptor,
    Phase,
    Role,
    TraceOutcome,
)


class Clock(Protocol):
    """Time, one kind for each use. All are integers in milliseconds."""

    def boottime_ms(self) -> int:
        """A clock that never steps and is the same for all processes of the machine: freshness."""
        ...

    def wall_ms(self) -> int:
        """Since the Unix epoch; may step. Only for expiry dates and records."""
        ...

    def monotonic_ms(self) -> int:
        """Never goes back; only differences mean anything: rates."""
        ...


class RequestTrace(Protocol):
    """The trace of one call, `agent.request`. Every method is cheap and never raises."""

    @property
    def trace_id(self) -> str:
        """32 lower-case hexadecimal digits (W3C Trace Context)."""
        ...

    @property
    def span_id(self) -> str:
        """16 lower-case hexadecimal digits: the id of the `agent.request` span."""
        ...

    def adopt(self, traceparent: str) -> None:
        """Become a child of the caller's span. Only for a `traceparent` that came inside the seal."""
        ...

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        """Time one phase. The block's exceptions pass through; only that it failed is kept."""
        ...

    def child(self, name: str) -> AbstractContextManager[None]:
        """Time something an adapter does below dispatch. `name` is a fixed string, never data."""
        ...

    def annotate(self, **attributes: str | int | bool | None) -> None:
        """Add attributes; those not on the allow-list are dropped."""
        ...

    def end(self, outcome: TraceOutcome, code: str | None = None) -> None:
        """Close the trace. A second call does nothing."""
        ...


class Tracer(Protocol):
    """Makes a trace for each call."""

    def start_request(self) -> RequestTrace:
        """Start the clock of one `agent.request`."""
        ...


class CallContext(Protocol):
    """What an adapter may know of the call that it serves."""

    @property
    def caller(self) -> Caller:
        """The verified identity."""
        ...

    @property
    def action(self) -> str:
        """The action's name in the table."""
        ...

    @property
    def role(self) -> Role:
        """What the authorizer made the caller."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """Internal scopes granted to this call."""
        ...

    @property
    def trace(self) -> RequestTrace:
        """For spans below dispatch."""
        ...

    def effects_begin(self) -> None:
        """Say that from here on a side effect may have happened: outcomes then say `unknown`."""
        ...

    def effects_done(self) -> None:
        """Say that the side effect has happened: outcomes then say `committed`."""
        ...

    def check(self) -> None:
        """Raise `ActionError` when the call was revoked, closed, or ran out of time: after each await."""
        ...

    def waiting_for_person(self) -> AbstractContextManager[None]:
        """While the block runs, the action deadline stands still, and a person's own limit runs."""
        ...


class ActionAdapter(Protocol):
    """Does one action. Cancellation comes as a trio cancel scope around the call.

    Returns a value that converts to the action's result type; raises `ActionError` for an expected
    ending. Anything else that it raises is reported as `failure` without its text.
    """

    async def __call__(self, arguments: Any, context: CallContext, /) -> object: ...


class PersonWait(Protocol):
    """Given to an authorizer: while the block runs, the action deadline stands still."""

    def __call__(self) -> AbstractContextManager[None]: ...


class Authorizer(Protocol):
    """Decides one call from current policy. Must be free of side effects; may wait for a person.

    `action`, `scope` (the policy scope) and `session_id` are checked already; `args` is the action
    table's argument type for `action`. The answer's `scopes` must contain the action's internal scope. An
    answer with `ask` set grants nothing until whoever asks people has taken it out (docs/approvals.md).
    """

    async def __call__(
        self,
        action: str,
        args: msgspec.Struct,
        scope: str,
        session_id: str | None,
        *,
        caller: Caller,
        waiting_for_person: PersonWait,
    ) -> Authorization: ...


class AuditTicket(Protocol):
    """An authorization that was recorded, with room kept for its one terminal outcome."""

    async def durable(self) -> None:
        """Return when the authorization is on stable storage; raise `AuditUnavailable` if it cannot be."""
        ...

    def settle(self, event: AgentEvent) -> None:
        """Append the terminal outcome, durable with the next group commit. Exactly once; never blocks.

        Raises `AuditUnavailable` when it could not be appended, RuntimeError when settled before.
        """
        ...


class AuditSink(Protocol):
    """An append-only record. Order of calls is order of records."""

    def admit(self, event: AgentEvent) -> AuditTicket:
        """Append an `authorized` event and keep room for its outcome; raise `AuditUnavailable`."""
        ...

    def note(self, event: AuditEvent) -> None:
        """Append a record that needs no ticket (a denial, a summary, the broker's own life)."""
        ...

    async def flush(self) -> None:
        """Return when everything appended so far is on stable storage."""
        ...


class CredentialProtector(Protocol):
    """Seals a connection descriptor for storage. `format` names honestly what protects it."""

    @property
    def format(self) -> str: ...

    def protect(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal `plaintext`, bound to `context`."""
        ...

    def unprotect(self, sealed: bytes, context: bytes) -> bytes:
        """Open it again; raise `DescriptorError` when it was changed or the key is gone."""
        ...


class StatementSigner(Protocol):
    """Signs with the instance's two keys what others can check later, as an audit log's checkpoints."""

    @property
    def ed_public(self) -> bytes:
        """32 bytes (RFC 8032)."""
        ...

    @property
    def pq_public(self) -> bytes:
        """2,592 bytes (FIPS 204, ML-DSA-87)."""
        ...

    def sign_statement(self, purpose: str, data: bytes) -> tuple[bytes, bytes]:
        """The Ed25519 and the ML-DSA-87 signature. Takes about a millisecond; any thread may call it."""
        ...


class CredentialStore(Protocol):
    """Called with each new descriptor; must store it protected, atomically, or raise."""

    async def __call__(self, descriptor: ConnectionDescriptor, /) -> None: ...


class ErrorObserver(Protocol):
    """`on_error`: receives a reason of a closed set, never text. Must not block or raise."""

    def __call__(self, reason: HostReason, /) -> None: ...


class Inspector(Protocol):
    """Looks through text before it leaves a page or enters one. Returns a class of finding, or None.

    `direction` is `from-page`, `to-page`, `from-model`, `to-model` or `to-site`; `caller` is who is told or
    who tells, for classes that some may read. Raises `ActionError(Code.CONTENT_DENIED)` when the text must
    not pass.
    """

    async def inspect(self, text: str, *, direction: str, caller: Caller | None = None) -> str | None: ...


@runtime_checkable
class MaskingInspector(Inspector, Protocol):
    """An `Inspector` that can also let a text pass without some places of it."""

    async def mask(
        self,
        text: str,
        *,
        direction: str,
        caller: Caller | None = None,
        start: int = 0,
        end: int | None = None,
    ) -> str:
        """The characters from `start` to before `end`, with a placeholder for each place that policy masks.
        All of `text` is looked through. Raises as `inspect`."""
        ...


class Approver(Protocol):
    """Asks a person about one call, through a channel that no agent has.

    Returns what the person said about exactly this request: an answer with another digest is none. Being
    cancelled withdraws the question (the agent left, its rights ended, the broker closes, the policy
    changed, the time is over): nobody can answer it afterwards. Raises `ActionError` with `no-approver`
    when there is nobody to ask. What `request.facts` say is shown and then forgotten.
    """

    async def ask(self, request: ApprovalRequest, /) -> ApprovalAnswer: ...
