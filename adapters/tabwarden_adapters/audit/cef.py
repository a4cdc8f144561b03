"""Records in the ArcSight Common Event Format, version 0 (Implementing ArcSight CEF, revision 25).

    CEF:0|Tabwarden|tabwarden|<version of the record>|<class>|<name>|<severity>|<extension>

Of the extension, always with the same meaning:

    externalId    number of the record          flexString1  id of the request
    rt            wall time, ms                 flexString2  hash of the record before
    act           action                        cs1, cs2     trace id, span id
    outcome       outcome                       cs3          hash of the record
    reason        code                          cs4          policy scope
    suid          capability: the principal     cs5          session (tab)
    flexNumber1   its generation                cs6          rule
    cn1           1 when the action took effect, 0 when it surely did not
    start, end, cnt, msg                        the window of refusals, how many, and how many for each reason
    deviceCustomDate1 is not used; a signing record's key id is in msg.

Each key stands at most once. A custom field has its label beside it, also bounded; without a value both are
absent. Text beyond printable characters is written as JSON escapes.
"""

from collections.abc import Iterator

from tabwarden_adapters.audit.reader import AuditRecord
from tabwarden_adapters.audit.records import CUT_MARK
from tabwarden_adapters.audit.said import Said, printable, said_by

_MAX_SHORT = 63  # `act` and `outcome`, by the specification
_MAX_LONG = 1023  # `msg` and `reason`
_ESCAPES = {"\\": "\\\\", "=": "\\=", "\n": "\\n", "\r": "\\r"}
_SEVERITIES = {"authorized": 1, "completed": 1, "denied": 5, "failed": 7}


def as_cef(record: AuditRecord) -> bytes:
    """One line of UTF-8 without control characters or a newline."""
    said = said_by(record)
    name, severity = _name_and_severity(said)
    header = (
        "Tabwarden",
        "tabwarden",
        str(said.version),
        ":".join(word for word in (said.type or "unknown", said.outcome or said.life) if word),
        name,
        str(severity),
    )
    fields = " ".join(
        f"{key}={_extension_value(value)}" for key, value in _extension(said) if value is not None
    )
    return f"CEF:0|{'|'.join(map(_header_value, header))}|{fields}".encode()


def _name_and_severity(said: Said) -> tuple[str, int]:
    match said.type:
        case "agent":
            return f"agent {said.action or 'request'} {said.outcome or ''}".rstrip(), _SEVERITIES.get(
                said.outcome or "", 3
            )
        case "refusals":
            return "requests without a proof refused", 5
        case "lifecycle":
            return f"broker {said.life or ''}".rstrip(), 3
        case "signing":
            return "new signing keys", 3
        case _:
            return "record of a type of another version", 3


def _extension(said: Said) -> Iterator[tuple[str, str | int | None]]:
    yield "externalId", said.sequence
    yield "rt", said.wall_ms
    yield "start", said.window_start_ms
    yield "end", said.window_end_ms
    yield "cnt", sum(said.counts.values()) if said.counts else None
    yield "act", _bounded(said.action or said.life, _MAX_SHORT)
    yield "outcome", _bounded(said.outcome, _MAX_SHORT)
    yield "reason", said.code
    yield "suid", said.principal_id
    yield from _labelled("flexNumber1", "generation", said.generation)
    yield from _labelled("cs1", "traceId", said.trace_id)
    yield from _labelled("cs2", "spanId", said.span_id)
    yield from _labelled("cs3", "recordHash", said.hash)
    yield from _labelled("cs4", "policyScope", said.scope)
    yield from _labelled("cs5", "sessionId", said.session_id)
    yield from _labelled("cs6", "rule", said.rule)
    yield from _labelled("cn1", "committed", None if said.committed is None else int(said.committed))
    yield from _labelled("flexString1", "requestId", said.request_id)
    yield from _labelled("flexString2", "previousHash", said.previous)
    counts = " ".join(f"{reason}: {count}" for reason, count in said.counts.items())
    yield "msg", _bounded(counts or (said.key_id and f"key {said.key_id}"), _MAX_LONG)


def _labelled(key: str, label: str, value: str | int | None) -> Iterator[tuple[str, str | int]]:
    if value is not None:
        yield key, value
        yield f"{key}Label", label


def _bounded(text: str | None, most: int) -> str | None:
    return text if text is None or len(text) <= most else text[: most - len(CUT_MARK)] + CUT_MARK


def _header_value(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace("|", "\\|")


def _extension_value(value: str | int) -> str:
    text = str(value)
    if text.isprintable() and "\\" not in text and "=" not in text:
        return text
    return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    # Line ends by CEF's own escapes; every other character that is not printable by `printable`, whose
    # backslash is then escaped like any other.
    return _ESCAPES.get(character) or printable(character).replace("\\", "\\\\")
