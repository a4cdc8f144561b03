"""Recent requests as plain JSON values and back, for a person who looks at them from another process.

Both ends hold to the allow-list: what is read is checked again, so that nothing else reaches a terminal or a
page, whoever answered.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from tabwarden.errors import MalformedError
from tabwarden.limits import MAX_SAFE_INTEGER

from tabwarden_observability.attributes import SPAN_ATTRIBUTES, SpanNames, check_code, clean
from tabwarden_observability.finishing import finished
from tabwarden_observability.records import FinishedRequest, FinishedSpan, RawRequest

MAX_LISTED: Final = 256  # what the local store keeps
MAX_LISTED_SPANS: Final = 8192  # at most some 2 MiB of JSON, whatever adapters did below dispatch

_TRACE_ID = re.compile(r"[0-9a-f]{32}", re.ASCII).fullmatch
_SPAN_ID = re.compile(r"[0-9a-f]{16}", re.ASCII).fullmatch
_MAX_DEPTH: Final = 200  # children are 128 at most; phases enclose one another two or three deep
_MAX_WALL_NS: Final = 2**62  # in the year 2116


@dataclass(frozen=True, slots=True)
class Listing:
    """`requests`, oldest first. `missed`: there were more that were asked for, older than these."""

    requests: tuple[FinishedRequest, ...]
    missed: bool


def listing(raws: Sequence[RawRequest], names: SpanNames, limit: int, after: str | None = None) -> Listing:
    """The newest of `raws` (oldest first): `limit` at most, those that came after the one whose own span has
    the id `after`, and no more spans than `MAX_LISTED_SPANS`. The newest one is always among them."""
    start = len(raws)
    while start > 0 and raws[start - 1].span_id != after:
        start -= 1
    first, spans = len(raws), 0
    while first > start and len(raws) - first < limit:
        spans += raws[first - 1].span_count
        if spans > MAX_LISTED_SPANS and first < len(raws):
            break
        first -= 1
    # Without the one they should follow, nobody can tell what came between.
    lost = after is not None and start == 0
    return Listing(tuple(finished(raw, names) for raw in raws[first:]), lost or first > start)


def as_plain(listed: Listing) -> dict[str, Any]:
    """Plain JSON values."""
    plain: dict[str, Any] = msgspec.to_builtins(listed)
    return plain


def from_plain(value: object) -> Listing:
    """Raises `MalformedError` for anything that `as_plain` does not make."""
    try:
        read = msgspec.convert(value, Listing)
    except (msgspec.ValidationError, RecursionError):
        raise MalformedError("not a list of traces of this version") from None
    names = SpanNames()
    return replace(read, requests=tuple(_checked(request, names) for request in read.requests))


def _checked(request: FinishedRequest, names: SpanNames) -> FinishedRequest:
    parent = request.parent_span_id
    _require(_TRACE_ID(request.trace_id) and (parent is None or _SPAN_ID(parent)))
    _require(0 <= request.start_wall_ns <= _MAX_WALL_NS and request.skipped_children >= 0)
    _require_span(request)
    return replace(
        request,
        attributes=clean(request.attributes, SPAN_ATTRIBUTES),
        phases=tuple(_checked_span(span, names, _MAX_DEPTH) for span in request.phases),
    )


def _checked_span(span: FinishedSpan, names: SpanNames, depth: int) -> FinishedSpan:
    _require(depth > 0)
    _require_span(span)
    _require(0 <= span.offset_ns <= MAX_SAFE_INTEGER)
    children = tuple(_checked_span(child, names, depth - 1) for child in span.children)
    return replace(span, name=names.clean(span.name), children=children)


def _require_span(span: FinishedSpan | FinishedRequest) -> None:
    _require(_SPAN_ID(span.span_id) and 0 <= span.duration_ns <= MAX_SAFE_INTEGER)
    _require(span.code is None or check_code(span.code) is not None)


def _require(condition: object) -> None:
    if not condition:
        raise MalformedError("not a list of traces of this version")
