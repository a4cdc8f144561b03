"""A stream's text, held back until what is around it has been looked through."""

from typing import Protocol

from tabwarden_adapters.ai.limits import HOLD_CHARACTERS, STEP_CHARACTERS


class LookAt(Protocol):
    """Looks through all of `text` and gives the characters from `start` to before `end` as they may go on.
    Raises when the text must not pass."""

    async def __call__(self, text: str, start: int, end: int, /) -> str: ...


class HeldText:
    """Text goes in as it arrives, and comes out once nothing that could make a secret of it is missing.

    Each look is at all of it from the beginning. A character comes out only by a look at which the `hold`
    characters after it were there already, or the end. So of a secret of up to `hold` characters, however it
    was cut, no character comes out. After a look that raised, or was cancelled, nothing ever comes out.
    """

    def __init__(self, look: LookAt, *, hold: int = HOLD_CHARACTERS, step: int = STEP_CHARACTERS) -> None:
        self._look = look
        self._hold = hold
        self._step = step
        self._text = ""
        self._released = 0
        self._seen = 0
        self._ended = False

    async def add(self, text: str) -> str:
        """What may go on now: often nothing. Looks once `step` characters have come together."""
        self._text += text
        if len(self._text) - self._seen < self._step:
            return ""
        return await self._release(len(self._text) - self._hold)

    async def finish(self) -> str:
        """The rest, once there is no more."""
        return await self._release(len(self._text))

    async def _release(self, end: int) -> str:
        if self._ended:
            raise RuntimeError("a look has failed, or was never finished")
        self._ended = True
        start, self._released = self._released, max(self._released, end)
        self._seen = len(self._text)
        out = await self._look(self._text, start, self._released)
        self._ended = False
        return out
