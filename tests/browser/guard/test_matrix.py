"""Everything that a page can do to reach a host, from isolated contexts, on a real Chromium."""

from contextlib import closing, suppress

import trio
from tabwarden.model import Caller
from tabwarden_adapters.browser import ChromiumHost, Egress, NetworkGuard
from tabwarden_adapters.browser.cdp import Command
from tabwarden_adapters.browser.cdp.generated import page, runtime

from tests.browser.guard.kinds import KINDS, UNTRIED
from tests.browser.guard.world import CROSS_SITE, SITE, Deaf, Seen, World

STRICT, FRIEND = Caller("strict", 1), Caller("friend", 1)
BLOCKED, FRIENDS = "blocked.localhost", "friends.localhost"
KNOWN = {kind.name for kind in KINDS}
TRIED = KNOWN - UNTRIED


class Policy:
    """A `NetworkPolicy`: both may use the site, `FRIEND` its friends as well."""

    def endpoint_allowed(self, caller: Caller, host: str, port: int) -> bool:
        ends = (SITE, CROSS_SITE) if caller == STRICT else (SITE, CROSS_SITE, FRIENDS)
        return host.endswith(ends)

    endpoint_named = endpoint_allowed

    def destination_allowed(self, caller: Caller, href: str) -> bool:
        return self.endpoint_allowed(caller, href.split("/")[2].partition(":")[0], 80)

    resource_allowed = destination_allowed


class Log:
    """An `EgressCounters`, and what is told of refused requests: names of kinds by zone."""

    def __init__(self) -> None:
        self.connected = {BLOCKED: Seen(), FRIENDS: Seen()}
        self.refused = {BLOCKED: Seen(), FRIENDS: Seen()}

    def count(self, host: str, outcome: Egress) -> None:
        kinds = self.connected if outcome is Egress.CONNECTED else self.refused
        for zone, seen in kinds.items():
            if host.endswith(zone):
                seen.add(host)

    def stopped(self, refused) -> None:
        self.count(refused.host.partition(":")[0], Egress.HOST)


async def reach(guard: NetworkGuard, world: World, caller: Caller) -> None:
    """Do everything of the table in the caller's own context, and leave the page."""
    tab = (await guard.context(caller)).view.own()[0]
    await tab.session.call(page.navigate(url=world.url("/page")))
    while not tab.document.loaded:
        await tab.change(tab.version)
    await tab.session.call(Command("Page.getAppManifest", {}, dict))
    for script in world.gestures():
        await tab.session.call(runtime.evaluate(expression=script, user_gesture=True))
    await tab.session.call(runtime.evaluate(expression="fetch('/marker').then(() => 0)", await_promise=True))
    await world.asked.wait({"marker"})
    tab.session.post(page.close())


async def answer(stream: trio.SocketStream) -> None:
    """A friend's host: says yes to anything."""
    async with stream:
        if await stream.receive_some():
            with suppress(trio.BrokenResourceError):
                await stream.send_all(b"HTTP/1.1 200 -\r\nAccess-Control-Allow-Origin: *\r\n\r\n")


async def test_nothing_of_it_reaches_a_blocked_host(nursery, chromium, site):
    """One Chromium, the same page for two grants: one has the hosts that it reaches for on its list, the
    other has not. The list of what was tried shows that the zeros are not those of an idle page."""
    assert len(KNOWN) == len(KINDS) >= 60
    log = Log()
    guard = NetworkGuard(chromium, Policy(), counters=log, on_refused=log.stopped)
    await nursery.start(guard.run)
    base = await ChromiumHost.start(chromium, policy_version=lambda: 1, prepare=guard.prepare)
    person = base.tab(None)
    site.pages["/"] = "<title>mine</title>"
    await person.session.call(page.navigate(url=site.url()))
    friends = (await nursery.start(trio.serve_tcp, answer, 0))[0].socket.getsockname()[1]
    with closing(Deaf()) as blocked:
        async with trio.open_nursery() as both:
            for caller, zone, port in ((STRICT, BLOCKED, blocked.port), (FRIEND, FRIENDS, friends)):
                world = World(zone, port)
                world.port = (await nursery.start(trio.serve_tcp, world.serve, 0))[0].socket.getsockname()[1]
                both.start_soon(reach, guard, world, caller)
        assert await log.refused[BLOCKED].wait(TRIED) == set()
        assert await log.connected[FRIENDS].wait(TRIED) == set()
        guard.end_all()
        while len(base.tabs()) > 1:
            await base.tab_change()
        assert log.connected[BLOCKED].names == set()
        assert blocked.arrived() == (0, 0)
        # The person's own tab saw nothing of all this: it goes where it likes, past every proxy. And the
        # sockets that counted nothing do count.
        assert base.tab(None) is person
        assert person.document.url == site.url()
        await person.session.call(
            runtime.evaluate(
                expression=f"fetch('http://127.0.0.1:{blocked.port}/', {{signal: AbortSignal.timeout(500)}})"
                ".catch(() => 0)",
                await_promise=True,
            )
        )
        assert blocked.arrived()[0] >= 1
