"""How a block ended, told from its exception by type alone. The exception itself is never kept."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import trio
from opentelemetry.trace import StatusCode
from tabwarden.errors import DENIALS, ActionError, Code, PeerRefused
from tabwarden.model import TraceOutcome

_MAX_DEPTH: Final = 8  # nested nurseries; deeper groups count as failed


class Ending(NamedTuple):
    """`outcome` None: cancelled, and only the end of the request will say by what."""

    outcome: TraceOutcome | None
    code: str | None = None


CANCELLED: Final = Ending(None)
FAILED: Final = Ending(TraceOutcome.FAILED)

_BY_CODE: Final[Mapping[Code, TraceOutcome]] = {
    **dict.fromkeys(DENIALS, TraceOutcome.DENIED),
    Code.DEADLINE: TraceOutcome.DEADLINE,
    Code.REVOKED: TraceOutcome.REVOKED,
    Code.DISCONNECTED: TraceOutcome.DISCONNECTED,
    Code.SHUTTING_DOWN: TraceOutcome.CLOSED,
}


def ending_of(error: BaseException) -> Ending:
    """The ending that `error` stands for. In a group the worst counts: failed, then typed, then cancelled."""
    try:
        return _ending_of(error, 0)
    except Exception:  # an exception class with hostile attributes
        return FAILED


def _ending_of(error: BaseException, depth: int) -> Ending:
    if isinstance(error, trio.Cancelled):
        return CANCELLED
    if isinstance(error, ActionError):
        return Ending(_BY_CODE.get(error.code, TraceOutcome.FAILED), error.code.value)
    if isinstance(error, PeerRefused):
        return Ending(TraceOutcome.DENIED, error.reason.value)
    if isinstance(error, BaseExceptionGroup) and depth < _MAX_DEPTH:
        worst = CANCELLED
        for member in error.exceptions:
            ending = _ending_of(member, depth + 1)
            if ending.outcome is TraceOutcome.FAILED:
                return ending
            if ending.outcome is not None:
                worst = ending
        return worst
    return FAILED


def outcome_of(code: Code) -> TraceOutcome:
    """How a call ended that ended with `code`."""
    return _BY_CODE.get(code, TraceOutcome.FAILED)


def status_of(outcome: TraceOutcome) -> StatusCode:
    """ERROR when the broker or an adapter did not do its work (failed, out of time); else UNSET.

    A denial, a revocation, a closed broker and an agent that left are decisions of a person or a peer that
    were carried out: they are told by the outcome and cause attributes and do not raise the error rate.
    OpenTelemetry keeps OK for applications that overrule an error, so it is never set.
    """
    if outcome in (TraceOutcome.FAILED, TraceOutcome.DEADLINE):
        return StatusCode.ERROR
    return StatusCode.UNSET
