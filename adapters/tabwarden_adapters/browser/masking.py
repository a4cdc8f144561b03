"""Paints over what must not be seen in a picture, in our own process, and only then encodes it.

Masks drawn in the page itself would be the page's to move, and a person's to wonder about.
"""

import base64
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import trio
from PIL import Image, ImageDraw, UnidentifiedImageError
from tabwarden.errors import ActionError, Code
from tabwarden.limits import PADDED_SIZES
from tabwarden.ports import CallContext, Inspector

from tabwarden_adapters.browser.shot import Region, Shot, ShownText
from tabwarden_adapters.browser.withholding import FROM_PAGE

MAX_PIXELS: Final = 4096 * 4096  # 48 MB decoded; a screen of 4K has half of it
MAX_SIDE: Final = 2048  # what a picture is scaled down to: more is not looked at
# What is left of the largest reply, in base64, for the pixels; the rest is the other fields.
MAX_BYTES: Final = (PADDED_SIZES[-1] - 2048) // 4 * 3
MASK: Final = (64, 64, 64)
QUALITIES: Final = (85, 60, 40)  # WebP; below, letters fall apart
SCALES: Final = (1.0, 0.75, 0.5, 0.35)
MEDIA: Final[dict[str, Literal["image/png", "image/webp"]]] = {"PNG": "image/png", "WEBP": "image/webp"}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that may leave. `image` is base64 of `media_type`; sizes in pixels; `masked` counts what was
    painted over: elements, frames and texts."""

    image: str = field(repr=False)
    media_type: Literal["image/png", "image/webp"]
    width: int
    height: int
    masked: int


class Painter:
    """Masks pictures, one at a time: each is some 50 MB while it is worked on."""

    def __init__(self, inspector: Inspector | None) -> None:
        self._inspector = inspector
        self._one = trio.CapacityLimiter(1)

    @property
    def wants_texts(self) -> bool:
        """Whether the texts of a picture are looked through."""
        return self._inspector is not None

    async def finish(self, shot: Shot, call: CallContext) -> Picture:
        """`shot` without what must not be seen.

        Raises `ActionError`: `content-denied` when something was found that is in no place that can be told,
        `result-too-large`, `failure` for a picture that is none; and whatever the inspector raised besides
        `content-denied`.
        """
        regions, hits = list(shot.regions), 0
        if self._inspector is not None:
            for found in await _found(self._inspector, shot.texts, call):
                regions += found
                hits += 1
        call.check()
        made = await trio.to_thread.run_sync(
            _paint, shot.png, regions, abandon_on_cancel=True, limiter=self._one
        )
        call.check()
        return Picture(*made, masked=shot.masked + hits)


async def _found(
    inspector: Inspector, texts: Sequence[ShownText], call: CallContext
) -> list[tuple[Region, ...]]:
    """The regions of each text in which something was found."""
    hits: list[tuple[Region, ...]] = []
    rest: list[str] = []
    for shown in texts:
        if await _finds(inspector, shown.text, call):
            if shown.regions is None:
                raise ActionError(Code.CONTENT_DENIED)
            hits.append(shown.regions)
        else:
            rest.append(shown.text)
    # What is spread over several texts is in no place that could be masked.
    if await _finds(inspector, "\n".join(rest), call) or await _finds(inspector, "".join(rest), call):
        raise ActionError(Code.CONTENT_DENIED)
    return hits


async def _finds(inspector: Inspector, text: str, call: CallContext) -> bool:
    if not text.strip():
        return False
    call.check()
    try:
        finding: object = await inspector.inspect(text, direction=FROM_PAGE, caller=call.caller)
    except ActionError as error:
        if error.code is not Code.CONTENT_DENIED:
            raise
        finding = error.code
    call.check()
    # Also a finding that policy lets pass as text: in a picture it is not asked for.
    return finding is not None


def _paint(png: bytes, regions: Iterable[Region]) -> tuple[str, Literal["image/png", "image/webp"], int, int]:
    try:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise ActionError(Code.RESULT_TOO_LARGE)
            image = opened.convert("RGB")
    except Image.DecompressionBombError:
        raise ActionError(Code.RESULT_TOO_LARGE) from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise ActionError(Code.FAILURE) from None
    draw = ImageDraw.Draw(image)
    for left, top, right, bottom in regions:
        # Both corners are painted; whole pixels outwards.
        box = (math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom))
        if box[2] >= box[0] and box[3] >= box[1]:
            draw.rectangle(box, fill=MASK)
    # Only now: scaling mixes neighbouring pixels.
    longest = max(image.size)
    if longest > MAX_SIDE:
        image = _scaled(image, MAX_SIDE / longest)
    for scale, kind, quality in _tries():
        smaller = image if scale == 1 else _scaled(image, scale)
        held = io.BytesIO()
        if kind == "PNG":
            smaller.save(held, kind)
        else:
            smaller.save(held, kind, quality=quality, method=2)
        if held.tell() <= MAX_BYTES:
            encoded = base64.b64encode(held.getvalue()).decode("ascii")
            return encoded, MEDIA[kind], smaller.width, smaller.height
    raise ActionError(Code.RESULT_TOO_LARGE)


def _tries() -> Iterator[tuple[float, str, int]]:
    yield 1.0, "PNG", 0
    for scale in SCALES:
        for quality in QUALITIES:
            yield scale, "WEBP", quality


def _scaled(image: Image.Image, by: float) -> Image.Image:
    size = (max(1, round(image.width * by)), max(1, round(image.height * by)))
    return image.resize(size, Image.Resampling.LANCZOS)
