"""The host's Chromium: its port's file, and what is told of its targets."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.browser.cdp import CdpError, Connection, EventsLost, Oversized
from tabwarden_adapters.browser.hosted import MAX_PORT_FILE, PORT_FILE, HostedChromium, read_port
from tabwarden_adapters.cli.host_tabs import ChromiumTabs

from tests.browser.scripted import ScriptedTransport

WRITTEN = "34567\n/devtools/browser/1759f73f-b765-4b59-cec2-b19c82b0733f"
ORDINARY = "ordinary"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    folder = tmp_path / "profile"
    folder.mkdir(mode=0o700)
    return folder


def test_the_port_is_read_once_the_file_is_whole(profile: Path) -> None:
    assert read_port(profile) is None
    for size in range(len(WRITTEN)):
        (profile / PORT_FILE).write_text(WRITTEN[:size])
        assert read_port(profile) is None
    (profile / PORT_FILE).write_text(WRITTEN)
    assert read_port(profile) == 34567


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN.replace("34567", "0"),
        WRITTEN.replace("34567", "65536"),
        WRITTEN.replace("34567", "+9222"),
        WRITTEN.replace("34567", "09222"),
        WRITTEN.replace("browser", "page"),
        WRITTEN + "\n127.0.0.1",
        WRITTEN + " " * MAX_PORT_FILE,
    ],
)
def test_anything_else_is_no_port(profile: Path, text: str) -> None:
    (profile / PORT_FILE).write_text(text)
    assert read_port(profile) is None


def test_a_file_that_chromium_would_not_write_is_refused(profile: Path) -> None:
    real = profile / "elsewhere"
    real.write_text(WRITTEN)
    file = profile / PORT_FILE
    file.symlink_to(real)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_port(profile)
    file.unlink()
    os.link(real, file)
    with pytest.raises(ConfigurationError, match="not the file that it writes"):
        read_port(profile)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ConfigurationError, match="not the file that it writes"):
        read_port(profile)
    profile.chmod(0o755)
    with pytest.raises(ConfigurationError, match="open to other users"):
        read_port(profile)


class Browser:
    """The other side of the pipe: answers what it is asked, and tells of targets."""

    def __init__(self) -> None:
        self.transport = ScriptedTransport()
        self.default: str | None = ORDINARY
        self.refuses: set[str] = set()
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def answer(self) -> None:
        results = {
            "Target.createBrowserContext": {"browserContextId": "private"},
            "Target.createTarget": {"targetId": "new"},
        }
        while True:
            message = await self.transport.heard()
            method = message["method"]
            self.asked.append((method, message["params"]))
            if method in self.refuses:
                self.transport.say(id=message["id"], error={"code": -32000, "message": "no"})
                continue
            result = results.get(method, {})
            if method == "Target.getBrowserContexts" and self.default is not None:
                result = {"browserContextIds": [], "defaultBrowserContextId": self.default}
            self.transport.say(id=message["id"], result=result)

    def created(self, target_id: str, context: str | None, kind: str = "page") -> None:
        info = {"targetId": target_id, "type": kind, "title": "", "url": "", "attached": False}
        if context is not None:
            info["browserContextId"] = context
        self.transport.say(
            method="Target.targetCreated", params={"targetInfo": {**info, "canAccessOpener": False}}
        )


@asynccontextmanager
async def tabs_of(browser: Browser) -> AsyncIterator[ChromiumTabs]:
    async with trio.open_nursery() as nursery:
        connection = Connection(browser.transport)
        await nursery.start(connection.run)
        nursery.start_soon(browser.answer)
        tabs = ChromiumTabs(HostedChromium(connection.root, "Chrome/1", 1, ORDINARY))
        with trio.fail_after(20):
            await tabs.start()
            yield tabs
        nursery.cancel_scope.cancel()


async def test_every_target_that_was_told_before_the_question_is_in_the_answer() -> None:
    browser = Browser()
    async with tabs_of(browser) as tabs:
        assert ("Target.setDiscoverTargets", {"discover": True, "filter": [{}]}) in browser.asked
        for target_id, context in (("a", ORDINARY), ("b", "incognito"), ("c", None)):
            browser.created(target_id, context)
        assert await tabs.excluded() == ["b", "c"]
        browser.transport.say(method="Target.targetDestroyed", params={"targetId": "b"})
        assert await tabs.excluded() == ["c"]


@pytest.mark.parametrize("default", [None, "another"])
async def test_without_the_default_context_it_knows_nothing(default: str | None) -> None:
    browser = Browser()
    async with tabs_of(browser) as tabs:
        browser.default = default
        with pytest.raises(EventsLost):
            await tabs.excluded()


async def test_an_event_that_could_not_be_read_ends_all_knowledge() -> None:
    browser = Browser()
    async with tabs_of(browser) as tabs:
        browser.transport.say_raw(Oversized(b'{"method":"Page.loadEventFired","params":{'))
        assert await tabs.excluded() == []
        browser.transport.say_raw(Oversized(b'{"method":"Target.targetCreated","params":{"targetInfo":{'))
        for _ in range(2):
            with pytest.raises(EventsLost):
                await tabs.excluded()


@pytest.mark.parametrize("event", [{}, {"targetInfo": {"targetId": "b"}}])
async def test_an_event_of_another_shape_ends_all_knowledge(event: dict[str, Any]) -> None:
    browser = Browser()
    async with tabs_of(browser) as tabs:
        browser.transport.say(method="Target.targetCreated", params=event)
        with pytest.raises(CdpError):
            await tabs.excluded()


async def test_when_chromium_is_gone_it_knows_nothing_and_opens_nothing() -> None:
    browser = Browser()
    async with tabs_of(browser) as tabs:
        browser.transport.hang_up()
        await tabs._chromium.wait_ended()
        with pytest.raises(CdpError):
            await tabs.excluded()
        assert await tabs.open("https://a.test/", background=True) is False
        assert await tabs._chromium.open_private() is False


async def test_tabs_are_opened_in_ordinary_windows_and_private_ones_in_a_context_of_their_own() -> None:
    browser = Browser()
    async with tabs_of(browser) as tabs:
        assert await tabs.open("https://a.test/", background=True) is True
        assert browser.asked[-1] == ("Target.createTarget", {"url": "https://a.test/", "background": True})
        assert await tabs._chromium.open_private() is True
        assert browser.asked[-1][1]["browserContextId"] == "private"
        browser.refuses = {"Target.createTarget"}
        assert await tabs.open("https://a.test/", background=False) is False
        assert await tabs._chromium.open_private() is False
