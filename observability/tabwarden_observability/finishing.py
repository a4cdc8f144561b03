"""Reads finished requests out of raw ones."""

from collections.abc import Mapping, Sequence

from tabwarden_observability.attributes import CAUSE, Cause, SpanNames
from tabwarden_observability.records import FinishedRequest, FinishedSpan, RawRequest
from tabwarden_observability.span_rows import (
    REQUEST_NUMBER,
    SpanRow,
    request_attributes,
    rows,
    settled,
)
from tabwarden_observability.trace_ids import span_id_below


def finished(raw: RawRequest, names: SpanNames) -> FinishedRequest:
    """Read the tree out of a raw request. The same raw request always gives an equal result."""
    below: dict[int, list[SpanRow]] = {}
    for row in rows(raw, names):
        below.setdefault(row.outer, []).append(row)
    attributes = request_attributes(raw, names)
    cause = attributes.get(CAUSE)
    return FinishedRequest(
        trace_id=raw.trace_id,
        span_id=raw.span_id,
        parent_span_id=raw.parent_span_id,
        sampled=raw.sampled,
        start_wall_ns=raw.wall_ns,
        duration_ns=raw.end - raw.start,
        outcome=raw.outcome,
        code=raw.code,
        cause=None if cause is None else Cause(str(cause)),
        attributes=attributes,
        phases=_tree(REQUEST_NUMBER, below, raw),
        skipped_children=raw.skipped,
    )


class RequestReader:
    """Reads requests, and the latest one only once, however many ask for it. For one thread."""

    def __init__(self) -> None:
        self._names = SpanNames()
        self._latest: tuple[RawRequest, FinishedRequest] | None = None

    def __call__(self, raw: RawRequest) -> FinishedRequest:
        """What `finished` makes of it."""
        latest = self._latest
        if latest is None or latest[0] is not raw:
            latest = self._latest = (raw, finished(raw, self._names))
        return latest[1]


def _tree(number: int, below: Mapping[int, Sequence[SpanRow]], raw: RawRequest) -> tuple[FinishedSpan, ...]:
    return tuple(_finished_span(row, below, raw) for row in below.get(number, ()))


def _finished_span(row: SpanRow, below: Mapping[int, Sequence[SpanRow]], raw: RawRequest) -> FinishedSpan:
    start, end, (outcome, code, cause) = settled(row, raw)
    return FinishedSpan(
        name=row.name,
        span_id=span_id_below(raw.span_id, row.number),
        offset_ns=start - raw.start,
        duration_ns=max(end - start, 0),
        outcome=outcome,
        code=code,
        cause=cause,
        is_phase=row.is_phase,
        children=_tree(row.number, below, raw),
    )
