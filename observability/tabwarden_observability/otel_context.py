"""For adapters that make OpenTelemetry spans of their own below a traced request. Opt-in: costs a few us."""

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final

from opentelemetry import context as otel
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    set_span_in_context,
)
from tabwarden.ports import RequestTrace

from tabwarden_observability.tracing import RingTrace

_ATTACHED: Final[ContextVar[object]] = ContextVar("tabwarden_attached", default=None)


def current_span_context(trace: RequestTrace) -> SpanContext:
    """The innermost running span of `trace` in this task: its child, else its phase, else `agent.request`.

    For a trace that is not ours (a fake, or no tracing), OpenTelemetry's invalid context.
    """
    if not isinstance(trace, RingTrace):
        return INVALID_SPAN_CONTEXT
    flags = TraceFlags(TraceFlags.SAMPLED if trace.sampled else TraceFlags.DEFAULT)
    return SpanContext(int(trace.trace_id, 16), int(trace.current_span_id(), 16), False, flags)


class attached_to:  # noqa: N801 - reads as what it does: `with attached_to(trace):`
    """While the block runs, OpenTelemetry spans started in this task, and tasks and threads started from it,
    become children of the innermost running span of `trace`. Does nothing for a trace that is not ours.

    If the block is left in another task than it was entered in (a generator can do that), nothing is
    detached: a token belongs to the context that it was made in, and that context ends with its task.
    """

    __slots__ = ("_mark", "_token", "_trace")

    def __init__(self, trace: RequestTrace) -> None:
        self._trace = trace
        self._mark: Token[object] | None = None
        self._token: Token[otel.Context] | None = None

    def __enter__(self) -> None:
        span_context = current_span_context(self._trace)
        if span_context.is_valid:
            self._token = otel.attach(set_span_in_context(NonRecordingSpan(span_context)))
            self._mark = _ATTACHED.set(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        mark, token = self._mark, self._token
        self._mark = self._token = None
        if mark is None or token is None:
            return
        try:
            # Our own token tells whether this is the same context: OpenTelemetry's detach would log the
            # text of the exception instead.
            _ATTACHED.reset(mark)
        except ValueError:
            return
        otel.detach(token)
