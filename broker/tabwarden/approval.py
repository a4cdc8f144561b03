"""What a person is asked about one call, and what they may answer. Frozen values."""

from dataclasses import dataclass, field
from enum import StrEnum

from tabwarden.errors import ConfigurationError
from tabwarden.limits import HASH_BYTES, MAX_APPROVAL_MINUTES
from tabwarden.model import Caller


class Reach(StrEnum):
    """How far a person's agreement goes, for one policy scope of one agent.

    `once`: this very call. `session`: whatever the agent asks of this scope in this tab. `origin`: whatever
    it asks of this scope at this origin, for some minutes.
    """

    ONCE = "once"
    SESSION = "session"
    ORIGIN = "origin"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing to know of a call. `label` is the broker's own word. With `by_agent`, `text` is what the
    agent wrote, bounded and with every character made visible, and is to be shown as such."""

    label: str
    text: str = field(repr=False)
    by_agent: bool


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """What a person said about the call with this `digest` (48 bytes). `reach` None denies; `minutes` come
    with reach `origin` and nothing else. Raises `ConfigurationError`."""

    digest: bytes = field(repr=False)
    reach: Reach | None
    minutes: int | None = None

    def __post_init__(self) -> None:
        if type(self.digest) is not bytes or len(self.digest) != HASH_BYTES:
            raise ConfigurationError(f"an answer's digest has {HASH_BYTES} bytes: take it from the request")
        if self.reach is not None and type(self.reach) is not Reach:
            raise ConfigurationError("reach: is once, session or origin; without one the answer is no")
        if (self.minutes is not None) != (self.reach is Reach.ORIGIN):
            raise ConfigurationError("minutes: go with reach origin, and with no other answer")
        if self.minutes is not None and not (
            type(self.minutes) is int and 1 <= self.minutes <= MAX_APPROVAL_MINUTES
        ):
            raise ConfigurationError(f"minutes: a whole number from 1 to {MAX_APPROVAL_MINUTES}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One question to a person. What `facts` say is for the person's eyes: never for a log or the audit.

    `summary` is what the action table says of the action. `rule` is the policy rule that asks. `origin` is
    where the action takes place (`https://example.test`), of the address for an action that goes to one; None
    when there is none. `session_id` is None unless the agent named the tab. `digest` (48 bytes) stands for
    action, arguments, tab, agent and policy. Times are milliseconds of the clock that never steps. `reaches`
    are the answers that make sense besides no.
    """

    ticket_id: str
    caller: Caller
    action: str
    policy_scope: str
    rule: str
    session_id: str | None
    origin: str | None
    summary: str
    facts: tuple[Fact, ...] = field(repr=False)
    digest: bytes = field(repr=False)
    policy_version: int
    asked_at_ms: int
    expires_at_ms: int
    reaches: frozenset[Reach] = frozenset({Reach.ONCE})

    def __post_init__(self) -> None:
        if len(self.digest) != HASH_BYTES:
            raise ValueError("the digest has another length")
        if Reach.SESSION in self.reaches and self.session_id is None:
            raise ValueError("without a named tab there is none to agree to")
        if Reach.ORIGIN in self.reaches and self.origin is None:
            raise ValueError("without an origin there is none to agree to")

    def allow(self, reach: Reach = Reach.ONCE, minutes: int | None = None) -> ApprovalAnswer:
        """Yes to this request. Raises `ConfigurationError` for a reach that makes no sense here."""
        answer = ApprovalAnswer(self.digest, reach, minutes)
        if reach not in self.reaches:
            raise ConfigurationError(f"reach: {reach.value} is not possible for this request")
        return answer

    def deny(self) -> ApprovalAnswer:
        """No to this request."""
        return ApprovalAnswer(self.digest, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A person's agreement that reaches further than one call: what may be shown of it, and taken back.

    `rule` is the one that asked. Times are milliseconds of the clock that never steps.
    """

    id: str
    caller: Caller
    policy_scope: str
    reach: Reach
    session_id: str | None
    origin: str | None
    rule: str
    policy_version: int
    agreed_at_ms: int
    expires_at_ms: int
