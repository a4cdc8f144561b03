"""What an inspector sees beyond a window changes nothing of the window, in a real page."""

import pytest
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser import create_chromium_adapters

from tests.browser.agent import Agent
from tests.browser.site import Site


class Finder:
    """Implements `Inspector`: denies what has `word` in it."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.longest = 0

    async def inspect(self, text: str, *, direction: str, caller: object = None) -> str | None:
        self.longest = max(self.longest, len(text))
        if self.word in text:
            raise ActionError(Code.CONTENT_DENIED)
        return None


async def windows(agent: Agent) -> list[str]:
    out, offset = [], 0
    while offset is not None:
        window = await agent.call("read", offset=offset)
        out.append(window["text"])
        offset = window.get("nextOffset")
    return out


async def test_windows_are_the_same_and_no_cut_hides_anything(agent: Agent, site: Site) -> None:
    words = " ".join(f"word{number}" for number in range(4000))
    page = f"<p>{words}</p><p>\U0001f600 <b>emph</b>asis</p><pre>  kept\n  so </pre>" * 2
    site.pages["/long"] = f"<!doctype html>{page}"
    await agent.call("navigate", url=site.url("/long"))
    plain = await windows(agent)
    assert len(plain) > 6
    finder = Finder("no such word")
    agent.adapters = create_chromium_adapters(agent.host, destination_allowed=agent.allowed, inspect=finder)
    assert await windows(agent) == plain
    assert finder.longest == 10_000 + 2 * 4096
    finder.word = plain[0][-4:] + plain[1][:4]
    for offset in (0, 10_000):
        with pytest.raises(ActionError) as error:
            await agent.call("read", offset=offset)
        assert error.value.code is Code.CONTENT_DENIED
