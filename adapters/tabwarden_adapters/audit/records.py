"""Audit events as JSON members and back: the stable field names of the log.

An agent event:

    "type":"agent", "wall_ms":…, "boot_ms":…, "request_id":…,
    "agent":{"action","scope","outcome","session_id","principal_id","generation","code","rule","committed"},
    "trace":{"trace_id","span_id"}

A summary of refusals: `"type":"refusals", "window":{"start_ms","end_ms"}, "counts":{reason: number}`.
The broker's own life: `"type":"lifecycle", "wall_ms", "boot_ms", "lifecycle":{"event","principal_id",
"generation"}`. Which keys sign the checkpoints from here on: `"type":"signing", "wall_ms", "boot_ms",
"signing":{"key_id"}`. A member whose value is not known is null, never absent. Readers must ignore members
that they do not know: later versions add some.

Text is ASCII with JSON escapes, so that a terminal shows what is there, and each text is cut so that a record
never outgrows the room that was kept for it.
"""

import contextlib
import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec
from tabwarden.errors import Code, MalformedError, Refusal
from tabwarden.model import AgentEvent, AuditEvent, AuditOutcome, LifecycleEvent, RefusalSummary

MAX_TEXT_BYTES = 256  # of one text as JSON: longer than any name, id or rule that we make ourselves
CUT_MARK = "[cut]"  # ends a text that was longer

_LIFECYCLE = Literal[
    "started", "revoked", "closed", "principal-issued", "principal-revoked", "principal-expired"
]
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_encode_fast = msgspec.json.Encoder().encode


def encode_event(event: AuditEvent) -> bytes:
    """The JSON members of `event`, without the braces around them. ASCII, one line."""
    # msgspec is 15 times as fast, but leaves text beyond ASCII as it is and refuses lone surrogates.
    with contextlib.suppress(UnicodeEncodeError, OverflowError):
        if isinstance(event, AgentEvent):
            encoded = _encode_fast(_agent_members(event, _all_texts(event)))
            # All its texts together are no longer than one may be: none has to be looked at by itself.
            if len(encoded) <= _LEAST_BYTES + MAX_TEXT_BYTES and encoded.isascii():
                return encoded[1:-1]
        encoded = _encode_fast(_members(event))
        if encoded.isascii():
            return encoded[1:-1]
    return _encode(_members(event))[1:-1].encode("ascii")


def decode_event(members: Mapping[str, Any]) -> AuditEvent | None:
    """The event of a record's members; None when its type is one of a later version.

    Raises `MalformedError` when a member is absent or has a value that no event can have.
    """
    try:
        match members["type"]:
            case "agent":
                return _agent_event(members)
            case "refusals":
                window = members["window"]
                return RefusalSummary(
                    window_start_ms=_integer(window["start_ms"]),
                    window_end_ms=_integer(window["end_ms"]),
                    counts={Refusal(reason): _integer(count) for reason, count in members["counts"].items()},
                )
            case "lifecycle":
                life = members["lifecycle"]
                event: _LIFECYCLE = life["event"]
                if event not in get_args(_LIFECYCLE):
                    raise MalformedError("unknown lifecycle event")
                return LifecycleEvent(
                    event=event,
                    wall_ms=_integer(members["wall_ms"]),
                    boot_ms=_integer(members["boot_ms"]),
                    principal_id=_text_or_none(life["principal_id"]),
                    generation=_integer_or_none(life["generation"]),
                )
            case _:
                return None
    except MalformedError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise MalformedError("the record has members that no audit event has") from None


def written_ms(members: Mapping[str, Any]) -> int | None:
    """Wall time of a record, in milliseconds since the epoch; None when it has none that we know."""
    window = members.get("window")
    value = members.get("wall_ms", window.get("end_ms") if isinstance(window, dict) else None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def encode_signing(key_id: str, wall_ms: int, boot_ms: int) -> bytes:
    """The JSON members of the record that says whose keys sign the checkpoints from here on."""
    members = {"type": "signing", "wall_ms": wall_ms, "boot_ms": boot_ms, "signing": {"key_id": key_id}}
    return _encode_fast(members)[1:-1]


def signing_key_id(members: Mapping[str, Any]) -> str | None:
    """The key id of such a record; None for every other record."""
    signing = members.get("signing") if members.get("type") == "signing" else None
    value = signing.get("key_id") if isinstance(signing, dict) else None
    return value if isinstance(value, str) else None


def _members(event: AuditEvent) -> dict[str, Any]:
    match event:
        case AgentEvent():
            return _agent_members(event, tuple(_cut(text) for text in _all_texts(event)))
        case RefusalSummary():
            return {
                "type": "refusals",
                "window": {"start_ms": event.window_start_ms, "end_ms": event.window_end_ms},
                "counts": {reason.value: count for reason, count in event.counts.items()},
            }
        case LifecycleEvent():
            return {
                "type": "lifecycle",
                "wall_ms": event.wall_ms,
                "boot_ms": event.boot_ms,
                "lifecycle": {
                    "event": event.event,
                    "principal_id": _cut(event.principal_id),
                    "generation": event.generation,
                },
            }


_Texts = tuple[str | None, ...]


def _all_texts(event: AgentEvent) -> _Texts:
    """In the order of `_agent_members`."""
    return (
        event.request_id,
        event.action,
        event.scope,
        event.session_id,
        event.principal_id,
        event.rule,
        event.trace_id,
        event.span_id,
    )


def _agent_members(event: AgentEvent, texts: _Texts) -> dict[str, Any]:
    request_id, action, scope, session_id, principal_id, rule, trace_id, span_id = texts
    return {
        "type": "agent",
        "wall_ms": event.wall_ms,
        "boot_ms": event.boot_ms,
        "request_id": request_id,
        "agent": {
            "action": action,
            "scope": scope,
            "outcome": event.outcome.value,
            "session_id": session_id,
            "principal_id": principal_id,
            "generation": event.generation,
            "code": None if event.code is None else event.code.value,
            "rule": rule,
            "committed": event.committed,
        },
        "trace": {"trace_id": trace_id, "span_id": span_id},
    }


# No record of an agent is shorter: the shortest outcome and numbers, and no text.
_LEAST_BYTES = len(
    _encode_fast(
        _agent_members(
            AgentEvent(outcome=AuditOutcome.DENIED, request_id="", wall_ms=0, boot_ms=0, generation=0),
            ("",) * 8,
        )
    )
)


def _cut(text: str | None) -> str | None:
    # The worst printable ASCII character (a quote or a backslash) takes two bytes.
    if text is None or (len(text) <= MAX_TEXT_BYTES // 2 and text.isascii() and text.isprintable()):
        return text
    if len(text) <= MAX_TEXT_BYTES and len(_encode(text)) - 2 <= MAX_TEXT_BYTES:
        return text
    kept = text[:MAX_TEXT_BYTES]
    while len(_encode(kept)) - 2 > MAX_TEXT_BYTES - len(CUT_MARK):
        kept = kept[: len(kept) * 7 // 8]
    return kept + CUT_MARK


def _agent_event(members: Mapping[str, Any]) -> AgentEvent:
    agent, trace = members["agent"], members["trace"]
    code, committed = agent["code"], agent["committed"]
    if committed is not None and not isinstance(committed, bool):
        raise MalformedError("committed is not true, false or null")
    request_id = members["request_id"]
    if not isinstance(request_id, str):
        raise MalformedError("request_id is not a text")
    return AgentEvent(
        outcome=AuditOutcome(agent["outcome"]),
        request_id=request_id,
        wall_ms=_integer(members["wall_ms"]),
        boot_ms=_integer(members["boot_ms"]),
        action=_text_or_none(agent["action"]),
        scope=_text_or_none(agent["scope"]),
        code=None if code is None else Code(code),
        rule=_text_or_none(agent["rule"]),
        session_id=_text_or_none(agent["session_id"]),
        principal_id=_text_or_none(agent["principal_id"]),
        generation=_integer_or_none(agent["generation"]),
        committed=committed,
        trace_id=_text_or_none(trace["trace_id"]),
        span_id=_text_or_none(trace["span_id"]),
    )


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise MalformedError("a number of the record is not an integer")
    return value


def _integer_or_none(value: object) -> int | None:
    return None if value is None else _integer(value)


def _text_or_none(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise MalformedError("a text of the record is not a text")
    return value
