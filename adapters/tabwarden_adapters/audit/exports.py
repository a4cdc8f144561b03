"""The formats that records can be exported in: each turns one record into one line.

To add one, write a function in a file of its own and name it here; the command offers what is in the table.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tabwarden_adapters.audit.reader import AuditRecord

Export = Callable[[AuditRecord], bytes]  # one line, without the newline


def as_jsonl(record: AuditRecord) -> bytes:
    """The record's own bytes, so that hash and proof can still be checked; escaped anew if they are not
    printable ASCII, which no broker writes."""
    line = record.line.removesuffix(b"\n")
    if line.isascii() and line.decode("ascii").isprintable():
        return line
    text = json.dumps(record.members, ensure_ascii=True, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f").encode("ascii")


EXPORTS: Mapping[str, Export] = MappingProxyType({"jsonl": as_jsonl})
