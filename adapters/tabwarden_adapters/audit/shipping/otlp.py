"""Records as OpenTelemetry log records, to a collector by OTLP over HTTP.

Here the other side answers: a batch counts as taken when the collector has said so.
"""

import contextlib
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import trio
from tabwarden_observability.logs import LogEntry, LogSender, LogsRefused, Severity

from tabwarden_adapters.audit.reader import AuditRecord
from tabwarden_adapters.audit.said import Said, printable, said_by
from tabwarden_adapters.audit.shipping.port import Delivery, DeliveryFailed

_TRACE = re.compile(r"[0-9a-f]{32}")
_SPAN = re.compile(r"[0-9a-f]{16}")
_SEVERITIES: Final[dict[str | None, Severity]] = {"denied": "WARN", "failed": "ERROR"}


class OtlpDestination:
    """Implements `Destination`. `sender` makes what sends, for each connection anew."""

    settle_s = 0.0

    def __init__(self, sender: Callable[[], LogSender], namespace: str) -> None:
        self._sender = sender
        self._namespace = namespace

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Delivery]:
        sender = self._sender()
        try:
            yield _OtlpDelivery(sender, self._namespace)
        finally:
            # Wakes a thread that waits for its next try; closing takes no time.
            sender.close()


class _OtlpDelivery:
    """Implements `Delivery`."""

    def __init__(self, sender: LogSender, namespace: str) -> None:
        self._sender = sender
        self._namespace = namespace

    async def send(self, records: Sequence[AuditRecord]) -> None:
        entries = [as_log_entry(record, self._namespace) for record in records]
        try:
            # In a thread that may be left behind: a collector that does not answer must not hold up the end.
            await trio.to_thread.run_sync(self._sender.send, entries, abandon_on_cancel=True)
        except LogsRefused as refused:
            raise DeliveryFailed(str(refused)) from None

    async def confirmed(self) -> None:
        return

    async def broken(self) -> None:
        await trio.sleep_forever()

    async def finish(self) -> bool:
        return True


def as_log_entry(record: AuditRecord, namespace: str) -> LogEntry:
    """The record's members below `namespace`, as the ECS export has them. Not known: absent."""
    said = said_by(record)
    traced = _known_trace(said)
    words = (said.type, said.action or said.life, said.outcome)
    values = {
        "agent.action": said.action,
        "agent.scope": said.scope,
        "agent.outcome": said.outcome,
        "agent.session_id": said.session_id,
        "agent.principal_id": said.principal_id,
        "agent.generation": said.generation,
        "agent.code": said.code,
        "agent.rule": said.rule,
        "agent.committed": said.committed,
        "audit.type": said.type,
        "audit.sequence": said.sequence,
        "audit.hash": said.hash,
        "audit.previous_hash": said.previous,
        "audit.request_id": said.request_id,
        "audit.boot_ms": said.boot_ms,
        "lifecycle.event": said.life,
        "signing.key_id": said.key_id,
        "refusals.start_ms": said.window_start_ms,
        "refusals.end_ms": said.window_end_ms,
        **{f"refusals.reasons.{reason}": count for reason, count in said.counts.items()},
    }
    return LogEntry(
        event_name=f"{namespace}.audit.{_type_name(said)}",
        body=printable(" ".join(word for word in words if word)),
        severity="WARN" if said.type == "refusals" else _SEVERITIES.get(said.outcome, "INFO"),
        written_ns=None if said.wall_ms is None else min(said.wall_ms * 1_000_000, 2**63 - 1),
        trace_id=int(traced[0], 16),
        span_id=int(traced[1], 16),
        attributes={
            f"{namespace}.{name}": printable(value) if isinstance(value, str) else value
            for name, value in values.items()
            if value is not None
        },
    )


def _type_name(said: Said) -> str:
    return said.type if said.type in ("agent", "refusals", "lifecycle", "signing") else "record"


def _known_trace(said: Said) -> tuple[str, str]:
    """Both ids, or zeros: OpenTelemetry knows none of another form."""
    trace, span = said.trace_id or "", said.span_id or ""
    return (trace, span) if _TRACE.fullmatch(trace) and _SPAN.fullmatch(span) else ("0", "0")
