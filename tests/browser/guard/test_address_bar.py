"""The measured rule that tells a person's navigation from all others, on the events that Chromium sends."""

from contextlib import asynccontextmanager

import pytest
from tabwarden_adapters.browser.address_bar import AddressBar
from tabwarden_adapters.browser.cdp import Connection
from tabwarden_adapters.browser.cdp.generated import target
from tabwarden_adapters.browser.tab import Tab

from tests.browser.scripted import ScriptedTransport

URL = "http://there.test/"
FRAME = {
    "id": "T",
    "url": URL,
    "domainAndRegistry": "there.test",
    "securityOrigin": "http://there.test",
    "mimeType": "text/html",
    "secureContextType": "InsecureScheme",
    "crossOriginIsolatedContextType": "NotIsolated",
    "gatedAPIFeatures": [],
}


class Watched:
    """A tab, its address bar, and Chromium's side of both."""

    def __init__(self, transport: ScriptedTransport, connection: Connection) -> None:
        self.transport = transport
        session = connection.session("S")
        assert session is not None
        self.tab = Tab("id", "T", session, None)
        self.taken = 0
        self.bar = AddressBar(self.tab, self._took)
        self.tab.prepare(paused=False, ended=lambda: None, ready=lambda: None)
        self.bar.begin()

    def _took(self) -> None:
        self.taken += 1

    def say(self, method, **params):
        self.transport.say(method=method, params=params, sessionId="S")

    async def hear(self, method):
        """The next command of this name."""
        while (message := await self.transport.heard())["method"] != method:
            pass
        return message

    async def told(self):
        """Return when everything that was said so far has been noted."""
        seen = self.tab.dialogs_dismissed
        self.say(
            "Page.javascriptDialogOpening",
            url="",
            frameId="T",
            message="",
            type="alert",
            hasBrowserHandler=False,
        )
        while self.tab.dialogs_dismissed == seen:
            await self.tab.change(self.tab.version)

    def begin(self, *, kind="differentDocument", gesture=True, by_page=False):
        """A navigation as far as its request."""
        if by_page:
            self.say(
                "Page.frameRequestedNavigation", frameId="T", reason="x", url=URL, disposition="currentTab"
            )
        self.say("Page.frameStartedNavigating", frameId="T", url=URL, loaderId="L", navigationType=kind)
        self.say("Network.requestWillBeSent", requestId="L", loaderId="L", hasUserGesture=gesture)

    async def arrive(self, transition):
        """Its end: the document, and what history says of it when it is asked."""
        self.say("Page.frameNavigated", frame={**FRAME, "loaderId": "L"}, type="Navigation")
        message = await self.hear("Page.getNavigationHistory")
        entry = {"id": 1, "url": URL, "userTypedURL": URL, "title": "", "transitionType": transition}
        self.transport.say(id=message["id"], result={"currentIndex": 0, "entries": [entry]}, sessionId="S")
        await self.told()


@asynccontextmanager
async def watching(nursery):
    transport = ScriptedTransport()
    connection = Connection(transport)
    await nursery.start(connection.run)
    with connection.root.subscribe(target.AttachedToTarget) as events:
        transport.attach("S", "T")
        await events.__anext__()
    yield Watched(transport, connection)
    await connection.aclose()


async def test_a_typed_address_takes_the_tab_over(nursery):
    async with watching(nursery) as watched:
        watched.begin()
        await watched.told()
        assert watched.bar.navigating
        await watched.arrive("typed")
        assert watched.taken == 1
        assert not watched.bar.navigating
        assert list(watched.bar.origins) == ["http://there.test"]
        watched.bar.end()
        assert (await watched.hear("Network.disable"))["sessionId"] == "S"


@pytest.mark.parametrize("transition", ["link", "auto_bookmark", "form_submit", "reload"])
async def test_what_history_does_not_call_typed_does_not(nursery, transition):
    async with watching(nursery) as watched:
        watched.begin()
        await watched.arrive(transition)
        assert watched.taken == 0


@pytest.mark.parametrize(
    "navigation",
    [
        {"gesture": False},
        {"by_page": True},
        {"kind": "reload"},
        {"kind": "historyDifferentDocument"},
        {"kind": "sameDocument"},
    ],
)
async def test_anything_else_is_held_before_it_leaves(nursery, navigation):
    async with watching(nursery) as watched:
        watched.begin(**navigation)
        await watched.told()
        assert not watched.bar.navigating
        watched.say("Page.frameNavigated", frame={**FRAME, "loaderId": "L"}, type="Navigation")
        await watched.told()
        assert watched.taken == 0


async def test_what_starts_during_an_action_of_ours_is_ours(nursery):
    """The event may come before the answer to our own command: nothing else tells them apart by then."""
    async with watching(nursery) as watched:
        watched.tab.claimed = True
        watched.begin()
        await watched.told()
        watched.tab.claimed = False
        assert not watched.bar.navigating
