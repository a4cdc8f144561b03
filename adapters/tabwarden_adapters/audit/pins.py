"""What to note away from the log: whose keys signed it, and how far it went.

    {"format":"tabwarden-audit-pins-v1", "keys":[{"key_id":"<96 hex digits>","since":7}, …],
     "head":{"sequence":123,"hash":"<96 hex digits>"}}

`since` is the number of the record that announced the keys. `head` may be null. Whoever can change this file
can make a log of their own pass: keep it where the broker's user cannot write.
"""

import re
from dataclasses import dataclass

import msgspec
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.protocol.codec import parse_json

from tabwarden_adapters.audit.segments import Head

FORMAT = "tabwarden-audit-pins-v1"
MAX_PINS_BYTES = 4 * 1024 * 1024  # some 30,000 runs of a broker
_HASH = re.compile(r"[0-9a-f]{96}")
_MAX_SEQUENCE = 10**16 - 1


@dataclass(frozen=True, slots=True)
class Pin:
    """The keys of one run: their id, and the record that announced them."""

    key_id: str
    since: int


@dataclass(frozen=True, slots=True)
class Pins:
    """All that was noted. Written by `encode_pins`, read by `parse_pins`."""

    keys: tuple[Pin, ...]
    head: Head | None = None


def encode_pins(pins: Pins) -> dict[str, object]:
    """The JSON members."""
    head = pins.head
    return {
        "format": FORMAT,
        "keys": [{"key_id": pin.key_id, "since": pin.since} for pin in pins.keys],
        "head": None if head is None else {"sequence": head.sequence, "hash": head.hash},
    }


def parse_pins(data: bytes) -> Pins:
    """Raises `ConfigurationError` naming the field."""
    if len(data) > MAX_PINS_BYTES:
        raise ConfigurationError("the file is too large: is it one that `tabwarden audit keys` wrote?")
    try:
        file = msgspec.convert(parse_json(data), _File, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigurationError(ascii(str(error))[1:-1]) from None  # it may quote a name of the file
    except MalformedError as error:
        raise ConfigurationError(f"not JSON as `tabwarden audit keys` writes it ({error})") from None
    if file.format != FORMAT:
        raise ConfigurationError(f"format: it is not {FORMAT}")
    for at, key in enumerate(file.keys):
        if _HASH.fullmatch(key.key_id) is None:
            raise ConfigurationError(f"keys[{at}].key_id: 96 hexadecimal digits are expected")
        if not 0 < key.since <= _MAX_SEQUENCE:
            raise ConfigurationError(f"keys[{at}].since: the number of a record is expected")
    head = file.head
    known = None if head is None else checked_head(head.sequence, head.hash, "head")
    return Pins(tuple(Pin(key.key_id, key.since) for key in file.keys), known)


def parse_head(text: str) -> Head:
    """From `N:HASH`, as `tabwarden audit head` prints it. Raises `ConfigurationError`."""
    number, colon, digest = text.strip().partition(":")
    if not colon or not number.isascii() or not number.isdigit() or len(number) > 16:
        raise ConfigurationError("--known-head: N:HASH is expected, as `tabwarden audit head` prints it")
    return checked_head(int(number), digest, "--known-head")


def checked_head(sequence: int, digest: str, where: str) -> Head:
    """Raises `ConfigurationError` naming `where`."""
    if not 0 < sequence <= _MAX_SEQUENCE or _HASH.fullmatch(digest) is None:
        raise ConfigurationError(f"{where}: a record's number and 96 hexadecimal digits are expected")
    return Head(sequence, digest)


class _Key(msgspec.Struct, forbid_unknown_fields=True):
    key_id: str
    since: int


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    sequence: int
    hash: str


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    format: str
    keys: list[_Key]
    head: _Head | None = None
