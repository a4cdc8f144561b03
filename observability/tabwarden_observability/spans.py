"""OpenTelemetry spans out of finished requests. Runs in the export thread, never in the path of a call."""

from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    TraceFlags,
    set_span_in_context,
)
from tabwarden.model import TraceOutcome

from tabwarden_observability.attributes import CAUSE, CODE, PHASE_OUTCOME, Cause, Value
from tabwarden_observability.endings import status_of
from tabwarden_observability.records import FinishedRequest, FinishedSpan, RawRequest

REQUEST_SPAN: Final = "agent.request"


def _version() -> str | None:
    try:
        return version("tabwarden")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return None


SCOPE: Final = InstrumentationScope("tabwarden", _version())


def build_spans(request: FinishedRequest, resource: Resource, sampler: Sampler) -> list[ReadableSpan]:
    """All spans of one request, each after its children, as `on_end` would see them; [] when not sampled.

    The root is `agent.request` (SERVER), the others are INTERNAL and named after the phase or child. Times
    are nanoseconds since the Unix epoch, all from one reading of the wall clock at the start of the request.
    `sampler` decides as for a root with the caller's span as remote parent, if there was one.
    """
    parent = remote_parent(request)
    trace_id = int(request.trace_id, 16)
    if not is_recorded(trace_id, parent, request.attributes, sampler):
        return []
    root = _context(trace_id, request.span_id)
    spans = [
        span for phase in request.phases for span in _below(phase, root, request.start_wall_ns, resource)
    ]
    spans.append(
        make_span(
            REQUEST_SPAN,
            root,
            parent,
            (request.start_wall_ns, request.duration_ns),
            request.outcome,
            request.attributes,
            resource,
            SpanKind.SERVER,
        )
    )
    return spans


def remote_parent(request: RawRequest | FinishedRequest) -> SpanContext | None:
    """The caller's span, if there was one."""
    if request.parent_span_id is None:
        return None
    flags = TraceFlags(TraceFlags.SAMPLED if request.sampled else TraceFlags.DEFAULT)
    return SpanContext(
        int(request.trace_id, 16), int(request.parent_span_id, 16), is_remote=True, trace_flags=flags
    )


def is_recorded(
    trace_id: int, parent: SpanContext | None, attributes: Mapping[str, Value], sampler: Sampler
) -> bool:
    """What `sampler` says of a request."""
    if sampler is DEFAULT_ON:  # what it comes to, without the detour
        return parent is None or parent.trace_flags.sampled
    around = Context() if parent is None else set_span_in_context(NonRecordingSpan(parent), Context())
    result = sampler.should_sample(around, trace_id, REQUEST_SPAN, SpanKind.SERVER, dict(attributes))
    return result.decision is Decision.RECORD_AND_SAMPLE


def attributes_below(outcome: TraceOutcome, code: str | None, cause: Cause | None) -> dict[str, Value]:
    """The attributes of a phase or child."""
    attributes: dict[str, Value] = {PHASE_OUTCOME: outcome.value}
    if code is not None:
        attributes[CODE] = code
    if cause is not None:
        attributes[CAUSE] = cause.value
    return attributes


def make_span(
    name: str,
    context: SpanContext,
    parent: SpanContext | None,
    times: tuple[int, int],
    outcome: TraceOutcome,
    attributes: Mapping[str, Value],
    resource: Resource,
    kind: SpanKind,
) -> ReadableSpan:
    """One span of ours. `times`: its start, since the epoch, and its duration, in nanoseconds."""
    start, duration = times
    return ReadableSpan(
        name=name,
        context=context,
        parent=parent,
        resource=resource,
        attributes=attributes,
        kind=kind,
        status=Status(status_of(outcome)),
        start_time=start,
        end_time=start + duration,
        instrumentation_scope=SCOPE,
    )


def _below(
    span: FinishedSpan, parent: SpanContext, wall_ns: int, resource: Resource
) -> Iterator[ReadableSpan]:
    context = _context(parent.trace_id, span.span_id)
    for child in span.children:
        yield from _below(child, context, wall_ns, resource)
    attributes = attributes_below(span.outcome, span.code, span.cause)
    times = (wall_ns + span.offset_ns, span.duration_ns)
    yield make_span(span.name, context, parent, times, span.outcome, attributes, resource, SpanKind.INTERNAL)


def _context(trace_id: int, span_id: str) -> SpanContext:
    return SpanContext(
        trace_id, int(span_id, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )
