"""Where a call can be held: each await of the pipeline, as a fake of the port that is awaited there."""

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import trio
from tabwarden.model import Authorization, LifecycleEvent, Phase, TraceOutcome
from tabwarden.ports import PersonWait

from tests.support.fakes import AllowOnly, MemoryAudit

STATIONS = ("authorize", "person", "durable", "dispatch")


class Station:
    """Holds every call that comes to `place`, until it is opened."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.opened = trio.Event()
        self.waiting = 0
        self.dispatched = 0
        self.cancelled = 0
        self.audit = MemoryAudit()
        self.audit.durable_hook = self._durable
        self._allow = AllowOnly("sessions")

    async def hold(self, place: str) -> None:
        if place != self.place:
            return
        self.waiting += 1
        try:
            await self.opened.wait()
        except trio.Cancelled:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1

    async def _durable(self) -> None:
        await self.hold("durable")

    async def authorize(self, *arguments: Any, waiting_for_person: PersonWait, **more: Any) -> Authorization:
        await self.hold("authorize")
        if self.place == "person":
            with waiting_for_person():
                await self.hold("person")
        return await self._allow(*arguments, waiting_for_person=waiting_for_person, **more)

    async def act(self, arguments: object, context: object) -> list[object]:
        self.dispatched += 1
        await self.hold("dispatch")
        return []


class HookTrace:
    """A `RequestTrace` that calls `hook(phase)` at the start of each phase, and keeps how it ended."""

    def __init__(self, hook: Callable[[Phase], object], ended: list[tuple[TraceOutcome, str | None]]) -> None:
        self.trace_id, self.span_id = "0" * 31 + "1", "0" * 15 + "1"
        self.adopted: list[str] = []
        self._hook, self._ended = hook, ended

    def adopt(self, traceparent: str) -> None:
        self.adopted.append(traceparent)
        self.trace_id = traceparent[3:35]

    @contextmanager
    def _phase(self, phase: Phase) -> Any:
        self._hook(phase)
        yield

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        return self._phase(phase)  # type: ignore[no-any-return]

    @contextmanager
    def child(self, name: str) -> Any:
        yield

    def annotate(self, **attributes: str | int | bool | None) -> None:
        pass

    def end(self, outcome: TraceOutcome, code: str | None = None) -> None:
        self._ended.append((outcome, code))


class HookTracer:
    """A `Tracer` of `HookTrace`s."""

    def __init__(self, hook: Callable[[Phase], object] = lambda phase: None) -> None:
        self.hook = hook
        self.traces: list[HookTrace] = []
        self.ended: list[tuple[TraceOutcome, str | None]] = []

    def start_request(self) -> HookTrace:
        self.traces.append(HookTrace(self.hook, self.ended))
        return self.traces[-1]


def at_once(coroutine: Any) -> None:
    """Run a coroutine that has nothing to wait for, from synchronous code."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")


def lifecycle(audit: MemoryAudit) -> list[tuple[str, str | None, int | None]]:
    """What the audit says of the broker's own life: event, id, generation."""
    return [
        (event.event, event.principal_id, event.generation)
        for event in audit.events
        if isinstance(event, LifecycleEvent)
    ]
