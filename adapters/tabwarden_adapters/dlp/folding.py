"""Text as detectors read it: what looks alike is alike, and what does not show is gone.

NFKC character by character (UAX 15), so full-width and mathematical letters and digits are plain ones; every
dash is `-`, every white space but line breaks and tabs is a blank; default-ignorable characters (UAX 44,
Default_Ignorable_Code_Point), controls and other characters of format are taken out. A place in the folded
text maps back to a place in the given one.
"""

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from typing import Final

# Blank characters that Unicode calls letters or symbols, and joiners and selectors that are no `Cf`.
_IGNORED: Final = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0x2060, 0x2070),
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFFC),
        *range(0x1D173, 0x1D17B),
        *range(0xE0000, 0xE1000),
    )
)
_KEPT: Final = frozenset("\t\n")
_BREAKS: Final = frozenset("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")  # a line break, however it is written
_DASHES: Final = frozenset("\u2212\u02d7\u2043\u2796\u30fc\uff70")  # dashes that are no `Pd`
# Where characters with a compatibility mapping, and invisible ones, are. What is beyond has neither.
_PLANES: Final = ((0, 0xD800), (0xE000, 0x20000), (0x2F800, 0x2FA20), (0xE0000, 0xE1000))
_LONE: Final = "\ufffd"  # for a lone surrogate, which no encoding holds
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


class Folded:
    """`text` is what detectors read of the given text."""

    __slots__ = ("_given", "_origins", "_starts", "text")

    def __init__(self, given: str, text: str) -> None:
        self._given = given
        self.text = text
        self._starts: list[int] | None = None
        self._origins: list[tuple[int, int]] = []

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The place in the given text of what is from `start` to before `end` (at least one character)."""
        if self.text is self._given:
            return start, end
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        if self._starts is None:
            self._starts = self._stretches()
        number = bisect_right(self._starts, at) - 1
        first, width = self._origins[number]
        if not width:
            first += at - self._starts[number]
        # One character that became several: each of them stands for all of it.
        return first, first + 1

    def _stretches(self) -> list[int]:
        """Where each stretch of `text` begins; `_origins` says where it was, and 1 if it is a changed one."""
        special, mapping = _tables()
        starts: list[int] = []
        at = length = 0
        for found in special.finditer(self._given):
            begin = found.start()
            new = mapping.get(ord(found.group()))
            if new is None:  # most of what is beyond the basic plane stays as it is
                continue
            if begin > at:
                starts.append(length)
                self._origins.append((at, 0))
                length += begin - at
            if new:
                starts.append(length)
                self._origins.append((begin, 1))
                length += len(new)
            at = begin + 1
        starts.append(length)
        self._origins.append((at, 0))
        return starts


def fold(text: str) -> Folded:
    """`text` as detectors read it. Linear in its length."""
    special, mapping = _tables()
    if (_CONTROLS if text.isascii() else special).search(text) is None:
        return Folded(text, text)
    return Folded(text, special.sub(lambda found: mapping.get(ord(found[0]), found[0]), text))


@cache
def _tables() -> tuple[re.Pattern[str], dict[int, str]]:
    """An expression for the characters that may change, and what each becomes."""
    mapping = dict.fromkeys(range(0xD800, 0xE000), _LONE)
    for first, last in _PLANES:
        for code in range(first, last):
            character = chr(code)
            new = _folded(character)
            if new != character:
                mapping[code] = new
    # One range for all that is beyond the basic plane: `re` looks those up one after the other.
    ranges: list[list[int]] = [[0x10000, 0x10FFFF]]
    for code in (one for one in mapping if one < 0x10000):
        if ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    spelt = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
    return re.compile(f"[{spelt}]"), mapping


def _folded(character: str) -> str:
    if character in _KEPT:
        return character
    if character in _BREAKS:
        return "\n"
    if ord(character) in _IGNORED:
        return ""
    category = unicodedata.category(character)
    if category in ("Cf", "Cc"):
        return ""
    if category == "Zs":
        return " "
    if category == "Pd" or character in _DASHES:
        return "-"
    new = unicodedata.normalize("NFKC", character)
    if new == character:
        return character
    return "".join(_folded(one) if one != character else one for one in new)
