"""The second wall: a filter on the way out, for spans that were made elsewhere with the same provider."""

import re
from collections.abc import Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode

from tabwarden_observability.attributes import (
    RESOURCE_ATTRIBUTES,
    SPAN_ATTRIBUTES,
    UNLISTED,
    SpanNames,
    clean,
)
from tabwarden_observability.spans import SCOPE

_SCOPE = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,99}", re.ASCII)
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+-]{0,31}", re.ASCII)
_STATUS = {code: Status(code) for code in StatusCode}  # none with a description


class SpanFilter:
    """Makes copies of spans that hold nothing but what `attributes` lists.

    Kept: ids, parent, kind, times, status code, listed attributes with valid values, listed resource
    attributes, and a name if it looks like a fixed one. Dropped: all events, links, status descriptions,
    trace states (W3C `tracestate` carries other vendors' data), and everything else.
    """

    def __init__(self) -> None:
        self._names = SpanNames()
        self._resource: tuple[Resource, Resource] | None = None

    def __call__(self, span: ReadableSpan) -> ReadableSpan:
        """The copy."""
        return ReadableSpan(
            name=self._names.clean(span.name),
            context=_bare(span.get_span_context()),
            parent=_bare(span.parent),
            resource=self._filtered_resource(span.resource),
            attributes=clean(span.attributes or {}, SPAN_ATTRIBUTES),
            kind=span.kind,
            status=_STATUS[span.status.status_code],
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=_filtered_scope(span.instrumentation_scope),
        )

    def _filtered_resource(self, resource: Resource) -> Resource:
        # All spans of a provider share one resource: filter it once.
        known = self._resource
        if known is None or known[0] is not resource:
            known = (resource, Resource(clean(resource.attributes or {}, RESOURCE_ATTRIBUTES)))
            self._resource = known
        return known[1]


class AllowListExporter(SpanExporter):
    """Wraps any `SpanExporter` and hands it what a `SpanFilter` lets through.

    A host may wrap the exporters of its own provider in it too. `export` never raises: an exception of the
    wrapped exporter becomes `FAILURE`, because the SDK would log its text.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._filter = SpanFilter()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export filtered copies of `spans`; a span that cannot be copied is left out."""
        try:
            return self._exporter.export([self._filter(span) for span in spans])
        except Exception:
            return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Shut the wrapped exporter down."""
        try:
            self._exporter.shutdown()
        except Exception:
            return

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the wrapped exporter; False when it failed."""
        try:
            return self._exporter.force_flush(timeout_millis)
        except Exception:
            return False


def _bare(context: SpanContext | None) -> SpanContext | None:
    if context is None or not context.trace_state:
        return context
    return SpanContext(context.trace_id, context.span_id, context.is_remote, context.trace_flags)


def _filtered_scope(scope: InstrumentationScope | None) -> InstrumentationScope | None:
    if scope is None or scope is SCOPE:
        return scope
    name = scope.name if _SCOPE.fullmatch(scope.name) else UNLISTED
    version = scope.version if scope.version and _VERSION.fullmatch(scope.version) else None
    return InstrumentationScope(name, version)
