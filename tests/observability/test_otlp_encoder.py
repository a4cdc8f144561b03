"""What is encoded straight from raw requests is what the SDK makes of their spans."""

import struct
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    DEFAULT_ON,
    ParentBased,
    Sampler,
    TraceIdRatioBased,
)
from opentelemetry.trace import SpanContext, TraceFlags
from tabwarden.errors import ActionError, Code, PeerRefused, Refusal
from tabwarden.model import Phase, TraceOutcome
from tabwarden_observability import AllowListExporter, RingTracer, setup_tracing
from tabwarden_observability.attributes import SpanNames
from tabwarden_observability.endings import Ending
from tabwarden_observability.finishing import finished
from tabwarden_observability.otlp_encoder import MAX_KEPT, SpanEncoder
from tabwarden_observability.otlp_outlet import OtlpOutlet
from tabwarden_observability.records import RawRequest
from tabwarden_observability.spans import build_spans, is_recorded

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
RESOURCE = Resource({"service.name": "desk-7", "host.name": "CANARY"})


class Kept:
    def __init__(self) -> None:
        self.raws: list[RawRequest] = []

    def push(self, record: RawRequest, /) -> None:
        self.raws.append(record)


def as_the_sdk_does(raws: list[RawRequest], sampler: Sampler) -> ExportTraceServiceRequest:
    """The long way: finished requests, the SDK's spans, the filter, the SDK's encoder."""
    names, memory = SpanNames(), InMemorySpanExporter()
    spans = [span for raw in raws for span in build_spans(finished(raw, names), RESOURCE, sampler)]
    AllowListExporter(memory).export(spans)
    return encode_spans(memory.get_finished_spans())


def spans_of(request: ExportTraceServiceRequest) -> dict[bytes, Any]:
    spans = [span for of in request.resource_spans for scope in of.scope_spans for span in scope.spans]
    found = {span.trace_id + span.span_id: span for span in spans}
    assert len(found) == len(spans)
    return found


def assert_the_same(
    raws: list[RawRequest], sampler: Sampler = DEFAULT_ON, after: Sequence[RawRequest] = ()
) -> None:
    encoder = SpanEncoder(RESOURCE, sampler)
    for raw in after:
        encoder.add(raw)
    encoder.take()
    theirs = as_the_sdk_does(raws, sampler)
    # Twice, so that what was kept from the first time is used.
    for _ in range(2):
        added = sum(encoder.add(raw) for raw in raws)
        mine = ExportTraceServiceRequest.FromString(encoder.take())
        assert spans_of(mine) == spans_of(theirs)
        assert added == len(spans_of(theirs))
    for request in theirs.resource_spans:
        (own,) = mine.resource_spans
        assert own.resource == request.resource
        assert [scope.scope for scope in own.scope_spans] == [scope.scope for scope in request.scope_spans]


ERRORS = st.sampled_from(
    [
        None,
        ValueError("CANARY"),
        ActionError(Code.POLICY_DENIED),
        ActionError(Code.REVOKED),
        PeerRefused(Refusal.PROOF),
        ExceptionGroup("", [ActionError(Code.STALE), ValueError()]),
        trio.Cancelled._create(source="unknown"),
    ]
)
NOTES = st.dictionaries(
    st.sampled_from(["action", "principal_id", "generation", "reply_bytes", "cause", "outcome", "url"]),
    st.sampled_from(["read", "agent-1", "cancelled", "denied", "CANARY", 0, 1, True, 2**53, -1, None, ["x"]]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("phase"), st.sampled_from([*Phase, "CANARY", ["unhashable"]])),
        st.tuples(st.just("child"), st.sampled_from(["cdp.page", "read", "not fixed", None])),
        st.tuples(st.just("leave"), ERRORS),
        st.tuples(st.just("note"), NOTES),
    ),
    max_size=24,
)
ENDS = st.tuples(st.sampled_from(list(TraceOutcome)), st.sampled_from([None, *list(Code)[:3], "CANARY"]))
PARENTS = st.sampled_from([None, f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"])
SAMPLERS = st.sampled_from([DEFAULT_ON, ALWAYS_OFF, TraceIdRatioBased(0.5)])


def recorded(calls: list[tuple[Any, Any, Any]]) -> list[RawRequest]:
    kept = Kept()
    tracer = RingTracer(sink=kept)
    for steps, parent, (outcome, code) in calls:
        trace = tracer.start_request()
        if parent is not None:
            trace.adopt(parent)
        inside: list[Any] = []
        for step, what in steps:
            if step == "note":
                trace.annotate(**what)
            elif step == "leave":
                if inside:
                    inside.pop().__exit__(None if what is None else type(what), what, None)
            else:
                inside.append(trace.phase(what) if step == "phase" else trace.child(what))
                inside[-1].__enter__()
        # Whatever is still inside is cut by the end of the request.
        trace.end(outcome, code)
        with ExitStack() as left:
            for block in inside:
                left.push(block)
    return kept.raws


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(STEPS, PARENTS, ENDS), max_size=3), SAMPLERS)
def test_whatever_a_call_does(calls, sampler):
    assert_the_same(recorded(calls), sampler)


@dataclass
class Child:
    name: str
    number: int
    at: int
    outer: "Child | None"
    start: int
    end: int
    ending: Ending | None = None


ENTRIES = st.sampled_from([*Phase, None, None, Ending(TraceOutcome.DENIED, "stale"), Ending(None), "x"])
TIMES = st.integers(1_000, 1_020)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(ENTRIES, st.one_of(TIMES, st.none())), max_size=12),
    st.lists(st.tuples(st.integers(0, 12), st.integers(-1, 3), TIMES, TIMES), max_size=4),
    st.booleans(),
    ENDS,
)
def test_logs_that_no_call_leaves(pairs, children, odd, end):
    log = [entry for pair in pairs for entry in pair][: -1 if odd else None]
    made: list[Child] = []
    for number, (at, outer, start, stop) in enumerate(children):
        around = made[outer] if 0 <= outer < len(made) else None
        made.append(Child("cdp.page", number, at, around, start, stop if stop % 3 else 0))
    assert_the_same(
        [RawRequest(TRACE, SPAN, None, True, 10**18, 1_005, 1_015, end[0], None, (), log, made, 0)]
    )


def test_more_kinds_of_spans_and_values_than_are_kept():
    calls = []
    for number in range(MAX_KEPT + 10):
        ending = ActionError(Code.STALE)
        ending.code = type("Code", (), {"value": f"code-{number}"})  # type: ignore[assignment]
        steps = [("note", {"reply_bytes": number}), ("phase", Phase.AUDIT), ("leave", ending)]
        calls.append((steps, None, (TraceOutcome.FAILED, None)))
    raws = recorded(calls)
    assert_the_same(raws[-20:], after=raws)


@pytest.mark.parametrize("flags", [None, TraceFlags.SAMPLED, TraceFlags.DEFAULT])
def test_the_default_sampler_is_asked_by_its_meaning(flags):
    parent = None if flags is None else SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(flags))
    assert is_recorded(1, parent, {}, DEFAULT_ON) is is_recorded(1, parent, {}, ParentBased(ALWAYS_ON))


class Unwilling(Sampler):
    def should_sample(self, *args, **kwargs):
        raise RuntimeError("CANARY")

    def get_description(self):
        return "unwilling"


def test_what_cannot_be_encoded_leaves_nothing_behind():
    (raw,) = recorded([([("phase", Phase.AUDIT)], None, (TraceOutcome.OK, None))])
    encoder = SpanEncoder(RESOURCE, Unwilling())
    with pytest.raises(RuntimeError):
        encoder.add(raw)
    encoder = SpanEncoder(RESOURCE, DEFAULT_ON)
    for log in (raw.log, []):
        with pytest.raises(struct.error):
            encoder.add(raw._replace(log=log, wall_ns=-(10**18)))
    assert not spans_of(ExportTraceServiceRequest.FromString(encoder.take()))


def test_spans_of_an_adapter_travel_with_the_others():
    (raw,) = recorded([([("phase", Phase.AUDIT)], None, (TraceOutcome.OK, None))])
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    span = provider.get_tracer("tabwarden.ai").start_span("chat", attributes={"url": "CANARY"})
    span.end()
    AllowListExporter(memory).export([span])
    encoder = SpanEncoder(RESOURCE, DEFAULT_ON)
    assert encoder.add_span(span) == 1
    encoder.add(raw)
    both = spans_of(ExportTraceServiceRequest.FromString(encoder.take()))
    assert both == spans_of(as_the_sdk_does([raw], DEFAULT_ON)) | spans_of(
        encode_spans(memory.get_finished_spans())
    )
    assert not spans_of(ExportTraceServiceRequest.FromString(encoder.take()))


def test_this_release_of_the_sdk_has_the_client_that_is_used():
    exporter = OTLPSpanExporter(endpoint="http://127.0.0.1:9")
    assert OtlpOutlet.fits(exporter)
    exporter.shutdown()
    del exporter._client
    assert not OtlpOutlet.fits(exporter)


def test_nothing_is_sent_after_the_end(collector):
    (raw,) = recorded([([], None, (TraceOutcome.OK, None))])
    exporter = OTLPSpanExporter(endpoint=f"{collector.endpoint}/v1/traces")
    outlet = OtlpOutlet(exporter, TracerProvider(shutdown_on_exit=False))
    assert outlet.add(raw) == 1
    assert outlet.deliver() == 1
    assert outlet.add(raw) == 1
    outlet.abort()
    outlet.close()
    assert outlet.deliver() == 0
    assert len(collector.requests) == 1


class Counting(OTLPSpanExporter):
    """A host's own, which wants to see the spans."""

    seen = 0

    def export(self, spans):
        self.seen += len(spans)
        return super().export(spans)


async def test_an_exporter_made_from_that_of_otlp_gets_spans(collector):
    exporter = Counting(endpoint=f"{collector.endpoint}/v1/traces")
    tracing = setup_tracing(exporters=[exporter])
    tracing.tracer.start_request().end(TraceOutcome.OK)
    assert await tracing.shutdown() == 0
    assert exporter.seen == len(collector.spans) == 1
