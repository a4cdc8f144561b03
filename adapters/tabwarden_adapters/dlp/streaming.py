"""Text that comes in pieces: held back until what is released cannot be the beginning of a finding."""

from typing import Final

from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller

from tabwarden_adapters.dlp.findings import RULE, Inspection, denied, masked
from tabwarden_adapters.dlp.folding import fold
from tabwarden_adapters.dlp.inspector import ContentInspector

HELD: Final = 4096  # characters that show: more than the shortest match of any format
STEP: Final = 1024  # released at once, so that a stream in many small pieces is not looked through each time
LIMIT: Final = 20_000  # what an answer may have altogether


class HeldStream:
    """For one stream and one task at a time. After an error nothing more is released."""

    def __init__(
        self,
        inspector: ContentInspector,
        *,
        direction: str,
        caller: Caller | None = None,
        held: int = HELD,
        limit: int = LIMIT,
    ) -> None:
        self._inspector = inspector
        self._direction = direction
        self._caller = caller
        self._held = held
        self._limit = limit
        self._text = ""
        self._released = 0
        self._ended = False

    async def feed(self, piece: str) -> str:
        """Take the next piece; what may go on now, often nothing.

        Raises `ActionError`: `content-denied`, or `result-too-large` when there is more than `limit`.
        """
        self._take(piece)
        if len(self._text) - self._released < STEP + self._held:
            return ""
        ready = self._ready()
        if ready - self._released < STEP:
            return ""
        return await self._release(ready)

    async def finish(self) -> str:
        """The rest, once there is no more to come. Raises as `feed`."""
        self._take("")
        rest = await self._release(len(self._text))
        self._ended = True
        return rest

    def _take(self, piece: str) -> None:
        if self._ended:
            raise ActionError(Code.CONTENT_DENIED, rule=RULE + "ended")
        self._text += piece
        if len(self._text) > self._limit:
            self._ended = True
            raise ActionError(Code.RESULT_TOO_LARGE)

    def _ready(self) -> int:
        """Up to where the text is followed by enough that shows: what does not show must not push."""
        folded = fold(self._text)
        at = len(folded.text) - self._held
        return folded.origin(at, at + 1)[0] if at > 0 else 0

    async def _release(self, ready: int) -> str:
        # All of it, each time: what was released is the beginning of what comes. Until that is known to be
        # well, also when this is cancelled, nothing more is released.
        self._ended = True
        found = await self._inspector.examine(self._text, direction=self._direction, caller=self._caller)
        if not found.passes:
            raise denied(found.classes[0])
        self._ended = False
        return self._masked(found, ready)

    def _masked(self, found: Inspection, ready: int) -> str:
        ready = min((one.start for one in found.masks if one.start < ready < one.end), default=ready)
        begun, self._released = self._released, max(self._released, ready)
        return masked(self._text, found.masks, begun, self._released)
