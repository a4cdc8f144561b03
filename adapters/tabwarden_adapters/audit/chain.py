"""One line of the log, and the hash chain that ties it to the line before.

    {"v":1,"seq":7,"prev":"<96 hex digits>",<members of the event>,"hash":"<96 hex digits>"}\\n

`hash` is SHA-384 (FIPS 180-4) over the exact bytes of the line before `,"hash":`; they hold `prev`, the
`hash` of the line before (96 zeros in the first), and `seq`, which counts from 1 without a gap. So
`sha384sum` and a text editor are enough to check a record.

The chain shows changes by anybody who does not recompute it to its end. Against somebody who can rewrite the
whole log there are signed checkpoints (see `checkpoint`), and heads kept elsewhere.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from tabwarden.errors import MalformedError

VERSION = 1
GENESIS = "0" * 96  # `prev` of the first record
MAX_RECORD_BYTES = 4096  # ten texts of 256 bytes, names, numbers and two hashes fit

_LINE = re.compile(
    rb'(\{"v":(0|[1-9][0-9]{0,5}),"seq":([1-9][0-9]{0,15}),"prev":"([0-9a-f]{96})",.*),"hash":"([0-9a-f]{96})"\}\n',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Link:
    """One line, read. `members` are all its JSON members; `hash_is_right` speaks of this line alone."""

    sequence: int
    previous: str
    hash: str
    hash_is_right: bool
    version: int
    members: dict[str, Any] = field(repr=False)
    line: bytes = field(repr=False)


def seal_line(sequence: int, previous: str, members: bytes) -> tuple[bytes, str]:
    """The line of a record with these JSON members (without braces), and its hash in hexadecimal."""
    body = b'{"v":%d,"seq":%d,"prev":"%b",%b' % (VERSION, sequence, previous.encode("ascii"), members)
    digest = hashlib.sha384(body).hexdigest()
    return b'%b,"hash":"%b"}\n' % (body, digest.encode("ascii")), digest


def read_line(line: bytes) -> Link:
    """Take a line apart. Raises `MalformedError` when it is not one of ours at all."""
    match = _LINE.fullmatch(line)
    if match is None or len(line) > MAX_RECORD_BYTES:
        raise MalformedError("not an audit record")
    body, version, sequence, previous, digest = match.groups()
    try:
        members = json.loads(line)
    except (ValueError, RecursionError):
        raise MalformedError("not an audit record") from None
    return Link(
        sequence=int(sequence),
        previous=previous.decode("ascii"),
        hash=digest.decode("ascii"),
        hash_is_right=hashlib.sha384(body).hexdigest() == digest.decode("ascii"),
        version=int(version),
        members=members,
        line=line,
    )
