"""How one call of the load ended, and whether the broker's limiter let it through."""

from enum import IntEnum
from typing import Final

from tabwarden.errors import (
    DENIALS,
    CallFailed,
    ChallengeLimited,
    ClientDeadline,
    ClientError,
    Code,
    ProtocolViolation,
    Refused,
    Unreachable,
)

UNFINISHED: Final = "unfinished"
CHALLENGE_LIMITED: Final = "challenge-limited"


class Kind(IntEnum):
    """What became of a call.

    `limited` was turned away for asking too often, with a call (sealed) or with the challenge before it;
    `refused` was decided against the agent; `failed` is any other sealed failure; `transport` is every
    ending without an answer that could be believed.
    """

    ACCEPTED = 0
    LIMITED = 1
    REFUSED = 2
    FAILED = 3
    TRANSPORT = 4

    @property
    def title(self) -> str:
        """In lower case, for reports."""
        return self.name.lower()


_TRANSPORT: Final[tuple[tuple[type[ClientError], str], ...]] = (
    (Unreachable, "unreachable"),
    (ClientDeadline, "client-deadline"),
    (ProtocolViolation, "protocol-violation"),
)
# A broker that shuts down says so of calls that its limiter has seen, and of those that it has not.
_UNKNOWN_TO_LIMITER: Final = frozenset({Code.SHUTTING_DOWN.value, Code.BAD_REQUEST.value})


def ending_of(error: ClientError | None, *, asked: bool) -> tuple[Kind, str, bool | None]:
    """Kind, code and whether one unit of its principal's minute was taken: True, False or None (not known).

    `asked`: the sealed call had gone out. Before that the limiter has seen nothing. Policy comes after the
    limiter in the broker, so that what policy denies has taken a unit as well.
    """
    unseen = None if asked else False
    if error is None:
        return Kind.ACCEPTED, "ok", True
    if isinstance(error, CallFailed):
        if error.code == Code.RATE_LIMITED.value:
            return Kind.LIMITED, error.code, False
        taken = None if error.code in _UNKNOWN_TO_LIMITER else True
        return (Kind.REFUSED if error.code in DENIALS else Kind.FAILED), error.code, taken
    if isinstance(error, ChallengeLimited):
        return Kind.LIMITED, CHALLENGE_LIMITED, False
    if isinstance(error, Refused):
        return Kind.REFUSED, "refused", unseen
    code = next((code for kind, code in _TRANSPORT if isinstance(error, kind)), "client-error")
    return Kind.TRANSPORT, code, unseen
