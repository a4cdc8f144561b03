"""What a host hands over for a picture: pixels as they are on the screen, and what of them must not be seen.

Nothing here has been masked yet: `masking.py` does that, whoever the host is.
"""

from dataclasses import dataclass, field
from typing import Protocol

from tabwarden_adapters.browser.contract import CapturedContext, Operation

Region = tuple[float, float, float, float]  # left, top, right, bottom in pixels of the picture


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text that shows, as a person would read it in one piece, and all that it is drawn on.

    `regions` None: where it is drawn cannot be told.
    """

    text: str = field(repr=False)
    regions: tuple[Region, ...] | None


@dataclass(frozen=True, slots=True)
class Shot:
    """The pixels of one moment of one document, with the places of that very moment.

    `png`: at most the viewport. `regions`: what is masked in any case, for `masked` elements and frames.
    `texts`: every text in the picture outside of them; empty when none was asked for.
    """

    png: bytes = field(repr=False)
    regions: tuple[Region, ...]
    masked: int
    texts: tuple[ShownText, ...] = ()


class TakeShot(Protocol):
    """Take the pixels of the captured document, with what must not be seen of them. `texts`: whether the
    texts are wanted.

    Raises `ActionError`: `stale`, `session-gone`, `browser-management-busy` when the page does not come to
    rest, `target-denied` when it cannot be told where something is drawn, `result-too-large`.
    """

    async def __call__(self, captured: CapturedContext, texts: bool, operation: Operation, /) -> Shot: ...
