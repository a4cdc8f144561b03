"""A second host: its own real Chromium, in through the same door."""

import math
from typing import Any

import pytest
import trio
from tabwarden.actions import parse_arguments
from tabwarden.authority.projection import project
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser import CdpTab

from tests.browser.agent import Call
from tests.browser.host_contract.embedder import Chromium, SmallBrowser, own_chromium
from tests.browser.site import redirect

PAGE = """<title>The shop</title><h1>Shop</h1>
<button id=buy onclick="this.textContent = 'bought ' + event.isTrusted">buy</button>
<input id=name> <a id=go href=/next>on</a>"""


class Embedder:
    """The small browser with two tabs, the second one in front, and an agent's calls on it."""

    def __init__(
        self, chromium: Chromium, browser: SmallBrowser, tabs: list[CdpTab], targets: list[str]
    ) -> None:
        self.chromium = chromium
        self.browser = browser
        self.back, self.front = tabs
        self.targets = targets
        self.adapters = browser.adapters()

    async def call(self, action: str, call: Call | None = None, /, **arguments: Any) -> Any:
        spec, parsed = parse_arguments(action, arguments)
        return project(spec, await self.adapters[action](parsed, call or Call(action)))

    async def fails(self, action: str, call: Call | None = None, /, **arguments: Any) -> Code:
        with pytest.raises(ActionError) as caught:
            await self.call(action, call, **arguments)
        return caught.value.code


@pytest.fixture
async def embedder(nursery, site, tmp_path):
    site.pages.update(
        {"/": PAGE, "/next": "<title>Next</title>next", "/away": redirect(site.url(host="localhost"))}
    )
    async with own_chromium(tmp_path / "profile") as chromium:
        channels = [await chromium.open_tab(), await chromium.open_tab()]
        tabs = [await CdpTab.attach(nursery, channel) for channel in channels]
        with trio.fail_after(30):
            while tabs[0].in_front or not tabs[1].in_front:
                await tabs[0]._tabs.change()
        browser = SmallBrowser(tabs, {"127.0.0.1"})
        yield Embedder(chromium, browser, tabs, [channel.target_id for channel in channels])


async def test_sessions_navigate_read_and_click(embedder, site):
    call = Call("navigate")
    assert await embedder.call("navigate", call, url=site.url()) == {"completed": True}
    assert call.effects == ["begin", "done"]
    assert await embedder.call("sessions") == [
        {"id": embedder.back.session_id, "title": "", "foreground": False},
        {"id": embedder.front.session_id, "title": "The shop", "foreground": True},
    ]
    assert (await embedder.call("read"))["text"] == "Shop\nbuy on"
    call = Call("click")
    assert await embedder.call("click", call, selector="#buy") == {"completed": True}
    assert (call.effects, call.trace.children) == (["begin", "done"], ["cdp.input"])
    assert (await embedder.call("read"))["text"] == "Shop\nbought true on"
    await embedder.call("type", selector="#name", text="Ada")
    controls = (await embedder.call("inspect"))["controls"]
    assert [control.get("value") for control in controls] == [None, "Ada", None]
    assert await embedder.call("click", selector="#go") == {"completed": True}
    assert (await embedder.call("read"))["text"] == "next"
    await embedder.call("back")
    assert (await embedder.call("read"))["text"].startswith("Shop")
    await embedder.call("reload")
    assert (await embedder.call("read"))["text"] == "Shop\nbuy on"


async def test_a_tab_behind_is_read_and_not_acted_upon(embedder, site):
    behind = embedder.back.session_id
    await embedder.call("navigate", sessionId=behind, url=site.url())
    assert (await embedder.call("read", sessionId=behind))["text"].startswith("Shop")
    assert await embedder.fails("click", sessionId=behind, selector="#buy") is Code.CONFLICT
    await embedder.chromium.call("Target.activateTarget", targetId=embedder.targets[0])
    with trio.fail_after(30):
        while not embedder.back.in_front:
            await embedder.back._tabs.change()
    await embedder.call("click", sessionId=behind, selector="#buy")
    embedder.browser.interactive = False
    assert await embedder.fails("click", sessionId=behind, selector="#buy") is Code.TARGET_DENIED


async def test_only_allowed_addresses(embedder, site):
    assert await embedder.fails("navigate", url=site.url(host="localhost")) is Code.DESTINATION_DENIED
    assert await embedder.fails("navigate", url=site.url("/away")) is Code.DESTINATION_DENIED
    assert site.asked == ["GET /away"]  # the redirect was not followed
    assert await embedder.fails("read") is Code.DESTINATION_DENIED  # about:blank
    await embedder.call("navigate", url=site.url())
    embedder.browser.allowed_hosts.clear()
    for action, arguments in {"read": {}, "click": {"selector": "#buy"}, "reload": {}}.items():
        assert await embedder.fails(action, **arguments) is Code.DESTINATION_DENIED


async def test_a_capture_is_held_to_what_the_tab_shows_and_to_what_the_host_says(embedder, site):
    await embedder.call("navigate", url=site.url())
    captured = embedder.browser.get_context(None)
    assert embedder.browser.context_current(captured.token)
    await embedder.call("reload")
    assert not embedder.browser.context_current(captured.token)
    embedder.browser.get_context = lambda session_id: captured  # a host that mixes up its captures
    embedder.adapters = embedder.browser.adapters()
    assert await embedder.fails("read") is Code.STALE
    embedder.browser.context_current = lambda token: True
    embedder.adapters = embedder.browser.adapters()
    for action, arguments in {
        "read": {},
        "click": {"selector": "#buy"},
        "navigate": {"url": site.url()},
    }.items():
        call = Call(action)
        assert await embedder.fails(action, call, **arguments) is Code.STALE
        assert call.effects == []


async def test_the_host_s_own_reasons_are_looked_at_between_two_steps(embedder, site):
    """A click goes through some twenty CDP commands: at each of them the host may say no."""
    await embedder.call("navigate", url=site.url())
    page_current = embedder.browser.context_current
    asked = 0

    def judge_with(limit: float) -> None:
        def current(token: Any, /) -> bool:
            nonlocal asked
            asked += 1
            return asked <= limit and page_current(token)

        embedder.browser.context_current = current
        embedder.adapters = embedder.browser.adapters()

    judge_with(math.inf)
    await embedder.call("click", selector="#buy")
    assert asked > 12
    for limit in range(1, 12, 2):
        asked = 0
        judge_with(limit)
        call = Call("click")
        assert await embedder.fails("click", call, selector="#buy") is Code.STALE
        assert "done" not in call.effects
        assert asked == limit + 1  # the first no is the last question


async def test_a_policy_that_changes_during_a_click(embedder, site):
    async def slow() -> Any:
        embedder.browser.policy_version += 1
        return 200, {}, "slow"

    site.pages["/next"] = slow
    await embedder.call("navigate", url=site.url())
    call = Call("click")
    assert await embedder.fails("click", call, selector="#go") is Code.STALE
    assert call.effects == ["begin", "done"]


async def test_a_tab_that_is_closed_ends_what_is_under_way(embedder, site, nursery):
    never = trio.Event()

    async def hang() -> Any:
        await never.wait()
        return 200, {}, ""

    site.pages["/never"] = hang
    ended: list[Code] = []

    async def go() -> None:
        ended.append(await embedder.fails("navigate", url=site.url("/never")))

    with trio.fail_after(60):
        async with trio.open_nursery() as inner:
            inner.start_soon(go)
            await site.wait_asked("GET /never")
            await embedder.chromium.call("Target.closeTarget", targetId=embedder.targets[1])
    assert ended == [Code.SESSION_GONE]
    assert await embedder.fails("read", sessionId=embedder.front.session_id) is Code.SESSION_GONE


async def test_a_page_that_does_not_answer_is_not_attached_to(nursery):
    class Nothing:
        async def receive(self) -> bytes | None:
            return None

        async def send(self, message: bytes) -> None: ...

        async def aclose(self) -> None: ...

    with pytest.raises(ActionError) as caught:
        await CdpTab.attach(nursery, Nothing())
    assert caught.value.code is Code.SESSION_GONE
