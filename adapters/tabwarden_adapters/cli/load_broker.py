"""The broker's own phases during a load, a sample once a second over its administration socket."""

from collections.abc import Iterator
from pathlib import Path

import trio
from tabwarden.errors import TabwardenError
from tabwarden_observability import MAX_LISTED, FinishedRequest, FinishedSpan

from tabwarden_adapters.cli.trace_work import looking_at
from tabwarden_adapters.load import WHOLE

LOOK_S = 1.0  # looking costs the broker time as well
MOST_REQUESTS = 50_000  # of a run: their durations are kept until it ends


class BrokerPhases:
    """`durations` has nanoseconds by the name of a phase, and of the whole request. They are those of all
    agents, and of the newest requests at each look: a sample, when more come than are looked at."""

    def __init__(self, admin: Path, seconds: float) -> None:
        self.durations: dict[str, list[int]] = {}
        self._look = looking_at(admin)
        self._limit = max(1, min(MAX_LISTED, int(MOST_REQUESTS / max(seconds / LOOK_S, 1))))
        self._after: str | None = None

    async def begin(self) -> None:
        """Note where the run begins. Raises as `looking_at`'s looks do."""
        listed = await trio.to_thread.run_sync(self._look, 1, None)
        if listed.requests:
            self._after = listed.requests[-1].span_id

    async def watch(self) -> None:
        """Look until cancelled, or until the broker does not answer any more: the load says so itself."""
        while True:
            await trio.sleep(LOOK_S)
            if not await self.look():
                return

    async def look(self) -> bool:
        """Count the newest requests since the last look; False when the broker did not answer."""
        try:
            listed = await trio.to_thread.run_sync(
                self._look, self._limit, self._after, abandon_on_cancel=True
            )
        except TabwardenError:
            return False
        for request in listed.requests:
            self.add(request)
            self._after = request.span_id
        return True

    def add(self, request: FinishedRequest) -> None:
        """Count one request."""
        for span in _phases(request.phases):
            self.durations.setdefault(span.name, []).append(span.duration_ns)
        self.durations.setdefault(WHOLE, []).append(request.duration_ns)


def _phases(spans: tuple[FinishedSpan, ...]) -> Iterator[FinishedSpan]:
    for span in spans:
        if span.is_phase:
            yield span
        yield from _phases(span.children)
