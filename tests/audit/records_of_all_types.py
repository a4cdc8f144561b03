"""A log with every type of record, also such as an older and a later version wrote, for the formats."""

from typing import Any

from tabwarden.errors import Code, Refusal
from tabwarden.model import AgentEvent, AuditOutcome, LifecycleEvent, RefusalSummary
from tabwarden_adapters.audit import AuditRecord
from tabwarden_adapters.audit.chain import GENESIS, Link, read_line, seal_line
from tabwarden_adapters.audit.reader import record_of
from tabwarden_adapters.audit.records import encode_event, encode_signing
from tabwarden_adapters.audit.segments import Segment

WALL_MS = 1_800_000_000_000  # 2027-01-15T08:00:00Z
TRACE = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"}


def agent(outcome: AuditOutcome, wall_ms: int, **members: Any) -> AgentEvent:
    return AgentEvent(
        outcome=outcome,
        request_id="5f0c",
        wall_ms=wall_ms,
        boot_ms=wall_ms - WALL_MS + 5_000,
        **{
            "action": "navigate",
            "scope": "navigate",
            "session_id": "00000000-0000-0000-0000-000000000001",
            "principal_id": "crawler",
            "generation": 3,
            **TRACE,
            **members,
        },
    )


def life(event: Any, wall_ms: int, **members: Any) -> LifecycleEvent:
    return LifecycleEvent(event=event, wall_ms=wall_ms, boot_ms=wall_ms - WALL_MS + 5_000, **members)


def all_members() -> list[bytes]:
    """The members of each record, without braces, in the order of the log."""
    at = iter(range(WALL_MS, WALL_MS + 100_000, 1001))
    crawler = {"principal_id": "crawler", "generation": 3}
    return [
        encode_event(life("started", next(at))),
        encode_signing("ab" * 48, next(at), 6_001),
        encode_event(life("principal-issued", next(at), **crawler)),
        encode_event(agent(AuditOutcome.AUTHORIZED, next(at), rule="scopes.enabled")),
        encode_event(agent(AuditOutcome.COMPLETED, next(at), committed=True)),
        encode_event(
            agent(AuditOutcome.DENIED, next(at), code=Code.DESTINATION_DENIED, rule="hosts=a|b\\c\nnext")
        ),
        encode_event(agent(AuditOutcome.FAILED, next(at), code=Code.FAILURE, committed=None)),
        encode_event(
            AgentEvent(
                outcome=AuditOutcome.DENIED,
                request_id="60aa",
                wall_ms=next(at),
                boot_ms=9_000,
                code=Code.UNKNOWN_ACTION,
            )
        ),
        encode_event(
            RefusalSummary(
                window_start_ms=WALL_MS,
                window_end_ms=WALL_MS + 60_000,
                counts={Refusal.PROOF: 41, Refusal.TOO_LARGE: 1},
            )
        ),
        encode_event(life("principal-revoked", next(at), **crawler)),
        encode_event(life("principal-expired", next(at), principal_id="reader", generation=1)),
        encode_event(life("revoked", next(at))),
        encode_event(life("closed", next(at))),
        # As older ones may be, without the object, and with what no record has any more.
        b'"type":"agent","wall_ms":%d,"arguments":{"url":"https://secret.example/"},"selector":"#pw"'
        % WALL_MS,
        # Of a later version.
        b'"type":"novelty","wall_ms":%d,"novelty":{"token":"secret"},"agent":"text"' % WALL_MS,
        b'"type":"agent","wall_ms":-1,"agent":{"outcome":7,"generation":true,"rule":["x"],"principal_id":{}}',
    ]


def record(members: bytes, sequence: int = 1, previous: str = GENESIS) -> AuditRecord:
    line, _ = seal_line(sequence, previous, members)
    return record_of(Segment(1), read_line(line))


def records() -> list[AuditRecord]:
    found: list[AuditRecord] = []
    for sequence, members in enumerate(all_members(), 1):
        found.append(record(members, sequence, found[-1].hash if found else GENESIS))
    return found


def link(of: AuditRecord) -> Link:
    return read_line(of.line)
