"""What a record says, member by member, for the formats that others read.

This list is also what may leave in such a format: a member that is not named here, as an older or a later
version may have written, goes nowhere. A value of another type or size than ours counts as not known.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from tabwarden_adapters.audit.reader import AuditRecord
from tabwarden_adapters.audit.records import CUT_MARK, signing_key_id, written_ms

MAX_TEXT = 256  # characters; no broker of ours writes longer ones
_MAX_INTEGER = 2**63 - 1  # of ECS (`long`), CEF and OpenTelemetry alike
# At the place where the chain has them: a later member of the same name overwrites nothing.
_FRONT = re.compile(rb'\{"v":(\d{1,6}),"seq":\d{1,16},"prev":"([0-9a-f]{96})"')
_REASON = re.compile(r"[a-z][a-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Each is None when the record does not say it. Times are milliseconds, `wall_ms` and the window since
    the Unix epoch. Texts may hold any character: escape them as the format demands."""

    sequence: int
    hash: str
    version: int = 0
    previous: str | None = None
    type: str | None = None
    wall_ms: int | None = None
    boot_ms: int | None = None
    request_id: str | None = None
    action: str | None = None
    scope: str | None = None
    outcome: str | None = None
    session_id: str | None = None
    principal_id: str | None = None
    generation: int | None = None
    code: str | None = None
    rule: str | None = None
    committed: bool | None = None
    trace_id: str | None = None
    span_id: str | None = None
    life: str | None = None
    key_id: str | None = None
    window_start_ms: int | None = None
    window_end_ms: int | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def what(self) -> str | None:
        """In one word: the action, what became of the broker, or what else is recorded."""
        return self.action or self.life or (self.type if self.type != "agent" else None)


def said_by(record: AuditRecord) -> Said:
    """Never raises: what a record of another version says differently is left out."""
    members = record.members
    type_ = _text(members.get("type"))
    agent, trace, window = (_object(members.get(name)) for name in ("agent", "trace", "window"))
    life = _object(members.get("lifecycle"))
    who = life if type_ == "lifecycle" else agent
    committed = agent.get("committed")
    front = _FRONT.match(record.line)
    return Said(
        sequence=record.sequence,
        hash=record.hash,
        version=0 if front is None else int(front[1]),
        previous=None if front is None else front[2].decode("ascii"),
        type=type_,
        wall_ms=_integer(written_ms(members)),
        boot_ms=_integer(members.get("boot_ms")),
        request_id=_text(members.get("request_id")),
        action=_text(agent.get("action")),
        scope=_text(agent.get("scope")),
        outcome=_text(agent.get("outcome")),
        session_id=_text(agent.get("session_id")),
        principal_id=_text(who.get("principal_id")),
        generation=_integer(who.get("generation")),
        code=_text(agent.get("code")),
        rule=_text(agent.get("rule")),
        committed=committed if isinstance(committed, bool) else None,
        trace_id=_text(trace.get("trace_id")),
        span_id=_text(trace.get("span_id")),
        life=_text(life.get("event")),
        key_id=_text(signing_key_id(members)),
        window_start_ms=_integer(window.get("start_ms")),
        window_end_ms=_integer(window.get("end_ms")),
        counts=_counts(_object(members.get("counts"))),
    )


def printable(text: str) -> str:
    """With JSON escapes for control characters, direction marks and the like, so that no receiver's terminal
    or line is changed by what stands in a record."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _counts(counts: dict[str, Any]) -> dict[str, int]:
    numbers = ((reason, _integer(count)) for reason, count in counts.items() if _REASON.fullmatch(reason))
    return {reason: count for reason, count in numbers if count is not None}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    if not isinstance(value, str) or not value:
        return None
    return value if len(value) <= MAX_TEXT else value[: MAX_TEXT - len(CUT_MARK)] + CUT_MARK


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_INTEGER:
        return None
    return value
