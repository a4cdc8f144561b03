"""A broker that is told to end under load: every call that it accepted has its end on record."""

import json
import os
import signal
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import trio
from tabwarden.errors import Code
from tabwarden.model import AgentEvent, AuditOutcome, ConnectionDescriptor, LifecycleEvent
from tabwarden.protocol.codec import SUITE
from tabwarden_adapters.audit import read_records
from tabwarden_adapters.load import Brakes, Kind, LoadPlan, Run, drive
from tabwarden_observability.attributes import OUTCOME

from tests.observability.collector import Collector, attributes_of

HELD = 40
LIMIT_S = 110


def descriptor(ready: dict[str, Any]) -> ConnectionDescriptor:
    keys = {name: bytes.fromhex(ready[name]) for name in ("token", "ed_public", "pq_public", "instance")}
    return ConnectionDescriptor(
        address=ready["address"], principal_id="legacy", generation=0, protocol=SUITE, **keys
    )


class Lines:
    """What a process says, line by line."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._held = b""

    async def next(self) -> dict[str, Any]:
        while b"\n" not in self._held:
            data = await self._stream.receive_some()
            assert data, "the broker's process ended early"
            self._held += data
        line, self._held = self._held.split(b"\n", 1)
        said: dict[str, Any] = json.loads(line)
        return said


async def ended_under_load(folder: Path, endpoint: str) -> tuple[dict[str, Any], Run, Run]:
    """Load a broker with calls that are held and calls that are quick, tell it to end, and give its last line
    and both runs."""
    runs: dict[str, Run] = {}
    held, quick = Brakes(), Brakes()
    # Not the developer's own exporters.
    own = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}

    async def load(name: str, plan: LoadPlan, one: ConnectionDescriptor, brakes: Brakes) -> None:
        runs[name] = await drive(plan, [one], brakes=brakes)

    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            partial(
                trio.run_process,
                [sys.executable, "-m", "tests.load.broker_process", str(folder), str(HELD)],
                stdin=b"",
                stdout=-1,
                env={**own, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "NO_PROXY": "127.0.0.1"},
            )
        )
        lines = Lines(process.stdout)
        one = descriptor(await lines.next())
        nursery.start_soon(load, "held", LoadPlan(agents=HELD, seconds=3600, action="read"), one, held)
        nursery.start_soon(load, "quick", LoadPlan(agents=8, seconds=3600, rate=10), one, quick)
        assert await lines.next() == {"held": HELD}
        # Those that are held are not asked again; the quick ones go on into the end of the broker.
        held.press()
        process.send_signal(signal.SIGTERM)
        last = await lines.next()
        await process.wait()
        quick.press()
        quick.press()
    return last, runs["held"], runs["quick"]


async def test_every_accepted_call_ends_on_record_and_in_a_span(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    with Collector() as collector, trio.fail_after(LIMIT_S):
        last, held, quick = await ended_under_load(folder, collector.endpoint)
    assert last == {"dropped": 0, "told": []}
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
    assert [(one.kind, one.code) for one in held.samples] == [(Kind.FAILED, "shutting-down")] * HELD
    assert {one.code for one in quick.samples} <= {
        "ok",
        "shutting-down",
        "unreachable",
        "refused",
        "unfinished",
    }
    answered = sum(one.kind is Kind.ACCEPTED for one in quick.samples)
    assert answered <= sum(found[1].outcome is AuditOutcome.COMPLETED for found in accepted)
