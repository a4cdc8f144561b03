"""CDP messages as JSON values. Chromium passes on what pages hold, lone surrogates included."""

import json
import re
from typing import Any

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")


def decode(message: bytes) -> Any:
    """Parse one message; lone surrogates become U+FFFD, so that every text can be encoded again.

    Raises ValueError or RecursionError when it is no JSON.
    """
    value = json.loads(message)
    return _well_formed(value) if _SURROGATE_ESCAPE.search(message) else value


def encode(value: dict[str, Any]) -> bytes:
    """Write one message. In ASCII, so that a lone surrogate in an argument cannot fail here."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_well_formed(item) for item in value]
    if isinstance(value, dict):
        return {_well_formed(key): _well_formed(item) for key, item in value.items()}
    return value
