"""The second look at what engines log: the detectors of the dlp room, loaded while the host runs already."""

from collections.abc import Callable

import trio
from tabwarden.errors import TabwardenError

from tabwarden_adapters.dlp import WITHHELD, Catalogue, Kingfisher, Scrubber

CHARACTERS = 200_000  # a long page; looking through it takes a second of a core
SECONDS = 1.5  # an engine waits two for its answer
AT_ONCE = 2  # threads


class NotLooked(TabwardenError):
    """The text was not looked through, so nobody may see it."""


class HostScrubber:
    """Implements the host's `Scrubber`. Raises `NotLooked` for a text that it cannot look through: until the
    detectors are loaded, when it is too long, or takes too long."""

    def __init__(self) -> None:
        self._scrub: Scrubber | None = None
        self._threads = trio.CapacityLimiter(AT_ONCE)

    async def load(self, make: Callable[[], Catalogue] = Kingfisher) -> bool:
        """Load the detectors in a thread, which takes some seconds of a core, and return whether that went
        well. Raises nothing of its own: without them every text stays withheld."""
        # When it is given up, the thread goes on to its end and nobody takes what it made.
        catalogue = await trio.to_thread.run_sync(_made, make, abandon_on_cancel=True)
        if catalogue is not None:
            self._scrub = Scrubber(catalogue, characters=CHARACTERS, seconds=SECONDS)
        return catalogue is not None

    async def __call__(self, text: str, /) -> str:
        """`text` with placeholders for secrets."""
        if self._scrub is None or len(text) > CHARACTERS:
            raise NotLooked
        scrubbed = await trio.to_thread.run_sync(
            self._scrub, text, abandon_on_cancel=True, limiter=self._threads
        )
        if scrubbed == WITHHELD and text != WITHHELD:
            raise NotLooked
        return scrubbed


def _made(make: Callable[[], Catalogue]) -> Catalogue | None:
    try:
        return make()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic in native code is no Exception
        return None
