"""Traces of every phase of a call, and what they may say.

    tracing = setup_tracing()                  # from OTEL_*; exports nothing unless told to
    ... start_agent_control(..., tracer=tracing.tracer)
    console.print(waterfall(tracing.recent()))
    await tracing.shutdown()

Only `attributes.ANNOTATIONS` may be said of a request. For spans of your own below a phase, use
`trace.child("cdp.navigate")`, or, with OpenTelemetry, `attached_to(trace)` and `tracing.provider`.
"""

from tabwarden_observability.allow_list_exporter import AllowListExporter
from tabwarden_observability.attributes import ANNOTATIONS, RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES, Cause
from tabwarden_observability.broker_metrics import AuditFigures, broker_metrics
from tabwarden_observability.listing import MAX_LISTED, Listing, from_plain
from tabwarden_observability.metrics import Metrics, setup_metrics
from tabwarden_observability.otel_context import attached_to, current_span_context
from tabwarden_observability.page import trace_page
from tabwarden_observability.records import FinishedRequest, FinishedSpan
from tabwarden_observability.setup import Tracing, setup_tracing
from tabwarden_observability.tracing import RingTrace, RingTracer
from tabwarden_observability.waterfall import phase_summary, waterfall

__all__ = [
    "ANNOTATIONS",
    "MAX_LISTED",
    "RESOURCE_ATTRIBUTES",
    "SPAN_ATTRIBUTES",
    "AllowListExporter",
    "AuditFigures",
    "Cause",
    "FinishedRequest",
    "FinishedSpan",
    "Listing",
    "Metrics",
    "RingTrace",
    "RingTracer",
    "Tracing",
    "attached_to",
    "broker_metrics",
    "current_span_context",
    "from_plain",
    "phase_summary",
    "setup_metrics",
    "setup_tracing",
    "trace_page",
    "waterfall",
]
