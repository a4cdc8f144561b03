"""Fakes that implement the ports of the broker. They deny by default."""

from collections.abc import Callable

import msgspec
from tabwarden.actions import ACTIONS
from tabwarden.errors import AuditUnavailable, HostReason
from tabwarden.model import AgentEvent, AuditEvent, AuditOutcome, Authorization, Caller
from tabwarden.ports import PersonWait


class ManualClock:
    """A `Clock` that stands still until it is told to move. Milliseconds."""

    def __init__(self, boottime: int = 1_000_000, wall: int = 1_800_000_000_000) -> None:
        self.boottime = boottime
        self.wall = wall
        self.monotonic = boottime

    def boottime_ms(self) -> int:
        return self.boottime

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ms(self) -> int:
        return self.monotonic

    def advance(self, milliseconds: int) -> None:
        """Let real time pass: all three clocks."""
        self.boottime += milliseconds
        self.monotonic += milliseconds
        self.wall += milliseconds


class MemoryAudit:
    """An `AuditSink` that keeps its records, and can be told to fail."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []
        self.broken = False
        self.fail_durable = False
        self.durable_hook: Callable[[], object] | None = None
        self.settle_hook: Callable[[], object] | None = None

    def admit(self, event: AgentEvent) -> "MemoryTicket":
        self.note(event)
        return MemoryTicket(self, event)

    def note(self, event: AuditEvent) -> None:
        if self.broken:
            raise AuditUnavailable
        self.events.append(event)

    async def flush(self) -> None:
        if self.broken:
            raise AuditUnavailable

    @property
    def agent_events(self) -> list[AgentEvent]:
        return [event for event in self.events if isinstance(event, AgentEvent)]

    def terminal(self, request_id: str | None = None) -> list[AgentEvent]:
        """The terminal outcomes, of one request or of all."""
        return [
            event
            for event in self.agent_events
            if event.outcome is not AuditOutcome.AUTHORIZED and request_id in (None, event.request_id)
        ]


class MemoryTicket:
    def __init__(self, audit: MemoryAudit, event: AgentEvent) -> None:
        self._audit = audit
        self._event = event
        self._settled = False

    async def durable(self) -> None:
        hook = self._audit.durable_hook
        if hook is not None:
            result = hook()
            if hasattr(result, "__await__"):
                await result  # type: ignore[misc]
        if self._audit.fail_durable:
            raise AuditUnavailable

    def settle(self, event: AgentEvent) -> None:
        if self._settled:
            raise RuntimeError("settled twice")
        assert event.request_id == self._event.request_id
        self._settled = True
        if self._audit.settle_hook is not None:
            self._audit.settle_hook()
        self._audit.note(event)


class AllowOnly:
    """An `Authorizer` that allows the actions it was given, and nothing by default."""

    def __init__(self, *actions: str) -> None:
        self.actions = set(actions)
        self.asked: list[tuple[str, Caller]] = []

    async def __call__(
        self,
        action: str,
        args: msgspec.Struct,
        scope: str,
        session_id: str | None,
        *,
        caller: Caller,
        waiting_for_person: PersonWait,
    ) -> Authorization:
        self.asked.append((action, caller))
        if action not in self.actions:
            return Authorization(allowed=False, rule="test.not-listed")
        return Authorization(
            allowed=True, scopes=frozenset({ACTIONS[action].internal_scope}), rule="test.listed"
        )


class Reasons:
    """An `ErrorObserver` that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[HostReason] = []

    def __call__(self, reason: HostReason, /) -> None:
        self.told.append(reason)
