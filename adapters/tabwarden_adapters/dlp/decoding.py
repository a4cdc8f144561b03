"""Texts that are spelt in another way inside a text: percent signs (RFC 3986, 2.1) and base64 (RFC 4648).

One layer of each, base64 also inside what had percent signs. What is found in the plain spelling stands for
the whole run in the text.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_to_bytes

import re2

from tabwarden_adapters.dlp.re2_set import options

_PERCENT: Final = re.compile(r"[^\s\"'<>%]*(?:%[0-9A-Fa-f]{2}[^\s\"'<>%]*)+")
_BASE64: Final = re2.compile(rb"[A-Za-z0-9+/_-]{20,}", options(latin1=True))
_PRINTABLE: Final = frozenset(range(32, 127)) | {9, 10, 13}
_TO_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_LOOKED_AT: Final = 48  # bytes by which binary contents are told from text


@dataclass(frozen=True, slots=True)
class Run:
    """`plain` is what the characters from `start` to before `end` spell."""

    start: int
    end: int
    plain: str = field(repr=False)


def decoded_runs(text: str) -> list[Run]:
    """What is spelt otherwise in `text`, from left to right. Linear in its length."""
    runs = []
    if "%" in text:
        for found in _PERCENT.finditer(text):
            plain = unquote_to_bytes(found.group()).decode("utf-8", "replace")
            runs.append(Run(found.start(), found.end(), plain))
    inner = [Run(run.start, run.end, deeper.plain) for run in runs for deeper in _base64_runs(run.plain)]
    return [*runs, *inner, *_base64_runs(text)]


def _base64_runs(text: str) -> list[Run]:
    runs = []
    for found in _BASE64.finditer(text.encode("ascii", "replace")):
        plain = _plain(found.group())
        if plain is not None:
            runs.append(Run(found.start(), found.end(), plain))
    return runs


def _plain(run: bytes) -> str | None:
    """What a run of base64 spells, when that is text."""
    run = run.translate(_TO_STANDARD)
    head = _bytes(run[: _LOOKED_AT // 3 * 4])
    if not _PRINTABLE.issuperset(head):
        return None
    plain = head if len(run) <= _LOOKED_AT // 3 * 4 else _bytes(run)
    return plain.decode("ascii", "replace")


def _bytes(run: bytes) -> bytes:
    run = run[: len(run) - (len(run) % 4 == 1)]
    try:
        return base64.b64decode(run + b"=" * (-len(run) % 4))
    except binascii.Error:
        return b"\0"
