"""What may be asked of a running broker. One line of JSON each way: `{"do": "grants.list"}`, and then
`{"ok": …}` or `{"error": {"code": …, "message": …}}`."""

from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta
from tabwarden.errors import MalformedError
from tabwarden.limits import MAX_SAFE_INTEGER
from tabwarden.protocol.codec import parse_json

MAX_REQUEST_BYTES = 4 * 1024
MAX_REPLY_BYTES = 16 * 1024 * 1024  # 20,000 grants

Id = Annotated[str, Meta(min_length=1, max_length=64)]
Ticket = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+\Z")]
SpanId = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
Reach = Literal["deny", "once", "session", "origin"]


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    pass


class ListGrants(_Request, frozen=True, tag="grants.list"):
    """The grants of the policy in force, and whose credentials are good."""


class IssueGrant(_Request, frozen=True, tag="grants.issue"):
    """A fresh credential for a grant. `expires_at_ms` is wall time since the Unix epoch."""

    id: Id
    expires_at_ms: Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)] | None = None


class RevokeGrant(_Request, frozen=True, tag="grants.revoke"):
    """Take a grant's credential until another one is issued."""

    id: Id


class ReloadPolicy(_Request, frozen=True, tag="policy.reload"):
    """Look at the policy file now."""


class ListApprovals(_Request, frozen=True, tag="approvals.list"):
    """What a person is asked, and what a person has allowed for longer than once."""


class AnswerApproval(_Request, frozen=True, tag="approvals.answer"):
    """A person's answer. `minutes` goes with the reach `origin`."""

    ticket: Ticket
    answer: Reach
    minutes: Annotated[int, Meta(ge=1, le=480)] | None = None


class ForgetApproval(_Request, frozen=True, tag="approvals.forget"):
    """Take back what was allowed for longer than once."""

    id: Ticket


class ListTraces(_Request, frozen=True, tag="traces.list"):
    """The newest requests: `limit` at most, and only those after the one whose own span is `after`."""

    limit: Annotated[int, Meta(ge=1, le=256)] = 20
    after: SpanId | None = None


Request = (
    ListGrants
    | IssueGrant
    | RevokeGrant
    | ReloadPolicy
    | ListApprovals
    | AnswerApproval
    | ForgetApproval
    | ListTraces
)


class Administrator(Protocol):
    """What stands behind the socket. Answers with plain JSON values; raises `TabwardenError` for people."""

    async def __call__(self, request: Request, /) -> Any: ...


def read_request(line: bytes) -> Request:
    """Strict JSON. Raises `MalformedError`, which names the field."""
    try:
        return msgspec.convert(parse_json(line), Request)  # type: ignore[no-any-return]
    except msgspec.ValidationError as error:
        raise MalformedError(str(error)) from None


def write(value: object) -> bytes:
    """One line."""
    return msgspec.json.encode(value) + b"\n"


class Fault(msgspec.Struct, frozen=True):
    """`code` is for programs, `message` for people."""

    code: str
    message: str


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the two."""

    ok: Any = None
    error: Fault | None = None


def read_reply(line: bytes) -> Reply:
    """Raises `MalformedError`."""
    try:
        return msgspec.json.decode(line, type=Reply)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise MalformedError(str(error)) from None
