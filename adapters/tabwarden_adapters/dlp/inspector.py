"""The inspector: looks through text before it goes on, and says what it is.

What cannot be looked through to its end is `incomplete`, and that is denied: before the catalogue is loaded,
when a text is too long or takes too long, and when a detector fails.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio
from tabwarden.model import Caller

from tabwarden_adapters.dlp.catalogue import Catalogue, Kingfisher
from tabwarden_adapters.dlp.corporate import NO_RULES, CorporateRules
from tabwarden_adapters.dlp.detecting import prepare
from tabwarden_adapters.dlp.findings import Inspection, denied, masked
from tabwarden_adapters.dlp.judging import UNFINISHED, judge
from tabwarden_adapters.dlp.looking import Seen, look

FROM_PAGE: Final = "from-page"

MayRead = Callable[[Caller], bool]
LoadCatalogue = Callable[[], Catalogue]


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionLimits:
    """Bounds of one inspection."""

    characters: int = 400_000  # three times the largest reply
    seconds: float = 3.0  # of the ten that an action has
    wait_for_catalogue_s: float = 6.0  # the same; loading takes three seconds of a core and more
    at_once: int = 2  # threads; whoever waits for one is on the clock too
    inline_characters: int = 512  # titles and labels: a hop to a thread costs more than they do


class ContentInspector:
    """Implements `MaskingInspector`. `start_inspector` makes one and loads it.

    `may_read_sensitive` says whether `allowSensitiveRead` holds for a caller: only then, and only from pages,
    does a text pass in which there is nothing but what rules call sensitive. One that raises allows nothing.
    """

    def __init__(
        self,
        rules: CorporateRules = NO_RULES,
        *,
        may_read_sensitive: MayRead | None = None,
        limits: InspectionLimits | None = None,
    ) -> None:
        self._rules = rules
        self._may_read = may_read_sensitive
        self._limits = limits or InspectionLimits()
        self._catalogue: Catalogue | None = None
        self._settled = trio.Event()  # loaded, or known never to be
        self._threads = trio.CapacityLimiter(self._limits.at_once)

    @property
    def loaded(self) -> bool:
        """Whether texts can be looked through."""
        return self._catalogue is not None

    async def settled(self) -> bool:
        """Wait until the catalogue is loaded, or known never to be: `loaded`."""
        await self._settled.wait()
        return self.loaded

    def use(self, rules: CorporateRules) -> None:
        """From now on these rules hold, for inspections under way too. Call it from trio's thread."""
        self._rules = rules

    def looks_at(self, direction: str) -> bool:
        """Whether a rule names this direction: in one that is looked at only where rules ask for it."""
        return self._rules.ask_for(direction)

    async def load(self, make: LoadCatalogue = Kingfisher) -> None:
        """Load the catalogue in a thread. It does not raise: when it fails, every text stays `incomplete`."""
        try:
            # When it is given up, the thread compiles to its end and nobody takes what it made.
            self._catalogue = await trio.to_thread.run_sync(_made, make, abandon_on_cancel=True)
        finally:
            self._settled.set()

    async def examine(self, text: str, *, direction: str, caller: Caller | None = None) -> Inspection:
        """What `text` is on its way in `direction`. Raises nothing of its own."""
        if len(text) > self._limits.characters:
            await trio.lowlevel.checkpoint()
            return UNFINISHED
        with trio.move_on_after(self._limits.wait_for_catalogue_s):
            await self._settled.wait()
        if self._catalogue is None:
            return UNFINISHED
        with trio.move_on_after(self._limits.seconds):
            return await self._examined(text, direction, caller, self._catalogue)
        return UNFINISHED

    async def inspect(self, text: str, *, direction: str, caller: Caller | None = None) -> str | None:
        """The class of what this caller may read, None for clean text.

        Raises `ActionError` (`content-denied`) with the class as its rule, for instance `dlp.credential`; for
        what policy masks too: whoever can do with a masked text asks for `mask`.
        """
        found = _passing(await self.examine(text, direction=direction, caller=caller))
        if found.masks:
            raise denied(found.masks[0].kind)
        return next(iter(found.classes), None)

    async def mask(
        self,
        text: str,
        *,
        direction: str,
        caller: Caller | None = None,
        start: int = 0,
        end: int | None = None,
    ) -> str:
        """The characters from `start` to before `end`, masked where policy says so (`findings.masked`); all
        of `text` is looked through. Raises as `inspect` for everything else."""
        found = _passing(await self.examine(text, direction=direction, caller=caller))
        return masked(text, found.masks, start, end)

    async def _examined(
        self, text: str, direction: str, caller: Caller | None, catalogue: Catalogue
    ) -> Inspection:
        while True:
            rules = self._rules
            seen = await self._look(text, direction, catalogue, rules)
            if seen is None:
                return UNFINISHED
            # Rules that came meanwhile hold: no answer is better than they allow.
            if rules is self._rules:
                sensitive = direction == FROM_PAGE and self._sensitive(caller)
                return judge(seen.built_in, seen.corporate, rules, direction, sensitive_read=sensitive)

    async def _look(
        self, text: str, direction: str, catalogue: Catalogue, rules: CorporateRules
    ) -> Seen | None:
        work = partial(look, text, direction, catalogue, rules, self._limits.seconds)
        if len(text) <= self._limits.inline_characters and rules.quick:
            await trio.lowlevel.checkpoint()
            return work()
        # A look that takes too long is left to itself, and holds its place among the threads until it ends.
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)

    def _sensitive(self, caller: Caller | None) -> bool:
        if caller is None or self._may_read is None:
            return False
        try:
            return self._may_read(caller) is True
        except Exception:
            return False


def start_inspector(
    nursery: trio.Nursery,
    rules: CorporateRules = NO_RULES,
    *,
    may_read_sensitive: MayRead | None = None,
    limits: InspectionLimits | None = None,
    make: LoadCatalogue = Kingfisher,
) -> ContentInspector:
    """An inspector whose catalogue loads in the background from now on, as long as the nursery is there."""
    inspector = ContentInspector(rules, may_read_sensitive=may_read_sensitive, limits=limits)
    nursery.start_soon(inspector.load, make)
    return inspector


def _made(make: LoadCatalogue) -> Catalogue | None:
    try:
        prepare()
        return make()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic in native code is no Exception
        return None


def _passing(found: Inspection) -> Inspection:
    if not found.passes:
        raise denied(found.classes[0])
    return found
