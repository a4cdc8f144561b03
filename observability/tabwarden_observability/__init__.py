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
from tabwarden_observability.metrics import Metrics, setup_metrics
from tabwarden_observability.otel_context import attached_to, current_span_context
from tabwarden_observability.records import FinishedRequest, FinishedSpan
from tabwarden_observability.setup import Tracing, setup_tracing
from tabwarden_observability.tracing import RingTrace, RingTracer
from tabwarden_observability.waterfall import phase_summary, waterfall

__all__ = [
    "ANNOTATIONS",
    "RESOURCE_ATTRIBUTES",
    "SPAN_ATTRIBUTES",
    "AllowListExporter",
    "Cause",
    "FinishedRequest",
    "FinishedSpan",
    "Metrics",
    "RingTrace",
    "RingTracer",
    "Tracing",
    "attached_to",
    "current_span_context",
    "phase_summary",
    "setup_metrics",
    "setup_tracing",
    "waterfall",
]
