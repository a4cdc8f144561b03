"""Trace and span ids, and the `traceparent` that carries them (W3C Trace Context, version 00)."""

import os
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_PER_READ: Final = 64  # one read of the system's random numbers costs as much as twenty ids
_TRACE_DIGITS: Final = 32
_SPAN_DIGITS: Final = 16
SPAN_BYTES: Final = _SPAN_DIGITS // 2
_PAIR_BYTES: Final = (_TRACE_DIGITS + _SPAN_DIGITS) // 2
_MASK: Final = 2**64 - 1
_STRIDE: Final = 0x9E3779B97F4A7C15  # odd, so that multiples do not meet before 2**64 of them

_TRACEPARENT: Final = re.compile(
    r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})", re.ASCII
).fullmatch


class IdPool:
    """Random (trace id, span id) pairs as lower-case hexadecimal, made ahead in blocks. Safe in threads."""

    __slots__ = ("_ready",)

    def __init__(self) -> None:
        self._ready: list[tuple[str, str]] = []

    def take(self) -> tuple[str, str]:
        """A fresh pair: 32 and 16 hexadecimal digits, neither all zero."""
        while True:
            try:
                return self._ready.pop()  # one atomic step: no two threads get the same pair
            except IndexError:
                self._refill()

    def forget(self) -> None:
        """Throw away what was made ahead: a forked child must not hand out its parent's ids."""
        self._ready.clear()

    def _refill(self) -> None:
        digits = os.urandom(_PAIR_BYTES * _PER_READ).hex()
        pairs = []
        for at in range(0, len(digits), 2 * _PAIR_BYTES):
            trace_id = digits[at : at + _TRACE_DIGITS]
            span_id = digits[at + _TRACE_DIGITS : at + 2 * _PAIR_BYTES]
            if trace_id.strip("0") and span_id.strip("0"):
                pairs.append((trace_id, span_id))
        self._ready.extend(pairs)


IDS: Final = IdPool()
os.register_at_fork(after_in_child=IDS.forget)


def span_id_below(root: str, number: int) -> str:
    """The id of span `number` (1, 2, ...) of the request whose own span is `root` (16 hexadecimal digits).

    Computed, not drawn: the export, the local store and an adapter's spans below come to the same id
    without keeping it, and no two numbers of one request meet.
    """
    return f"{(int(root, 16) + step_to(number)) & _MASK or 1:016x}"


def step_to(number: int) -> int:
    """How far the id of span `number` is from that of its request."""
    return number * _STRIDE


def ids_below(root: int, steps: Iterable[int]) -> list[bytes]:
    """The same ids as the 8 bytes that OTLP has. `root`: the id of the request's own span as a number."""
    return [((root + step) & _MASK or 1).to_bytes(SPAN_BYTES, "big") for step in steps]


class TraceParent(NamedTuple):
    """A caller's span. `sampled` is bit 0 of its flags."""

    trace_id: str
    span_id: str
    sampled: bool


def parse_traceparent(header: object) -> TraceParent | None:
    """Read `00-<32 hex>-<16 hex>-<2 hex>`; None when it is anything else (W3C Trace Context, section 3.2).

    Strict: no white space, no upper case, no other version, no all-zero id.
    """
    match = _TRACEPARENT(header) if isinstance(header, str) else None
    if match is None:
        return None
    trace_id, span_id, flags = match.groups()
    return TraceParent(trace_id, span_id, bool(int(flags, 16) & 1))
