"""A broker that is told to end under load: every call that it accepted has its end on record."""

from collections import defaultdict
from pathlib import Path

import trio
from tabwarden.errors import Code
from tabwarden.model import AgentEvent, AuditOutcome, LifecycleEvent
from tabwarden_adapters.audit import read_records
from tabwarden_adapters.load import Kind
from tabwarden_observability.attributes import OUTCOME

from tests.load.ending import HELD, ended_under_load
from tests.observability.collector import Collector, attributes_of

LIMIT_S = 110


async def test_every_accepted_call_ends_on_record_and_in_a_span(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    with Collector() as collector, trio.fail_after(LIMIT_S):
        ended = await ended_under_load(folder, collector.endpoint)
    assert ended.last == {"dropped": 0, "told": []}
    events: dict[str, list[AgentEvent]] = defaultdict(list)
    for record in read_records(folder):
        if isinstance(record.event, AgentEvent):
            events[record.event.request_id].append(record.event)
    accepted = [found for found in events.values() if found[0].outcome is AuditOutcome.AUTHORIZED]
    assert len(accepted) >= HELD
    # One terminal record each, after its authorization and nothing after it.
    for found in accepted:
        assert len(found) == 2, found
        assert found[1].outcome is not AuditOutcome.AUTHORIZED
    ends = [found[1] for found in accepted if found[0].action == "read"]
    assert len(ends) == HELD
    assert {(end.outcome, end.code) for end in ends} == {(AuditOutcome.FAILED, Code.SHUTTING_DOWN)}
    assert {
        record.event.event for record in read_records(folder) if isinstance(record.event, LifecycleEvent)
    } == {"started", "closed"}
    spans = {
        (span.trace_id.hex(), span.span_id.hex()): attributes_of(span)[OUTCOME]
        for span in collector.spans
        if span.name == "agent.request"
    }
    for _, end in accepted:
        outcome = spans[end.trace_id, end.span_id]
        assert outcome == ("ok" if end.outcome is AuditOutcome.COMPLETED else "closed")
    # Each agent that was held was told why.
    assert [(one.kind, one.code) for one in ended.held.samples] == [(Kind.FAILED, "shutting-down")] * HELD
    assert {one.code for one in ended.quick.samples} <= {
        "ok",
        "shutting-down",
        "unreachable",
        "refused",
        "unfinished",
    }
    answered = sum(one.kind is Kind.ACCEPTED for one in ended.quick.samples)
    assert answered <= sum(found[1].outcome is AuditOutcome.COMPLETED for found in accepted)
