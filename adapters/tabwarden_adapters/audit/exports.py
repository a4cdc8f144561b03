"""The formats that records can be exported in: each turns one record into one line.

To add one, write a function in a file of its own and name it here; the command offers what is in the table.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.audit.cef import as_cef
from tabwarden_adapters.audit.ecs import NAMESPACE, as_ecs, checked_namespace
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


EXPORTS: Mapping[str, Export] = MappingProxyType({"cef": as_cef, "ecs": as_ecs, "jsonl": as_jsonl})


def export_in(format_: str, namespace: str = NAMESPACE) -> Export:
    """The export of this name; `namespace` is what ECS has our own fields below.

    Raises `ConfigurationError` for a name or a namespace that there is not.
    """
    if format_ not in EXPORTS:
        raise ConfigurationError(f"--format: {format_!a} is not one of: {', '.join(sorted(EXPORTS))}")
    checked_namespace(namespace)
    return (lambda record: as_ecs(record, namespace)) if format_ == "ecs" else EXPORTS[format_]
