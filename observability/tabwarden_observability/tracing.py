"""The `Tracer` port. In the path of a call it appends to a small list; all else is done from that list later.

Building OpenTelemetry spans in the path costs 10 to 30 us for each. Here a phase costs two clock readings and
four appends, and `end()` hands one tuple over.
"""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar, Token
from functools import partial
from time import perf_counter_ns, time_ns
from types import TracebackType
from typing import Final, Protocol

from tabwarden.model import Phase, TraceOutcome

from tabwarden_observability.attributes import SpanNames, check_code
from tabwarden_observability.endings import Ending, ending_of
from tabwarden_observability.finishing import finished
from tabwarden_observability.listing import Listing, listing
from tabwarden_observability.records import (
    CHILD_NUMBERS,
    FinishedRequest,
    LogEntry,
    RawChild,
    RawRequest,
)
from tabwarden_observability.trace_ids import IDS, parse_traceparent, span_id_below

KEPT_REQUESTS: Final = 256  # what a person looks through; about 3 KiB each
MAX_CHILDREN: Final = 128  # of one request: an adapter that polls must not fill the memory
MAX_NOTES: Final = 32  # calls of `annotate` on one request, for the same reason


class RecordSink(Protocol):
    """Where finished requests go. Must be quick, must not block and must not raise."""

    def push(self, record: RawRequest, /) -> None: ...


class RingTracer:
    """Implements `tabwarden.ports.Tracer`. Requests of many tasks and threads may be traced at once.

    `keep` finished requests stay readable with `recent`; each is also pushed into `sink`, if there is one.
    """

    __slots__ = ("_names", "_recent", "_sink")

    def __init__(self, *, keep: int = KEPT_REQUESTS, sink: RecordSink | None = None) -> None:
        self._recent: deque[RawRequest] = deque(maxlen=keep)
        self._sink = sink
        self._names = SpanNames()

    def start_request(self) -> "RingTrace":
        """Start the clock of one `agent.request`."""
        return RingTrace(self)

    def recent(self, count: int = 20) -> list[FinishedRequest]:
        """The last `count` finished requests, oldest first."""
        if count <= 0:
            return []
        return [finished(raw, self._names) for raw in list(self._recent)[-count:]]

    def listed(self, limit: int, after: str | None = None) -> Callable[[], Listing]:
        """What `listing` makes of those that have finished by now. Call the result anywhere, off the loop."""
        raws = list(self._recent)
        return partial(listing, raws, self._names, limit, after)

    def send_to(self, sink: RecordSink) -> None:
        """From now on, push each finished request into `sink`, and into no other."""
        self._sink = sink

    def _finish(self, record: RawRequest) -> None:
        self._recent.append(record)
        if self._sink is not None:
            self._sink.push(record)


class _PhaseTimer:
    """The context manager of every phase of one request: phases follow or enclose one another."""

    __slots__ = ("log", "phase")

    def __init__(self, log: list[LogEntry]) -> None:
        self.log = log
        self.phase: Phase | None = None

    def __enter__(self) -> None:
        log = self.log
        log.append(self.phase)
        log.append(perf_counter_ns())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        now = perf_counter_ns()
        log = self.log
        log.append(None if error is None else ending_of(error))
        log.append(now)


class _Child:
    """One timed child: of the child that its task is in, or else of the phase that runs."""

    __slots__ = ("_token", "_trace", "at", "end", "ending", "name", "number", "outer", "start")

    def __init__(self, trace: "RingTrace", name: str) -> None:
        self._trace: RingTrace | None = trace
        self._token: Token[_Child | None] | None = None
        self.name = name
        self.number = self.at = self.start = self.end = 0
        self.outer: RawChild | None = None
        self.ending: Ending | None = None

    def __enter__(self) -> None:
        trace = self._trace
        if trace is None or self._token is not None or not trace._begin(self):
            return
        self._token = _CURRENT_CHILD.set(self)
        self.start = perf_counter_ns()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        now = perf_counter_ns()
        trace, self._trace = self._trace, None  # also breaks the circle with the trace's list
        if trace is None or self._token is None:
            return
        # ValueError: left in another task than it was entered in, and that task's value is not ours.
        with suppress(ValueError):
            _CURRENT_CHILD.reset(self._token)
        self._token = None  # it holds the whole context alive
        if not trace.ended:
            self.end = now
            self.ending = None if error is None else ending_of(error)


# The innermost child of the running task. Tasks inherit it when they start, so children of tasks that run
# side by side nest below the child that started them and not below one another.
_CURRENT_CHILD: ContextVar[_Child | None] = ContextVar("tabwarden_current_child", default=None)


class RingTrace:
    """Implements `tabwarden.ports.RequestTrace`. No method raises.

    `trace_id` and `span_id` are lower-case hexadecimal (32 and 16 digits), and known from the start;
    `adopt` changes the trace id. After `end()` nothing more is recorded. `phase` is for one task; `child`
    may be used by several tasks at once.
    """

    __slots__ = (
        "_children",
        "_log",
        "_notes",
        "_parent_span_id",
        "_sampled",
        "_skipped",
        "_start",
        "_timer",
        "_tracer",
        "_wall_ns",
        "ended",
        "span_id",
        "trace_id",
    )

    def __init__(self, tracer: RingTracer) -> None:
        self._wall_ns = time_ns()
        self._start = perf_counter_ns()
        self._tracer = tracer
        self.trace_id, self.span_id = IDS.take()
        self._parent_span_id: str | None = None
        self._sampled = True
        self._notes: list[Mapping[str, object]] = []
        self._log: list[LogEntry] = []
        self._timer = _PhaseTimer(self._log)
        self._children: list[_Child] | None = None
        self._skipped = 0
        self.ended = False

    def adopt(self, traceparent: str) -> None:
        """Become a child of the caller's span, in its trace. Anything but a valid version 00 is ignored."""
        parent = parse_traceparent(traceparent)
        if parent is not None and not self.ended:
            self.trace_id, self._parent_span_id, self._sampled = parent

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        """Time one phase. Enter what this returns at once, as in `with trace.phase(Phase.AUDIT):`."""
        timer = self._timer
        timer.phase = phase
        return timer

    def child(self, name: str) -> AbstractContextManager[None]:
        """Time something below the running phase. `name` is a fixed string such as `cdp.navigate`."""
        return _Child(self, name)

    def annotate(self, **attributes: str | int | bool | None) -> None:
        """Add attributes to the request. Names are the keys of `ANNOTATIONS`; others are dropped."""
        # Checked when the record is read, off the path: six checks cost as much as four phases.
        notes = self._notes
        if not self.ended and len(notes) < MAX_NOTES:
            notes.append(attributes)

    def end(self, outcome: TraceOutcome, code: str | None = None) -> None:
        """Close the trace and hand it over. A code outside of `Code` and `Refusal` is dropped."""
        if self.ended:
            return
        self.ended = True
        end = perf_counter_ns()
        if code is not None:
            try:
                code = str(passed) if (passed := check_code(code)) is not None else None
            except Exception:  # a value against the signature: unhashable, or hostile when compared
                code = None
        record = RawRequest(
            self.trace_id,
            self.span_id,
            self._parent_span_id,
            self._sampled,
            self._wall_ns,
            self._start,
            end,
            outcome if type(outcome) is TraceOutcome else TraceOutcome.FAILED,
            code,
            self._notes,
            self._log,
            self._children or (),
            self._skipped,
        )
        # A phase that still runs writes into a fresh list from here on, so the record can no longer change.
        self._timer.log = self._log = []
        self._children = None
        self._tracer._finish(record)

    def current_span_id(self) -> str:
        """The id (16 hexadecimal digits) of this task's innermost running child, else phase, else request."""
        child = _CURRENT_CHILD.get()
        if child is not None and child._trace is self and child.at == len(self._log):
            return span_id_below(self.span_id, CHILD_NUMBERS + child.number)
        endings = 0
        for position in range(len(self._log) // 2 - 1, -1, -1):
            if isinstance(self._log[2 * position], Phase):
                if not endings:
                    return span_id_below(self.span_id, position + 1)
                endings -= 1
            else:
                endings += 1
        return self.span_id

    @property
    def sampled(self) -> bool:
        """False when the caller's span said that it is not recorded."""
        return self._sampled

    def _begin(self, child: _Child) -> bool:
        if self.ended:
            return False
        children = self._children
        if children is None:
            children = self._children = []
        if len(children) >= MAX_CHILDREN:
            self._skipped += 1
            return False
        child.number = len(children)
        child.at = len(self._log)
        outer = _CURRENT_CHILD.get()
        # A child that ended, one of another request, or one with a phase begun since, is not around this one.
        if outer is not None and outer._trace is self and outer.at == child.at:
            child.outer = outer
        children.append(child)
        return True
