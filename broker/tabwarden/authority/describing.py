"""A call in words for a person: what the broker says of it, and what the agent wrote, told apart.

The agent chooses texts that a person reads before agreeing. So each character is shown as itself or as an
escape, nothing steers a terminal or turns the direction of writing, and what is cut is said to be cut.
"""

import unicodedata

import msgspec
from msgspec import UNSET

from tabwarden.approval import Fact

_LABELS = {
    "url": "address",
    "selector": "element",
    "text": "text to type",
    "value": "option to choose",
    "checked": "checked",
    "x": "pixels to the right",
    "y": "pixels down",
    "offset": "from character",
    "cursor": "from control",
    "prompt": "words for the model",
    "action": "change",
    "expected_revision": "revision",
    "policy_version": "policy version",
    "tab_mode": "tab mode",
    "group": "group",
}
_SESSION = "session_id"  # which tab is said by the request itself
# Letters and symbols to Unicode, and nothing at all to see: Hangul fillers, an empty Braille cell.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_MARKS = 2  # combining marks on one letter that real writing needs; more of them cover the lines around


def describe(arguments: msgspec.Struct, limit: int) -> tuple[Fact, ...]:
    """Every argument that was given, in the order of the action table; texts cut to `limit` characters."""
    facts: list[Fact] = []
    _collect(arguments, "", limit, facts)
    return tuple(facts)


def visible(text: str, limit: int) -> str:
    """`text` in double quotes, on one line, with escapes as in Python for quotes, backslashes and every
    character that does not show as itself. Of a longer one the middle is left out, which is said outside of
    the quotes."""
    if len(text) <= limit:
        return f'"{_escaped(text)}"'
    end = limit // 4
    head, tail = text[: limit - end], text[len(text) - end :]
    left_out = len(text) - limit
    return f'"{_escaped(head)}" … {left_out} characters left out … "{_escaped(tail)}"'


def _collect(value: msgspec.Struct, prefix: str, limit: int, facts: list[Fact]) -> None:
    for name in value.__struct_fields__:
        item = getattr(value, name)
        if item is UNSET or name == _SESSION:
            continue
        label = f"{prefix}{_LABELS.get(name, name.replace('_', ' '))}"
        if isinstance(item, msgspec.Struct):
            _collect(item, f"{label}: ", limit, facts)
        elif isinstance(item, str):
            facts.append(Fact(label, visible(item, limit), by_agent=True))
        elif isinstance(item, bool):
            facts.append(Fact(label, "yes" if item else "no", by_agent=False))
        elif isinstance(item, int):
            facts.append(Fact(label, str(item), by_agent=False))
        else:
            # No argument is of another kind; one that will be is not left out.
            facts.append(Fact(label, visible(msgspec.json.encode(item).decode(), limit), by_agent=True))


def _escaped(text: str) -> str:
    shown: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character).startswith("M") else 0
        if character in '"\\':
            shown.append(f"\\{character}")
        elif character.isprintable() and character not in _BLANK and not _hidden_mark(character, marks):
            shown.append(character)
        else:
            shown.append(_escape(ord(character)))
    return "".join(shown)


def _hidden_mark(character: str, marks: int) -> bool:
    """A mark that is one too many, or that shows nothing: variation selectors, the grapheme joiner, vowels
    that Khmer does not write."""
    if not marks:
        return False
    code = ord(character)
    blank = 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F
    return marks > _MARKS or blank or code in (0x034F, 0x17B4, 0x17B5)


def _escape(code: int) -> str:
    if code == 0x0A:
        return "\\n"
    if code == 0x09:
        return "\\t"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
