"""OTLP straight from raw requests.

Making the SDK's spans, filtering them and encoding each costs 40 us of processor a span; here it is 2. The
SDK still encodes, and the filter still filters, one span of each kind (those that have the same name and
ending). All others are copies of it, with ids and times of their own.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar, cast

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import SpanContext, SpanKind
from tabwarden.model import TraceOutcome

from tabwarden_observability.allow_list_exporter import SpanFilter
from tabwarden_observability.attributes import SpanNames, Value
from tabwarden_observability.records import RawRequest
from tabwarden_observability.request_shape import RequestShape, RootShape, SpanPlace, span_pieces
from tabwarden_observability.span_rows import Told, request_attributes, rows, settled
from tabwarden_observability.spans import (
    REQUEST_SPAN,
    attributes_below,
    is_recorded,
    make_span,
    remote_parent,
)
from tabwarden_observability.trace_ids import SPAN_BYTES

MAX_KEPT: Final = 1024  # of each: a few dozen in a program; more only come from names or figures made of data
_MAX_LOG: Final = 64  # entries of a log whose shape is kept

_RESOURCE_SPANS: Final = ExportTraceServiceRequest.RESOURCE_SPANS_FIELD_NUMBER
_SCOPE_SPANS: Final = ResourceSpans.SCOPE_SPANS_FIELD_NUMBER
_SPANS: Final = ScopeSpans.SPANS_FIELD_NUMBER

K = TypeVar("K")
V = TypeVar("V")

_SOME: Final = SpanContext(1, 1, is_remote=False)  # for a span that is copied: its ids are put in later


class SpanEncoder:
    """Gathers one batch. For one thread. `resource` and `sampler` are those of the provider."""

    def __init__(self, resource: Resource, sampler: Sampler) -> None:
        self._resource = resource
        self._sampler = sampler
        self._names = SpanNames()
        self._filter = SpanFilter()
        self._kinds: dict[tuple[str, Told], list[bytes]] = {}
        self._shapes: dict[tuple[object, ...], RequestShape] = {}
        self._roots: dict[tuple[TraceOutcome, bool], RootShape] = {}
        self._attributes: dict[tuple[str, Value], bytes] = {}
        around = self._encoded_root(TraceOutcome.OK, None).resource_spans[0]
        around.scope_spans[0].ClearField("spans")
        self._scope: bytes = around.scope_spans[0].SerializeToString()
        around.ClearField("scope_spans")
        self._of_resource: bytes = around.SerializeToString()
        self._begin()

    def add(self, raw: RawRequest) -> int:
        """Add the spans of one request; how many they were, 0 when it is not sampled. When it raises,
        nothing was added."""
        attributes = request_attributes(raw, self._names)
        parent = remote_parent(raw)
        if not is_recorded(int(raw.trace_id, 16), parent, attributes, self._sampler):
            return 0
        shape, times = self._shape(raw)
        to_wall = raw.wall_ns - raw.start
        below = shape.filled(
            bytes.fromhex(raw.trace_id), int(raw.span_id, 16), [time + to_wall for time in times]
        )
        self._encoded += (below, _field(_SPANS, self._root(raw, parent, attributes)))
        return 1 + len(shape)

    def add_span(self, span: ReadableSpan) -> int:
        """Add one that was made with the provider. As `add`."""
        self._others.append(encode_spans([self._filter(span)]).SerializeToString())
        return 1

    def take(self) -> bytes:
        """All that was added since the last time: an OTLP `ExportTraceServiceRequest`."""
        # Encoded messages one after the other are one message (protobuf encoding, "Last One Wins"): lists
        # get longer.
        own = self._scope + b"".join(self._encoded)
        body = _field(_RESOURCE_SPANS, self._of_resource + _field(_SCOPE_SPANS, own))
        whole = b"".join([body, *self._others])
        self._begin()
        return whole

    def _begin(self) -> None:
        self._encoded: list[bytes] = []
        self._others: list[bytes] = []

    def _shape(self, raw: RawRequest) -> tuple[RequestShape, list[int]]:
        """The shape of `raw`, and the times that belong into it, by `perf_counter_ns`."""
        log = raw.log
        if not raw.children and len(log) <= _MAX_LOG and not len(log) % 2:
            times = [raw.start, *cast("Sequence[int]", log[1::2]), raw.end]
            with suppress(TypeError):  # of a phase or a time that is none
                if times == sorted(times):
                    return self._known_shape(raw), times
        places = self._places(raw)
        times = [time for place in places for time in (place.start, place.end)]
        return RequestShape(
            [place._replace(start=2 * at, end=2 * at + 1) for at, place in enumerate(places)]
        ), times

    def _known_shape(self, raw: RawRequest) -> RequestShape:
        entries = raw.log[::2]
        key = (raw.outcome, *entries)
        shape = self._shapes.get(key)
        if shape is None:
            # Were its times 0, 1, 2, ..., then what is read out of it would be positions in their list.
            log = [each for tick, entry in enumerate(entries, 1) for each in (entry, tick)]
            shape = RequestShape(self._places(raw._replace(start=0, log=log, end=len(entries) + 1)))
            _keep(self._shapes, key, shape)
        return shape

    def _places(self, raw: RawRequest) -> list[SpanPlace]:
        """With the times themselves instead of positions."""
        found = rows(raw, self._names)
        positions = {row.number: at for at, row in enumerate(found)}
        places = []
        for row in found:
            start, end, told = settled(row, raw)
            places.append(
                SpanPlace(self._kind(row.name, told), row.number, positions.get(row.outer), start, end)
            )
        return places

    def _kind(self, name: str, told: Told) -> list[bytes]:
        pieces = self._kinds.get((name, told))
        if pieces is None:
            attributes = attributes_below(*told)
            made = make_span(
                name, _SOME, _SOME, (0, 0), told[0], attributes, self._resource, SpanKind.INTERNAL
            )
            pieces = span_pieces(_only(encode_spans([self._filter(made)])))
            _keep(self._kinds, (name, told), pieces)
        return pieces

    def _root(self, raw: RawRequest, parent: SpanContext | None, attributes: Mapping[str, Value]) -> bytes:
        key = (raw.outcome, parent is not None)
        shape = self._roots.get(key)
        if shape is None:
            shape = self._roots[key] = RootShape(_only(self._encoded_root(raw.outcome, parent)))
        parts = [self._attribute(pair) for pair in attributes.items()]
        if parent is not None:
            parts.append(Span(parent_span_id=parent.span_id.to_bytes(SPAN_BYTES, "big")).SerializeToString())
        own = shape.filled(
            bytes.fromhex(raw.trace_id),
            bytes.fromhex(raw.span_id),
            raw.wall_ns,
            raw.wall_ns + raw.end - raw.start,
        )
        return own + b"".join(parts)

    def _encoded_root(self, outcome: TraceOutcome, parent: SpanContext | None) -> ExportTraceServiceRequest:
        made = make_span(REQUEST_SPAN, _SOME, parent, (0, 0), outcome, {}, self._resource, SpanKind.SERVER)
        encoded = encode_spans([self._filter(made)])
        for name in ("trace_id", "span_id", "parent_span_id"):
            _only(encoded).ClearField(name)
        return encoded

    def _attribute(self, pair: tuple[str, Value]) -> bytes:
        """A `Span` with one attribute, encoded; such bytes one after the other are one with all of them."""
        encoded = self._attributes.get(pair)
        if encoded is None:
            name, value = pair
            if isinstance(value, bool):
                held = AnyValue(bool_value=value)
            elif isinstance(value, int):
                held = AnyValue(int_value=value)
            else:
                held = AnyValue(string_value=value)
            encoded = Span(attributes=[KeyValue(key=name, value=held)]).SerializeToString()
            _keep(self._attributes, pair, encoded)
        return encoded


def _only(request: ExportTraceServiceRequest) -> Span:
    span: Span
    (span,) = request.resource_spans[0].scope_spans[0].spans
    return span


def _field(number: int, content: bytes) -> bytes:
    """A field that holds a message (protobuf encoding, "Length-Delimited Records")."""
    head, length = bytearray([number << 3 | 2]), len(content)
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + content


def _keep(known: dict[K, V], key: K, value: V) -> None:
    if len(known) >= MAX_KEPT:
        known.clear()
    known[key] = value
