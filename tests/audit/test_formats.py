"""ECS, CEF and syslog: golden records, and that what is put in comes out, whatever it is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden.errors import Code, ConfigurationError
from tabwarden.model import AuditOutcome
from tabwarden_adapters.audit import EXPORTS, AuditRecord, export_in
from tabwarden_adapters.audit.cef import as_cef
from tabwarden_adapters.audit.ecs import FIELD_SETS, as_ecs, ecs_document
from tabwarden_adapters.audit.exports import as_jsonl
from tabwarden_adapters.audit.records import encode_event
from tabwarden_adapters.audit.said import MAX_TEXT, printable, said_by
from tabwarden_adapters.audit.shipping import syslog_framing
from tabwarden_adapters.audit.shipping.otlp import as_log_entry

from tests.audit.receivers import parse_cef, parse_syslog, split_frames
from tests.audit.records_of_all_types import TRACE, agent, record, records

GOLDEN = Path(__file__).with_name("golden")
SCHEMA = Path(__file__).resolve().parents[2].parent / "shared" / "corpora" / "ecs" / "ecs_flat.yml"
frame = syslog_framing(as_jsonl, host="host.example")


def otlp_line(of: AuditRecord) -> bytes:
    entry = as_log_entry(of, "tabwarden")
    return json.dumps({name: getattr(entry, name) for name in entry.__slots__}).encode()


FORMATS = {
    "ecs.jsonl": as_ecs,
    "cef.txt": as_cef,
    "syslog.txt": frame,
    "otlp.jsonl": otlp_line,
}


@pytest.mark.parametrize("name", FORMATS)
def test_golden_records_of_every_type(name: str) -> None:
    written = b"".join(FORMATS[name](one) + b"\n" for one in records())
    assert written.decode() == (GOLDEN / name).read_text()


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_leaves_that_is_not_on_the_list(name: str) -> None:
    for one in records():
        line = FORMATS[name](one)
        if name != "syslog.txt":  # which holds the record's own line here
            assert b"secret" not in line
            assert b"selector" not in line


def flat(fields: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            found |= flat(value, f"{before}{name}.")
        else:
            found[before + name] = value
    return found


class Schema:
    """As much of `ecs_flat.yml` as is needed, whose form is always the same."""

    def __init__(self, text: str) -> None:
        blocks = re.split(r"(?m)^(\S+):$", text)
        self.blocks = {name.strip("'"): body for name, body in zip(blocks[1::2], blocks[2::2], strict=True)}

    def of(self, field: str) -> tuple[str, bool, int | None]:
        """Its type, whether it is an array, and its longest text."""
        body = self.blocks[field]
        kind = re.search(r"(?m)^  type: (\S+)$", body)
        most = re.search(r"(?m)^  ignore_above: (\d+)$", body)
        assert kind
        return kind[1], "\n  normalize:\n  - array" in body, None if most is None else int(most[1])

    def allowed(self, field: str) -> dict[str, set[str]]:
        """The values that it may have, and the event types that go with each."""
        parts = re.split(r"(?m)^  - ", self.blocks[field].partition("\n  allowed_values:\n")[2])
        found = {}
        for part in parts:
            name = re.search(r"(?m)^    name: (\S+)$", part)
            if name:
                found[name[1]] = set(re.findall(r"(?m)^    - (\S+)$", part))
        return found


@pytest.mark.skipif(not SCHEMA.is_file(), reason="the ECS schema is not here")
def test_fields_are_those_of_the_schema() -> None:
    schema = Schema(SCHEMA.read_text())
    categories = schema.allowed("event.category")
    assert {name.partition(".")[0] for name in schema.blocks} - {"@timestamp"} <= FIELD_SETS
    for one in records():
        document = flat(json.loads(as_ecs(one)))
        for field, value in document.items():
            if field.startswith("tabwarden."):
                continue
            kind, is_array, most = schema.of(field)
            assert is_array == isinstance(value, list), field
            for part in value if is_array else [value]:
                if kind in ("keyword", "match_only_text"):
                    assert isinstance(part, str), field
                    assert len(part) <= (most or 10_000)
                elif kind == "date":
                    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", part), field
                else:
                    assert kind == "long", (field, kind)
                    assert type(part) is int
        assert document["event.kind"] in schema.allowed("event.kind")
        assert document.get("event.outcome", "unknown") in schema.allowed("event.outcome")
        types = set(document["event.type"])
        assert types <= set(schema.allowed("event.type"))
        for category in document.get("event.category", []):
            assert types <= categories[category], (category, types)


def test_the_namespace_is_the_installations_own() -> None:
    (one,) = [found for found in records() if said_by(found).sequence == 5]
    document = json.loads(export_in("ecs", "safetynet")(one))
    assert document["safetynet"]["agent"]["principal_id"] == "crawler"
    assert document["safetynet"]["agent"]["generation"] == 3
    assert "tabwarden" not in document
    assert as_log_entry(one, "safetynet").attributes["safetynet.agent.principal_id"] == "crawler"
    for name in ("agent", "event", "host", "", "a.b", "A", "a b", "x" * 64, "a\n", "@timestamp"):
        with pytest.raises(ConfigurationError, match="namespace"):
            export_in("ecs", name)
    with pytest.raises(ConfigurationError, match="is not one of: cef, ecs, jsonl"):
        export_in("xml")


texts = st.text(max_size=60) | st.text(alphabet='|\\= \n\r"]cs1=:a\u202e\x1b\x7f\ud800', max_size=60)
anything = texts | st.integers(-(2**70), 2**70) | st.none() | st.booleans() | st.lists(texts, max_size=2)


@st.composite
def hostile(draw: st.DrawFn) -> AuditRecord:
    """What somebody may write who can write the log: every member is anything."""
    object_ = st.dictionaries(
        st.sampled_from(
            [
                "action",
                "outcome",
                "principal_id",
                "generation",
                "code",
                "rule",
                "trace_id",
                "span_id",
                "scope",
            ]
        ),
        anything,
    )
    members = {
        "type": draw(st.sampled_from(["agent", "refusals", "lifecycle", "signing"]) | texts),
        "wall_ms": draw(anything),
        "agent": draw(object_ | anything),
        "trace": draw(object_ | anything),
        "counts": draw(st.dictionaries(texts, anything, max_size=3) | anything),
        "window": draw(st.fixed_dictionaries({"start_ms": anything, "end_ms": anything}) | anything),
        "request_id": draw(anything),
        "prev": draw(anything),  # a second one: it must overwrite nothing
        "cs1": draw(texts),
    }
    return record(json.dumps(members)[1:-1].encode(), draw(st.integers(1, 10**15)))


@given(hostile())
@settings(max_examples=80, deadline=None)
def test_whatever_a_record_says_a_receiver_gets_it_back(of: AuditRecord) -> None:
    said = said_by(of)
    line = as_cef(of).decode()
    assert line.isprintable()
    header, fields = parse_cef(line)
    assert header[:4] == ["CEF:0", "Tabwarden", "tabwarden", "1"]
    expected = {
        "suid": said.principal_id,
        "reason": said.code,
        "cs1": said.trace_id,
        "cs2": said.span_id,
        "cs3": of.hash,
        "cs4": said.scope,
        "cs6": said.rule,
        "flexString1": said.request_id,
        "flexString2": "0" * 96,
        "externalId": str(of.sequence),
        "flexNumber1": None if said.generation is None else str(said.generation),
    }
    for key, value in expected.items():
        got = fields.get(key)
        assert got == (None if value is None else shown(value)), key
        assert got is None or len(got) <= MAX_TEXT * 12
    assert {key for key in fields if key.endswith("Label")} <= {
        f"{key}Label"
        for key in (
            "cs1",
            "cs2",
            "cs3",
            "cs4",
            "cs5",
            "cs6",
            "cn1",
            "flexNumber1",
            "flexString1",
            "flexString2",
        )
    }

    document = as_ecs(of)
    assert document.decode().isprintable()
    fields_ = json.loads(document)
    assert fields_["event"]["sequence"] == of.sequence
    assert fields_["event"]["hash"] == of.hash
    assert fields_["tabwarden"].get("agent", {}).get("rule") == said.rule
    assert fields_ == json.loads(json.dumps(ecs_document(said, "tabwarden")))

    (message,), rest = split_frames(frame(of))
    parsed = parse_syslog(message)
    assert rest == b""
    assert parsed.parameters == {"seq": str(of.sequence), "hash": of.hash}
    assert parsed.text == as_jsonl(of)
    entry = as_log_entry(of, "tabwarden")
    assert entry.attributes["tabwarden.audit.hash"] == of.hash
    assert otlp_line(of).decode().isprintable()
    for text in (entry.body, entry.event_name, *entry.attributes, *map(str, entry.attributes.values())):
        assert text.isprintable()  # so it can be encoded: a record that cannot would hold up all others


def shown(text: str) -> str:
    """Line ends come back as they were; everything else that is not printable as a JSON escape."""
    return "".join(one if one in "\r\n" else printable(one) for one in text)


@given(
    texts.filter(bool),
    st.from_regex(r"[a-zA-Z.]{1,20}@[1-9][0-9]{0,4}", fullmatch=True),
)
@settings(max_examples=25, deadline=None)
def test_syslog_headers_hold_whatever_the_machine_is_called(host: str, sd_id: str) -> None:
    of = records()[3]
    message = parse_syslog(split_frames(syslog_framing(as_cef, host=host, sd_id=sd_id)(of))[0][0])
    assert (message.sd_id, message.id, message.app) == (sd_id, "agent", "tabwarden")
    assert parse_cef(message.text.decode())[1]["cs1"] == TRACE["trace_id"]


@pytest.mark.parametrize(
    "sd_id",
    ["", "tabwarden", "a@b", 'a"@1', "a]@1", "a=b@1", "a@1@2", "a b@1", "x" * 31 + "@1", "a@01", "a@1\n"],
)
def test_what_is_no_sd_id(sd_id: str) -> None:
    with pytest.raises(ConfigurationError, match="--sd-id"):
        syslog_framing(as_cef, sd_id=sd_id)


def test_severities() -> None:
    said = {}
    for outcome in AuditOutcome:
        of = record(json.dumps({"type": "agent", "agent": {"outcome": outcome.value}})[1:-1].encode())
        said[outcome.value] = (
            parse_syslog(split_frames(frame(of))[0][0]).priority % 8,
            parse_cef(as_cef(of).decode())[0][6],
            as_log_entry(of, "tabwarden").severity,
        )
    assert said == {
        "authorized": (6, "1", "INFO"),
        "completed": (6, "1", "INFO"),
        "denied": (4, "5", "WARN"),
        "failed": (3, "7", "ERROR"),
    }


def test_no_message_of_a_brokers_record_is_longer_than_documented() -> None:
    worst = '"' * 1000
    texts = ("action", "scope", "session_id", "principal_id", "rule", "trace_id", "span_id")
    event = agent(AuditOutcome.DENIED, 0, code=Code.DESTINATION_DENIED, **dict.fromkeys(texts, worst))
    of = record(encode_event(event), 10**15)
    for name in EXPORTS:
        assert len(syslog_framing(EXPORTS[name], host="h" * 255)(of)) < 8192


def test_texts_are_bounded() -> None:
    long = "x" * 3000
    of = record(json.dumps({"type": "agent", "agent": {"action": long}})[1:-1].encode())
    fields = parse_cef(as_cef(of).decode())[1]
    assert len(fields["act"]) == 63
    assert fields["act"].endswith("[cut]")
    assert len(json.loads(as_ecs(of))["event"]["action"]) == MAX_TEXT
    assert set(EXPORTS) == {"cef", "ecs", "jsonl"}
    assert agent(AuditOutcome.DENIED, 0).action == "navigate"
