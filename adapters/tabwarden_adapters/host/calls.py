"""Calls of the backend: each in a task that it cannot take down, with a time limit that it cannot hold up."""

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from tabwarden_adapters.host.errors import ControlError, ErrorCode
from tabwarden_adapters.host.leaving import leaving
from tabwarden_adapters.host.limits import HostLimits

Work = Callable[[], Awaitable[Any]]


class Calls:
    """All calls under way. A call that ignores its cancellation keeps its place until it ends after all."""

    def __init__(self, nursery: trio.Nursery, limits: HostLimits) -> None:
        self._nursery = nursery
        self._limits = limits
        self._running: set[_Call] = set()
        self.ended: ErrorCode | None = None
        """How all calls ended, and each one to come."""

    @property
    def waiting(self) -> int:
        """Questions that are before the person, or whose backend does not let go of them."""
        return sum(call.asks_person for call in self._running)

    async def run(self, work: Work, *, asks_person: bool = False) -> Any:
        """What `work` returns. Raises `ControlError`: `BUSY`, `DEADLINE`, `FAILURE`, or how all calls ended.

        Cancelling it (the engine went away) cancels the work.
        """
        if self.ended is not None:
            raise ControlError(self.ended)
        limits = self._limits
        if asks_person and self.waiting >= limits.waiting:
            raise ControlError(ErrorCode.BUSY)
        if len(self._running) >= limits.connections + limits.waiting:
            raise ControlError(ErrorCode.BUSY)  # only where a backend ignores cancellation
        call = _Call(work, asks_person)
        self._running.add(call)
        self._nursery.start_soon(self._task, call)
        try:
            with trio.move_on_after(limits.person_wait_s if asks_person else limits.answer_s):
                await call.over.wait()
            if not call.over.is_set():
                call.end(ErrorCode.DEADLINE)
                with trio.move_on_after(limits.cancel_grace_s):
                    await call.over.wait()
        finally:
            # Without effect on a call that is over; the peer's leaving comes through here.
            call.end(ErrorCode.CLOSING)
        if call.error is not None:
            raise ControlError(call.error)
        return call.value

    def end_all(self, code: ErrorCode) -> None:
        """End every call now, and each one to come, with `code`."""
        self.ended = self.ended or code
        for call in list(self._running):
            call.end(code)
            call.over.set()

    async def _task(self, call: "_Call") -> None:
        try:
            await call.run()
        finally:
            self._running.discard(call)


class _Call:
    __slots__ = ("_scope", "_work", "asks_person", "error", "over", "value")

    def __init__(self, work: Work, asks_person: bool) -> None:
        self._work = work
        self._scope = trio.CancelScope()
        self.asks_person = asks_person
        self.over = trio.Event()
        self.value: object = None
        self.error: ErrorCode | None = None

    def end(self, code: ErrorCode) -> None:
        """Cancel it; `code` is how it ended, unless it is over already."""
        if not self.over.is_set() and self.error is None:
            self.error = code
        self._scope.cancel()

    async def run(self) -> None:
        failed = True
        try:
            with self._scope:
                # A backend may come back from its cancellation as if nothing had happened: `error` stays.
                self.value = await self._work()
                failed = False
        except BaseException as error:
            if (onward := leaving(error)) is not None:
                raise onward from None
        finally:
            if failed and self.error is None:
                self.error = ErrorCode.FAILURE
            self.over.set()
