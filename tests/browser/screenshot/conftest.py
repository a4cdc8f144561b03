"""Pictures of a page of the test's own, taken as an agent would and looked at pixel by pixel."""

# Markup in lines of its own.
# ruff: noqa: E501

import base64
import io
from typing import Any

import pytest
from PIL import Image
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser import create_chromium_adapters
from tabwarden_adapters.browser.cdp.generated import page
from tabwarden_adapters.browser.masking import MASK

from tests.browser.agent import Agent, Call
from tests.browser.reading.probe import in_page
from tests.browser.site import Site

Colour = tuple[int, int, int]
# What a secret is painted in, and what is none: far from each other and from everything else on these pages.
SECRET: Colour = (255, 0, 0)
PLAIN: Colour = (0, 160, 0)
STYLE = """<!doctype html><style>html, body { margin: 0; background: white } .s { background: rgb(255, 0, 0) !important;
  color: rgb(255, 0, 0) !important; border: 0; outline: 0 } .p { background: rgb(0, 160, 0); color: rgb(0, 160, 0) }
  .s::placeholder { color: rgb(255, 0, 0) } .p { width: 300px; height: 30px }</style>"""


class Inspector:
    """Implements the port: whatever contains one of `words` is found, in the way that `finds` says."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.raises: Exception | None = ActionError(Code.CONTENT_DENIED)
        self.seen: list[str] = []

    async def inspect(self, text: str, *, direction: str, caller: Any = None) -> str | None:
        if direction == "to-page":
            return None  # the addresses of this test
        assert direction == "from-page"
        self.seen.append(text)
        if not any(word in text for word in self.words):
            return None
        if self.raises is not None:
            raise self.raises
        return "known"


class Look:
    """A picture: its result and its pixels."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.result = result
        self.image = Image.open(io.BytesIO(base64.b64decode(result["image"])))
        self.image.load()
        assert self.image.size == (result["width"], result["height"])
        self._rgb = self.image.convert("RGB")

    def near(self, colour: Colour, within: int = 60) -> int:
        """How many pixels are of about this colour."""
        return sum(
            count
            for count, pixel in self._rgb.getcolors(1 << 24)
            if all(abs(pixel[i] - colour[i]) <= within for i in range(3))
        )

    def tinged(self) -> int:
        """How many pixels have any of the secret's red in them."""
        return sum(count for count, (r, g, b) in self._rgb.getcolors(1 << 24) if r > g + 24 and r > b + 24)

    @property
    def covered(self) -> float:
        """Which part of the picture is mask."""
        return self.near(MASK, 0) / (self._rgb.width * self._rgb.height)


class Camera:
    """`show` a page, `take` a picture of it."""

    def __init__(self, agent: Agent, site: Site) -> None:
        self.agent = agent
        self.site = site

    def inspected(self, inspector: Any) -> None:
        """From now on text is looked through."""
        self.agent.adapters = create_chromium_adapters(
            self.agent.host, destination_allowed=self.agent.allowed, inspect=inspector
        )

    async def show(self, markup: str, path: str = "/page") -> None:
        self.site.pages[path] = STYLE + markup
        while True:
            try:
                await self.agent.call("navigate", url=self.site.url(path))
            except ActionError as error:
                if error.code is not Code.STALE:
                    raise  # stale: word of an earlier switch of tabs came in between
            else:
                return

    async def take(self, call: Call | None = None, **arguments: Any) -> Look:
        return Look(await self.agent.call("screenshot", call, **arguments))

    async def fails(self, call: Call | None = None, **arguments: Any) -> ActionError:
        try:
            await self.agent.call("screenshot", call, **arguments)
        except ActionError as error:
            return error
        raise AssertionError("a picture was taken")

    async def raw(self) -> "Look":
        """What the tab shows, unmasked."""
        taken = await self.tab.session.call(page.capture_screenshot(format="png"))
        width, height = Image.open(io.BytesIO(base64.b64decode(taken.data))).size
        return Look({"image": taken.data, "width": width, "height": height})

    async def js(self, expression: str) -> Any:
        return await in_page(self.agent, expression)

    @property
    def tab(self) -> Any:
        return self.agent.host._inventory.find(None)


@pytest.fixture
async def camera(agent, site):
    return Camera(agent, site)
