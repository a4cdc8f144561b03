"""What a request sends, as text that an inspector can look through. Pure, so it can be done in a thread.

Chromium gives a body in pieces (CDP, Network.Request.postDataEntries), at any length and with the contents of
blobs. A piece without bytes is one that it does not read itself: a file on the disk inside a form, a stream.
"""

import base64
import binascii
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from tabwarden_adapters.browser.cdp.generated import network

# Four bytes for each character that an inspector takes: what is longer cannot be looked through to its end.
MAX_BODY_BYTES: Final = 1_600_000

_BOUNDARY: Final = re.compile(r'boundary="?([^";,\s]{1,70})', re.IGNORECASE)  # RFC 2046, 5.1.1
# What Chromium itself puts between a form's fields: random, and so like a secret.
_OWN_BOUNDARY: Final = re.compile(r"------WebKitFormBoundary[0-9A-Za-z]{16}")
_FORM: Final = "application/x-www-form-urlencoded"
_FIELD: Final = re.compile(r'\bname="([^"\r\n]*)"')
_ESCAPE: Final = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9A-Fa-f]{4}))')  # RFC 8259, 7
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def has_body(request: network.Request) -> bool:
    """Whether anything is sent after the head."""
    return bool(request.has_post_data or request.post_data_entries)


def body_size(request: network.Request) -> int:
    """About how many bytes of the body are here."""
    return sum(len(entry.bytes or "") for entry in request.post_data_entries or ()) * 3 // 4


def body_text(request: network.Request) -> str | None:
    """The body as it is sent, and after it the same in other spellings: a form's fields one by one, without
    percent signs, without JSON's escapes. None when not all of it can be read: too long, no UTF-8, not here.
    """
    data = _bytes(request)
    if data is None:
        return None
    kind = _content_type(request)
    try:
        text = data.decode("utf-8")  # not a picture, something compressed, another charset
        fields = "" if "boundary=" not in kind.lower() else _fields(text, kind)
        text = _OWN_BOUNDARY.sub("", text)
        # In a form that says to be one, what is no UTF-8 is text in another charset: nobody looks for that.
        plain = _unquoted(text, "strict" if kind.lower().startswith(_FORM) else "replace")
    except UnicodeDecodeError:
        return None
    spellings = (text, fields, plain, _unescaped(text), _unescaped(plain))
    # One text of all: whatever the rules are when it is judged, they are the same for every spelling.
    return "\n\n".join(dict.fromkeys(one for one in spellings if one))


def _bytes(request: network.Request) -> bytes | None:
    entries = request.post_data_entries
    if not entries or body_size(request) > MAX_BODY_BYTES:
        return None
    parts = []
    for entry in entries:
        if entry.bytes is None:
            return None
        try:
            parts.append(base64.b64decode(entry.bytes, validate=True))
        except (binascii.Error, ValueError):
            return None
    return b"".join(parts)


def _content_type(request: network.Request) -> str:
    return next((str(text) for name, text in request.headers.items() if name.lower() == "content-type"), "")


def _fields(text: str, content_type: str) -> str:
    """The fields of a form (RFC 7578) as `name=value`: a value beside the word that says what it is."""
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        return ""
    fields = []
    for part in text.split(f"--{boundary[1]}"):
        head, _, value = part.partition("\r\n\r\n")
        named = _FIELD.search(head)
        if named is not None:
            fields.append(named[1] + "=" + value.removesuffix("\r\n"))
    return "\n".join(fields)


def _unquoted(text: str, errors: str) -> str:
    """`text` as a form's fields (URL Standard, application/x-www-form-urlencoded), one on a line."""
    if "%" not in text and "+" not in text:
        return text
    return unquote_to_bytes(text.replace("&", "\n").replace("+", " ")).decode("utf-8", errors)


def _unescaped(text: str) -> str:
    """`text` without the escapes that JSON has in its strings."""
    if "\\" not in text:
        return text
    units = _ESCAPE.sub(_character, text)
    # Characters beyond the basic plane are two escapes, which are one character only together.
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _character(escape: re.Match[str]) -> str:
    short, unit = escape.groups()
    return chr(int(unit, 16)) if unit else _CONTROLS.get(short, short)
