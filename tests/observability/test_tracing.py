"""The tree that is read out of the path's log: parents, times, endings, and what survives misuse."""

import re
import time

import pytest
import trio
from tabwarden.errors import ActionError, Code, PeerRefused, Refusal
from tabwarden.model import Phase, TraceOutcome
from tabwarden_observability import Cause, FinishedSpan, RingTracer
from tabwarden_observability.endings import ending_of
from tabwarden_observability.record_ring import RecordRing
from tabwarden_observability.tracing import MAX_CHILDREN, MAX_NOTES

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def only(tracer: RingTracer):
    (request,) = tracer.recent()
    return request


def shape(spans: tuple[FinishedSpan, ...]):
    return [(span.name, shape(span.children)) for span in spans]


def check_times(spans, start: int, end: int) -> None:
    before = start
    for span in spans:
        assert start <= span.offset_ns <= span.offset_ns + span.duration_ns <= end
        assert span.offset_ns >= before
        before = span.offset_ns
        check_times(span.children, span.offset_ns, span.offset_ns + span.duration_ns)


def test_phases_in_order_inside_their_request():
    tracer = RingTracer()
    before = time.time_ns()
    trace = tracer.start_request()
    for phase in Phase:
        with trace.phase(phase):
            pass
    trace.end(TraceOutcome.OK)
    request = only(tracer)
    assert [span.name for span in request.phases] == [phase.value for phase in Phase]
    assert all(span.outcome is TraceOutcome.OK and span.is_phase for span in request.phases)
    check_times(request.phases, 0, request.duration_ns)
    ends = [span.offset_ns + span.duration_ns for span in request.phases]
    starts = [span.offset_ns for span in request.phases]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert before <= request.start_wall_ns <= time.time_ns()
    assert (request.outcome, request.code, request.cause) == (TraceOutcome.OK, None, None)


def test_children_and_phases_nest():
    tracer = RingTracer()
    trace = tracer.start_request()
    with trace.child("gate"):
        pass
    with trace.phase(Phase.DISPATCH):
        with trace.child("cdp.navigate"), trace.child("cdp.send"):
            pass
        with trace.phase(Phase.AUDIT), trace.child("store.append"):
            pass
        with trace.child("cdp.settle"):
            pass
    with trace.phase(Phase.PROJECTION):
        pass
    trace.end(TraceOutcome.OK)
    request = only(tracer)
    assert shape(request.phases) == [
        ("gate", []),
        (
            "dispatch",
            [("cdp.navigate", [("cdp.send", [])]), ("audit", [("store.append", [])]), ("cdp.settle", [])],
        ),
        ("projection", []),
    ]
    check_times(request.phases, 0, request.duration_ns)


async def test_children_of_tasks_side_by_side_do_not_nest_in_one_another():
    tracer = RingTracer()
    trace = tracer.start_request()
    both_inside = trio.Event()
    inside = 0

    async def work(name: str) -> None:
        nonlocal inside
        with trace.child(name):
            inside += 1
            if inside == 2:
                both_inside.set()
            await both_inside.wait()
            with trace.child("step"):
                pass

    with trace.phase(Phase.DISPATCH), trace.child("gather"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, "left")
            nursery.start_soon(work, "right")
    trace.end(TraceOutcome.OK)
    (dispatch,) = only(tracer).phases
    (gather,) = dispatch.children
    assert sorted(shape(gather.children)) == [("left", [("step", [])]), ("right", [("step", [])])]


async def test_many_requests_at_once_do_not_mix():
    tracer = RingTracer(keep=200)
    ids = {}

    async def call(number: int) -> None:
        trace = tracer.start_request()
        trace.annotate(generation=number)
        for phase in Phase:
            with trace.phase(phase):
                await trio.lowlevel.checkpoint()
                if phase is Phase.DISPATCH:
                    with trace.child("adapter.work"):
                        await trio.lowlevel.checkpoint()
        ids[trace.trace_id] = number
        trace.end(TraceOutcome.OK)

    async with trio.open_nursery() as nursery:
        for number in range(200):
            nursery.start_soon(call, number)
    requests = tracer.recent(1000)
    assert len(requests) == len(ids) == len({request.span_id for request in requests}) == 200
    for request in requests:
        assert request.attributes["tabwarden.principal.generation"] == ids[request.trace_id]
        assert shape(request.phases) == [
            (phase.value, [("adapter.work", [])] if phase is Phase.DISPATCH else []) for phase in Phase
        ]
        check_times(request.phases, 0, request.duration_ns)


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (ValueError("CANARY"), TraceOutcome.FAILED, None),
        (KeyboardInterrupt(), TraceOutcome.FAILED, None),
        (ActionError(Code.POLICY_DENIED), TraceOutcome.DENIED, "policy-denied"),
        (ActionError(Code.NAVIGATION_FAILED), TraceOutcome.FAILED, "navigation-failed"),
        (ActionError(Code.DEADLINE), TraceOutcome.DEADLINE, "deadline"),
        (ActionError(Code.SHUTTING_DOWN), TraceOutcome.CLOSED, "shutting-down"),
        (PeerRefused(Refusal.PROOF), TraceOutcome.DENIED, "proof"),
        (ExceptionGroup("", [ActionError(Code.STALE), ValueError()]), TraceOutcome.FAILED, "stale"),
        (ExceptionGroup("", [ActionError(Code.TARGET_DENIED)]), TraceOutcome.DENIED, "target-denied"),
    ],
)
def test_exceptions_pass_through_and_leave_an_outcome(error, outcome, code):
    tracer = RingTracer()
    trace = tracer.start_request()
    with pytest.raises(type(error)) as caught, trace.phase(Phase.DISPATCH), trace.child("adapter.work"):
        raise error
    assert caught.value is error
    trace.end(TraceOutcome.OK)
    (phase,) = only(tracer).phases
    (child,) = phase.children
    assert (phase.outcome, phase.code) == (child.outcome, child.code) == (outcome, code)


class Hostile(Exception):
    def __getattribute__(self, name: str) -> object:
        raise RuntimeError


def test_an_exception_that_cannot_be_looked_at_is_a_failure():
    assert ending_of(Hostile()).outcome is TraceOutcome.FAILED
    nested = ExceptionGroup("", [trio.TooSlowError()])
    for _ in range(20):
        nested = ExceptionGroup("", [nested])
    assert ending_of(nested).outcome is TraceOutcome.FAILED


@pytest.mark.parametrize(
    ("outcome", "phase_outcome", "cause", "request_cause"),
    [
        (TraceOutcome.DEADLINE, TraceOutcome.DEADLINE, Cause.DEADLINE, Cause.DEADLINE),
        (TraceOutcome.REVOKED, TraceOutcome.REVOKED, Cause.REVOKED, Cause.REVOKED),
        (TraceOutcome.DISCONNECTED, TraceOutcome.DISCONNECTED, Cause.DISCONNECTED, Cause.DISCONNECTED),
        (TraceOutcome.CLOSED, TraceOutcome.CLOSED, Cause.CLOSED, Cause.CLOSED),
        (TraceOutcome.FAILED, TraceOutcome.FAILED, Cause.CANCELLED, Cause.CANCELLED),
        (TraceOutcome.OK, TraceOutcome.FAILED, Cause.CANCELLED, None),
    ],
)
async def test_cancellation_gets_its_cause_from_the_end(outcome, phase_outcome, cause, request_cause):
    tracer = RingTracer()
    trace = tracer.start_request()

    async def work() -> None:
        with trace.child("adapter.work"):
            scope.cancel()
            await trio.sleep_forever()

    with trio.CancelScope() as scope, trace.phase(Phase.DISPATCH):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
    assert scope.cancelled_caught
    trace.end(outcome)
    request = only(tracer)
    (phase,) = request.phases
    (child,) = phase.children
    assert request.cause is request_cause
    assert (phase.outcome, phase.cause) == (child.outcome, child.cause) == (phase_outcome, cause)


def test_a_second_end_and_whatever_comes_after_the_first_change_nothing():
    tracer = RingTracer()
    trace = tracer.start_request()
    phase, child = trace.phase(Phase.DISPATCH), trace.child("adapter.work")
    phase.__enter__()
    child.__enter__()
    trace.end(TraceOutcome.DEADLINE, "deadline")
    first = only(tracer)
    with trace.phase(Phase.AUDIT), trace.child("late"):
        pass
    child.__exit__(None, None, None)
    phase.__exit__(None, None, None)
    phase.__exit__(None, None, None)
    trace.annotate(action="read")
    trace.adopt(f"00-{TRACE}-{SPAN}-01")
    trace.end(TraceOutcome.OK)
    assert only(tracer) == first
    (span,) = first.phases
    # What still ran is cut where the request ends, and ends as it does.
    assert span.outcome is TraceOutcome.DEADLINE
    assert span.offset_ns + span.duration_ns == first.duration_ns
    assert span.children[0].offset_ns + span.children[0].duration_ns == first.duration_ns


def test_nothing_raises_into_the_caller():
    tracer = RingTracer()
    trace = tracer.start_request()
    trace.phase(Phase.AUDIT).__exit__(None, None, None)  # never entered
    with trace.phase("CANARY"), trace.child(["CANARY"]), trace.child(None):
        pass
    trace.annotate(action=["unhashable"], scope=None, session_id=b"x", nonsense=object())
    trace.adopt(None)
    again = trace.child("twice")
    for _ in range(2):
        with again:
            pass
    trace.end("CANARY", ["CANARY"])
    request = only(tracer)
    assert (request.outcome, request.code) == (TraceOutcome.FAILED, None)
    assert shape(request.phases) == [("unlisted", [("unlisted", [("unlisted", [])])]), ("twice", [])]
    assert "CANARY" not in repr(request)


def test_one_request_cannot_fill_the_memory():
    tracer = RingTracer()
    trace = tracer.start_request()
    for _ in range(MAX_CHILDREN + 7):
        with trace.child("poll"):
            pass
    for number in range(MAX_NOTES + 7):
        trace.annotate(generation=number)
    trace.end(TraceOutcome.OK)
    request = only(tracer)
    assert (len(request.phases), request.skipped_children) == (MAX_CHILDREN, 7)
    assert request.attributes["tabwarden.principal.generation"] == MAX_NOTES - 1


def test_store_is_bounded_and_oldest_first():
    tracer = RingTracer(keep=3)
    for number in range(5):
        trace = tracer.start_request()
        trace.annotate(generation=number)
        trace.end(TraceOutcome.OK)
    numbers = [request.attributes["tabwarden.principal.generation"] for request in tracer.recent()]
    assert numbers == [2, 3, 4]
    assert [request.trace_id for request in tracer.recent(2)] == [r.trace_id for r in tracer.recent()[1:]]
    assert tracer.recent(0) == []


def test_adopt_makes_it_a_child_of_the_caller():
    tracer = RingTracer()
    trace = tracer.start_request()
    own = trace.span_id
    trace.adopt(f"00-{TRACE}-{SPAN}-00")
    assert (trace.trace_id, trace.span_id) == (TRACE, own)
    trace.end(TraceOutcome.OK)
    request = only(tracer)
    assert (request.trace_id, request.parent_span_id, request.sampled) == (TRACE, SPAN, False)


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"01-{TRACE}-{SPAN}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0\uff11",
        f"00-{TRACE[:-1]}-{SPAN}-01",
    ],
)
def test_adopt_ignores_anything_but_a_strict_version_00(header):
    tracer = RingTracer()
    trace = tracer.start_request()
    own = trace.trace_id
    trace.adopt(header)
    trace.end(TraceOutcome.OK)
    assert (trace.trace_id, only(tracer).parent_span_id) == (own, None)


def test_ids_are_fresh_and_well_formed():
    tracer = RingTracer()
    traces = [tracer.start_request() for _ in range(1000)]
    assert len({trace.trace_id for trace in traces}) == len({trace.span_id for trace in traces}) == 1000
    assert all(re.fullmatch("[0-9a-f]{32}", trace.trace_id) for trace in traces)
    assert all(re.fullmatch("[0-9a-f]{16}", trace.span_id) for trace in traces)


def test_ring_overflow_is_counted_in_spans():
    ring = RecordRing(capacity=2)
    tracer = RingTracer(sink=ring)
    for _ in range(5):
        trace = tracer.start_request()
        with trace.phase(Phase.AUDIT), trace.child("store.append"):
            pass
        trace.end(TraceOutcome.OK)
    assert (len(ring), ring.dropped) == (2, 3 * 3)
    ring.close()
    assert (len(ring), ring.dropped) == (0, 5 * 3)
