"""The names and values of the members of a record: what exports and people's scripts rely on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.errors import Code, MalformedError, Refusal
from tabwarden.model import AgentEvent, AuditEvent, AuditOutcome, LifecycleEvent, RefusalSummary
from tabwarden_adapters.audit.chain import GENESIS, MAX_RECORD_BYTES, read_line, seal_line
from tabwarden_adapters.audit.records import (
    CUT_MARK,
    MAX_TEXT_BYTES,
    _encode,
    _members,
    decode_event,
    encode_event,
)

TIMES = st.integers(0, 2**63)
SHORT = st.none() | st.text(max_size=20)
LONG = st.none() | st.text(max_size=600)


def agent_events(texts: st.SearchStrategy[str | None]) -> st.SearchStrategy[AgentEvent]:
    return st.builds(
        AgentEvent,
        outcome=st.sampled_from(AuditOutcome),
        request_id=texts.map(lambda text: text or ""),
        wall_ms=TIMES,
        boot_ms=TIMES,
        action=texts,
        scope=texts,
        code=st.none() | st.sampled_from(Code),
        rule=texts,
        session_id=texts,
        principal_id=texts,
        generation=st.none() | TIMES,
        committed=st.none() | st.booleans(),
        trace_id=texts,
        span_id=texts,
    )


EVENTS: st.SearchStrategy[AuditEvent] = (
    agent_events(SHORT)
    | st.builds(
        RefusalSummary,
        window_start_ms=TIMES,
        window_end_ms=TIMES,
        counts=st.dictionaries(st.sampled_from(Refusal), TIMES),
    )
    | st.builds(
        LifecycleEvent,
        event=st.sampled_from(
            ["started", "revoked", "closed", "principal-issued", "principal-revoked", "principal-expired"]
        ),
        wall_ms=TIMES,
        boot_ms=TIMES,
        principal_id=SHORT,
        generation=st.none() | TIMES,
    )
)


def members(event: AuditEvent) -> dict[str, object]:
    decoded: dict[str, object] = json.loads(b"{" + encode_event(event) + b"}")
    return decoded


def test_an_agent_event() -> None:
    event = AgentEvent(
        outcome=AuditOutcome.FAILED,
        request_id="q1",
        wall_ms=1,
        boot_ms=2,
        action="read",
        scope="read",
        code=Code.DEADLINE,
        rule="static",
        session_id="s",
        principal_id="a",
        generation=4,
        committed=None,
        trace_id="0" * 32,
        span_id="1" * 16,
    )
    assert members(event) == {
        "type": "agent",
        "wall_ms": 1,
        "boot_ms": 2,
        "request_id": "q1",
        "agent": {
            "action": "read",
            "scope": "read",
            "outcome": "failed",
            "session_id": "s",
            "principal_id": "a",
            "generation": 4,
            "code": "deadline",
            "rule": "static",
            "committed": None,
        },
        "trace": {"trace_id": "0" * 32, "span_id": "1" * 16},
    }


def test_a_summary_of_refusals() -> None:
    event = RefusalSummary(window_start_ms=1, window_end_ms=2, counts={Refusal.PROOF: 20_000})
    assert members(event) == {
        "type": "refusals",
        "window": {"start_ms": 1, "end_ms": 2},
        "counts": {"proof": 20_000},
    }


def test_the_brokers_own_life() -> None:
    event = LifecycleEvent(event="principal-issued", wall_ms=1, boot_ms=2, principal_id="a", generation=3)
    assert members(event) == {
        "type": "lifecycle",
        "wall_ms": 1,
        "boot_ms": 2,
        "lifecycle": {"event": "principal-issued", "principal_id": "a", "generation": 3},
    }


@given(EVENTS)
def test_every_event_comes_back(event: AuditEvent) -> None:
    line, digest = seal_line(1, GENESIS, encode_event(event))
    link = read_line(line)
    assert link.hash_is_right
    assert link.hash == digest
    assert decode_event(link.members) == event


@given(agent_events(LONG))
def test_no_event_outgrows_its_room_or_its_line(event: AgentEvent) -> None:
    line, _ = seal_line(10**15, GENESIS, encode_event(event))
    assert len(line) <= MAX_RECORD_BYTES
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert read_line(line).hash_is_right


@pytest.mark.parametrize("text", ['"' * 5000, "\U0001f600" * 5000, "\0" * 5000, "x" * 5000, "\ud800" * 5000])
def test_a_long_text_is_cut_and_says_so(text: str) -> None:
    event = AgentEvent(
        outcome=AuditOutcome.DENIED,
        request_id=text,
        action=text,
        scope=text,
        rule=text,
        session_id=text,
        principal_id=text,
        wall_ms=2**64,
        boot_ms=2**64,
        generation=2**64,
        code=Code.CONFLICT,
        trace_id=text,
        span_id=text,
    )
    encoded = encode_event(event)
    assert len(seal_line(10**15, GENESIS, encoded)[0]) <= MAX_RECORD_BYTES
    rule = json.loads(b"{" + encoded + b"}")["agent"]["rule"]
    assert rule.endswith(CUT_MARK)
    assert text.startswith(rule.removesuffix(CUT_MARK))
    assert len(rule) > MAX_TEXT_BYTES // 16


@given(agent_events(LONG | st.text(min_size=100, max_size=260, alphabet='a"\\\x1f\x7fé')))
def test_the_quick_way_gives_the_same(event: AgentEvent) -> None:
    assert json.loads(b"{" + encode_event(event) + b"}") == json.loads(_encode(_members(event)))


def test_a_type_of_a_later_version_is_no_error() -> None:
    assert decode_event({"type": "checkpoint", "root": "x"}) is None


def test_members_of_a_later_version_are_ignored() -> None:
    event = LifecycleEvent(event="started", wall_ms=1, boot_ms=2)
    assert decode_event({**members(event), "new": 1}) == event


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wall_ms", "1"),
        ("wall_ms", True),
        ("wall_ms", 1.0),
        ("request_id", None),
        ("agent", []),
        ("agent", {}),
        ("agent.outcome", "done"),
        ("agent.code", "new-code"),
        ("agent.committed", 1),
        ("agent.rule", 5),
        ("agent.generation", "1"),
        ("trace", None),
    ],
)
def test_other_values_are_malformed(name: str, value: object) -> None:
    event = AgentEvent(outcome=AuditOutcome.DENIED, request_id="r", wall_ms=1, boot_ms=1)
    changed = json.loads(json.dumps(members(event)))
    target, _, inner = name.partition(".")
    if inner:
        changed[target][inner] = value
    else:
        changed[target] = value
    with pytest.raises(MalformedError):
        decode_event(changed)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"type": "refusals", "window": {"start_ms": 1, "end_ms": 2}, "counts": {"new": 1}},
        {"type": "refusals", "window": {"start_ms": 1, "end_ms": 2}, "counts": [1]},
        {"type": "lifecycle", "wall_ms": 1, "boot_ms": 1, "lifecycle": {"event": "slept"}},
        {"type": "lifecycle", "wall_ms": 1, "boot_ms": 1, "lifecycle": {"event": []}},
    ],
)
def test_other_shapes_are_malformed(record: dict[str, object]) -> None:
    with pytest.raises(MalformedError):
        decode_event(record)
