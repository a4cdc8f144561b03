"""Strict encodings: JSON, unpadded base64url, and PAE, the injective encoding under every MAC and signature.

Everything here raises `MalformedError` and nothing else for bad input.
"""

import base64
import binascii
import json
import re
from functools import lru_cache
from typing import Any, Never

from tabwarden.errors import MalformedError
from tabwarden.limits import MAX_JSON_DEPTH, MAX_SAFE_INTEGER

SUITE = "tabwarden/1 Ed25519+ML-DSA-87 X25519+ML-KEM-1024 HKDF-SHA384 AES-256-GCM HMAC-SHA384"
"""The one suite. There is no negotiation: every label starts with this string, so another suite's bytes
never verify here."""

CONTENT_TYPE = b"application/vnd.tabwarden.v1"

_U16, _U32 = 2, 4
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# To the alphabet that `binascii` knows; what is not ours becomes a character that it refuses.
_TO_BASE64 = bytes(
    (b"+" if byte == 0x2D else b"/" if byte == 0x5F else bytes([byte]) if byte in _ALPHABET else b"!")[0]
    for byte in range(256)
)
# Unused low bits of the last character must be zero, or one value would have several spellings.
_LAST_CHARACTERS = {bits: frozenset(_ALPHABET[:: 1 << bits]) for bits in (0, 2, 4)}
# Possessive, so that a long unclosed string is walked once and not once from each of its quotes.
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def label(name: str) -> bytes:
    """The domain-separation label of one use of a key or hash, for example `label("agent-request")`."""
    return f"{SUITE}/{name}".encode("ascii")


def pae(label_bytes: bytes, *fields: bytes) -> bytes:
    """Encode a label and byte fields so that no two different inputs give the same bytes.

    u16 label length, label, u16 field count, then u32 length and bytes of each field; big-endian.
    """
    parts = [_pae_head(label_bytes, len(fields))]
    for value in fields:
        parts.append(len(value).to_bytes(_U32))
        parts.append(value)
    return b"".join(parts)


@lru_cache(maxsize=64)  # of some twenty labels, and tests' own
def _pae_head(label_bytes: bytes, count: int) -> bytes:
    return len(label_bytes).to_bytes(_U16) + label_bytes + count.to_bytes(_U16)


def parse_pae(label_bytes: bytes, count: int, data: bytes) -> list[bytes]:
    """The `count` fields of a `pae` made with exactly this label, using up all of `data`."""
    head = _pae_head(label_bytes, count)
    if not data.startswith(head):
        raise MalformedError("label or field count")
    fields, at = [], len(head)
    for _ in range(count):
        start = at + _U32
        end = start + int.from_bytes(data[at:start])
        if end > len(data):
            raise MalformedError("field length")
        fields.append(data[start:end])
        at = end
    if at != len(data):
        raise MalformedError("trailing bytes")
    return fields


def u64(value: int) -> bytes:
    """Big-endian, 8 bytes. Raises MalformedError outside 0..2^64-1."""
    try:
        return value.to_bytes(8)
    except OverflowError:
        raise MalformedError("integer range") from None


def base64url(data: bytes) -> str:
    """RFC 4648 section 5, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def parse_base64url(text: bytes, length: int) -> bytes:
    """Exactly `length` bytes from the one canonical unpadded spelling."""
    spare_bits = -length * 8 % 6
    if len(text) != (length * 8 + spare_bits) // 6:
        raise MalformedError("base64url")
    if text and text[-1] not in _LAST_CHARACTERS[spare_bits]:
        raise MalformedError("base64url")
    try:
        return binascii.a2b_base64(text.translate(_TO_BASE64) + b"=" * (-len(text) % 4), strict_mode=True)
    except binascii.Error:
        raise MalformedError("base64url") from None


def parse_decimal(text: bytes, maximum: int) -> int:
    """A canonical ASCII decimal: no sign, no leading zero, at most `maximum`."""
    if not text.isdigit() or len(text) > 20 or (len(text) > 1 and text.startswith(b"0")):
        raise MalformedError("decimal")
    value = int(text)
    if value > maximum:
        raise MalformedError("decimal")
    return value


def _refuse_constant(_: str) -> Never:
    raise MalformedError("not a number")


def _integer(text: str) -> int:
    # The length is looked at first: int() of a very long string is quadratic.
    if len(text) > 17 or not -MAX_SAFE_INTEGER <= (value := int(text)) <= MAX_SAFE_INTEGER:
        raise MalformedError("number range")
    return value


def _real(text: str) -> float:
    value = float(text)
    if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        raise MalformedError("number range")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise MalformedError("duplicate key")
    return result


def _check_depth(data: bytes) -> None:
    """Refuse deep nesting before the recursive parser sees it: it would raise RecursionError."""
    # A body with few brackets cannot be deep, which spares nearly every request the walk.
    if data.count(b"[") + data.count(b"{") <= MAX_JSON_DEPTH:
        return
    depth = 0
    for token in _STRING_OR_BRACKET.findall(data):
        if token in b"[{":
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise MalformedError("depth")
        elif token in b"]}":
            depth -= 1


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=_integer, parse_float=_real
)


def parse_json(data: bytes) -> Any:
    """Strict UTF-8 JSON (RFC 8259) of one value with nothing but JSON white space around it.

    Refused besides: duplicate keys, NaN and Infinity, a BOM, lone surrogates, depth over 16, numbers
    outside +/-2^53.
    """
    _check_depth(data)
    try:
        text = data.decode("utf-8", "strict")
        start, end = len(text) - len(text.lstrip(" \t\n\r")), len(text.rstrip(" \t\n\r"))
        value, used = _DECODER.raw_decode(text, start)
        # A lone surrogate can only come from a \u escape; it has no UTF-8 and would break a later encode.
        if "\\u" in text:
            _refuse_lone_surrogates(value)
    except (ValueError, RecursionError) as error:
        if isinstance(error, MalformedError):
            raise
        raise MalformedError("json") from None
    if used != end:
        raise MalformedError("trailing bytes")
    return value


def _refuse_lone_surrogates(value: Any) -> None:
    if isinstance(value, str):
        value.encode("utf-8", "strict")
    elif isinstance(value, dict):
        for key, item in value.items():
            key.encode("utf-8", "strict")
            _refuse_lone_surrogates(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_lone_surrogates(item)
