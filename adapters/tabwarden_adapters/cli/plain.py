"""Text that somebody else wrote, made fit for a terminal."""

import json


def plain(value: object) -> str:
    """`value` as text without control characters, direction marks and the like: JSON escapes instead."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True, default=str)
    if text.isprintable():
        return text
    return plain_json(json.dumps(text, ensure_ascii=True)[1:-1])


def plain_json(text: str) -> str:
    """JSON text, one line, with every character of its strings that is not printable escaped."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
