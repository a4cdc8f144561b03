"""Encoded spans by copying: what was encoded once, with other ids and times in the same places."""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from tabwarden_observability.trace_ids import SPAN_BYTES, ids_below, step_to

# No text in UTF-8 has these bytes, so what was put in is found again, and nothing else is.
_TRACE_ID: Final = b"\xff" * 16
_SPAN_ID: Final = b"\xfe" * 8
_PARENT_ID: Final = b"\xfd" * 8
_START: Final = b"\xfc" * 8
_END: Final = b"\xfb" * 8
_MARKS: Final = (_TRACE_ID, _SPAN_ID, _PARENT_ID, _START, _END)
_LAYOUT: Final = "{}s16s{}s8s{}s8s{}sQ{}sQ{}s"  # bytes before, between and after the five
_ROOT_LAYOUT: Final = "{}s16s{}s8s{}sQ{}sQ{}s"  # the same without the parent's id
_STEP: Final = 2 * len(_MARKS) + 1


class SpanPlace(NamedTuple):
    """One span of a shape: `pieces` as `span_pieces` makes them, and `number` makes its id. `outer` is the
    position, in the shape, of the one around it, or None for the request. `start` and `end` are positions in
    the list of times."""

    pieces: Sequence[bytes]
    number: int
    outer: int | None
    start: int
    end: int


def span_pieces(like: Span) -> list[bytes]:
    """The encoded bytes before, between and after trace id, span id, parent id, start and end of a span that
    has the name, kind, attributes and status of `like`. Raises ValueError when it has no such places."""
    marked = _marked(like)
    marked.parent_span_id = _PARENT_ID
    return _around(ScopeSpans(spans=[marked]).SerializeToString(), _MARKS)


def _marked(like: Span) -> Span:
    marked = Span()
    marked.CopyFrom(like)
    marked.trace_id, marked.span_id = _TRACE_ID, _SPAN_ID
    marked.start_time_unix_nano = int.from_bytes(_START, "little")
    marked.end_time_unix_nano = int.from_bytes(_END, "little")
    return marked


def _around(encoded: bytes, marks: Sequence[bytes]) -> list[bytes]:
    pieces: list[bytes] = []
    for mark in marks:
        piece, found, encoded = encoded.partition(mark)
        if not found:
            raise ValueError("the library encodes spans in an unexpected way")
        pieces.append(piece)
    return [*pieces, encoded]


class RootShape:
    """The own spans of requests that have what `like` has, which has no parent and no attributes."""

    __slots__ = ("_pack", "_pieces")

    def __init__(self, like: Span) -> None:
        self._pieces = _around(_marked(like).SerializeToString(), (_TRACE_ID, _SPAN_ID, _START, _END))
        self._pack = struct.Struct("<" + _ROOT_LAYOUT.format(*map(len, self._pieces))).pack

    def filled(self, trace_id: bytes, span_id: bytes, start: int, end: int) -> bytes:
        """An encoded `Span`; what is appended to it is added to it. See `RequestShape.filled`."""
        a, b, c, d, e = self._pieces
        return self._pack(a, trace_id, b, span_id, c, start, d, end, e)


class RequestShape:
    """The spans below requests that differ in ids and times only.

    Ids and times have a fixed length in OTLP (bytes of 16 and 8; fixed64, which is little-endian), so the
    rest of the bytes stays as it is.
    """

    __slots__ = ("_ends", "_outers", "_pack", "_pieces", "_starts", "_steps")

    def __init__(self, places: Sequence[SpanPlace]) -> None:
        self._pieces: list[bytes | int] = []
        layout = "<"
        for place in places:
            layout += _LAYOUT.format(*map(len, place.pieces))
            for piece in place.pieces:
                self._pieces += (piece, b"")
            self._pieces.pop()
        self._pack = struct.Struct(layout).pack
        self._steps = [step_to(place.number) for place in places]
        self._outers = [0 if place.outer is None else place.outer + 1 for place in places]
        self._starts = [place.start for place in places]
        self._ends = [place.end for place in places]

    def __len__(self) -> int:
        return len(self._steps)

    def filled(self, trace_id: bytes, request: int, times: Sequence[int]) -> bytes:
        """A `ScopeSpans` with those spans, encoded; such bytes one after the other are one with all of them.

        `trace_id`: 16 bytes; `request`: the id of the request's own span as a number; `times`: nanoseconds
        since the Unix epoch.
        """
        ids = ids_below(request, self._steps)
        around = [request.to_bytes(SPAN_BYTES, "big"), *ids]
        filled = self._pieces.copy()
        filled[1::_STEP] = [trace_id] * len(ids)
        filled[3::_STEP] = ids
        filled[5::_STEP] = [around[outer] for outer in self._outers]
        filled[7::_STEP] = [times[start] for start in self._starts]
        filled[9::_STEP] = [times[end] for end in self._ends]
        return self._pack(*filled)
