"""Records as JSON lines in the terms of the Elastic Common Schema 8.17 (https://www.elastic.co/docs/reference/ecs).

Standard fields: `@timestamp`, `message`, `event.*`, `trace.id`, `span.id`, `rule.name`, `error.code`,
`service.name`. What ECS has no field for stands below one name of our own, `tabwarden` unless told otherwise:

    <namespace>.agent      action, scope, outcome, session_id, principal_id, generation, code, rule, committed
    <namespace>.audit      type, previous_hash, request_id, boot_ms
    <namespace>.lifecycle  event
    <namespace>.signing    key_id
    <namespace>.refusals   count, reasons.<reason>

A field whose value is not known is absent. `principal_id` is a capability, not a person: no `user.*`.
"""

import json
import re
from datetime import UTC, datetime
from typing import Any, Final

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.audit.reader import AuditRecord
from tabwarden_adapters.audit.said import Said, printable, said_by

ECS_VERSION: Final = "8.17.0"
NAMESPACE: Final = "tabwarden"
_NAMESPACE = re.compile(r"[a-z][a-z0-9_]{0,62}")
# The field sets of ECS: a name of our own must be none of them, or its fields would be taken for theirs.
FIELD_SETS: Final = frozenset(
    re.findall(
        r"\w+",
        "agent as base client cloud code_signature container data_stream destination device dll "
        "dns ecs elf email entity error event faas file gen_ai geo group hash host http interface "
        "labels log macho message network observer orchestrator organization os package pe "
        "process registry related risk rule server service source span tags threat tls trace "
        "transaction url user user_agent vlan volume vulnerability x509",
    )
)

_API = ["api"]
# Of an agent event: event.type and event.outcome.
_OUTCOMES: Final[dict[str | None, tuple[list[str], str]]] = {
    "authorized": (["allowed", "start"], "unknown"),
    "completed": (["access", "end"], "success"),
    "denied": (["denied"], "failure"),
    "failed": (["end"], "failure"),
}
# Of the broker's life: event.category, event.type.
_LIVES: Final[dict[str | None, tuple[list[str], list[str]]]] = {
    "started": (["process"], ["start"]),
    "closed": (["process"], ["end"]),
    "revoked": (["iam"], ["deletion"]),
    "principal-issued": (["iam"], ["creation", "user"]),
    "principal-revoked": (["iam"], ["deletion", "user"]),
    "principal-expired": (["iam"], ["deletion", "user"]),
}


def as_ecs(record: AuditRecord, namespace: str = NAMESPACE) -> bytes:
    """One line of printable ASCII, without the newline. `namespace` as `checked_namespace` gives it."""
    text = json.dumps(ecs_document(said_by(record), namespace), ensure_ascii=True, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f").encode("ascii")


def checked_namespace(namespace: str) -> str:
    """Raises `ConfigurationError` unless it is one lower-case name that is not a field set of ECS."""
    if _NAMESPACE.fullmatch(namespace) is None:
        raise ConfigurationError(
            "the ECS namespace must be a lower-case letter and up to 62 letters, digits and underscores"
        )
    if namespace in FIELD_SETS:
        raise ConfigurationError(f"the ECS namespace cannot be {namespace}: ECS has fields of its own there")
    return namespace


def ecs_document(said: Said, namespace: str) -> dict[str, Any]:
    """The nested fields of one record."""
    written = _time(said.wall_ms)
    category, types, outcome = _classified(said)
    return _known(
        {
            "@timestamp": written,
            "ecs": {"version": ECS_VERSION},
            "message": _message(said),
            "event": {
                "kind": "event",
                "category": category,
                "type": types,
                "action": said.what,
                "outcome": outcome,
                "code": said.code,
                "created": written,
                "start": _time(said.window_start_ms),
                "end": _time(said.window_end_ms),
                "sequence": said.sequence,
                "hash": said.hash,
                "module": "tabwarden",
                "dataset": "tabwarden.audit",
            },
            "service": {"name": "tabwarden"},
            "trace": {"id": said.trace_id},
            "span": {"id": said.span_id},
            "rule": {"name": said.rule},
            "error": {"code": said.code if said.outcome == "failed" else None},
            namespace: {
                "agent": {
                    "action": said.action,
                    "scope": said.scope,
                    "outcome": said.outcome,
                    "session_id": said.session_id,
                    "principal_id": said.principal_id,
                    "generation": said.generation,
                    "code": said.code,
                    "rule": said.rule,
                    "committed": said.committed,
                },
                "audit": {
                    "type": said.type,
                    "previous_hash": said.previous,
                    "request_id": said.request_id,
                    "boot_ms": said.boot_ms,
                },
                "lifecycle": {"event": said.life},
                "signing": {"key_id": said.key_id},
                "refusals": {
                    "count": sum(said.counts.values()) if said.counts else None,
                    "reasons": dict(said.counts),
                },
            },
        }
    )


def _classified(said: Said) -> tuple[list[str], list[str], str | None]:
    """event.category, event.type and event.outcome: of those that ECS allows together."""
    match said.type:
        case "agent":
            types, outcome = _OUTCOMES.get(said.outcome, (["info"], "unknown"))
            return _API, types, outcome
        case "refusals":
            return _API, ["denied"], "failure"
        case "lifecycle":
            category, types = _LIVES.get(said.life, (["process"], ["info"]))
            return category, types, None
        case "signing":
            return ["configuration"], ["creation"], None
        case _:
            return [], ["info"], None


def _message(said: Said) -> str:
    words = (said.type or "record", said.action or said.life, said.outcome, said.code)
    return printable(" ".join(word for word in words if word))


def _time(ms: int | None) -> str | None:
    if ms is None:
        return None
    try:
        at = datetime.fromtimestamp(ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what is not known, and without objects that are then empty."""
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        found = _known(value) if isinstance(value, dict) else value
        if found is not None and found not in ({}, []):
            kept[name] = found
    return kept
