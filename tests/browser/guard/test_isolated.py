"""A browser context for each grant: what agents see of each other and of the person, and how it ends."""

import pytest
import trio
import trio.testing
from tabwarden.errors import Code
from tabwarden.model import AgentEvent, AuditOutcome, LifecycleEvent
from tabwarden_adapters.browser import Egress, GrantEnds, HostCounts, guarded_chromium
from tabwarden_adapters.browser.cdp.generated import page, runtime, target

from tests.browser.guard.agents import GuardedAgent, Rules
from tests.browser.site import redirect
from tests.support.fakes import MemoryAudit


@pytest.fixture
def rules():
    return Rules()


@pytest.fixture
def counts():
    return HostCounts()


@pytest.fixture
async def guarded(nursery, rules, counts):
    # A page of these tests opens a popup without a person's click.
    flags = ("--disable-popup-blocking",)
    async with guarded_chromium(nursery, rules, lambda: 1, counters=counts, extra_flags=flags) as browser:
        yield browser


async def own(guarded, agent):
    """The agent's own tabs."""
    return (await guarded.guard.context(agent.caller)).view.own()


async def evaluate(tab, expression, *, gesture=False):
    found = await tab.session.call(
        runtime.evaluate(
            expression=expression, await_promise=True, return_by_value=True, user_gesture=gesture
        )
    )
    return found.result.value


async def test_each_agent_has_tabs_of_its_own_and_sees_what_policy_shows_of_the_person(guarded, rules, site):
    host = f"127.0.0.1:{site.port}"
    site.pages.update({"/": "<title>Home</title>home", "/mine": "<title>Mine</title>mine"})
    one, two = GuardedAgent("one", guarded.actions), GuardedAgent("two", guarded.actions)
    rules.pages["one"] = {host}
    root = guarded.chromium.connection.root
    first = (await one.call("sessions"))[0]["id"]
    (other,) = await two.call("sessions")
    assert other["foreground"]
    assert other["id"] != first
    assert await one.call("sessions") == [{"id": first, "title": "", "foreground": True}]
    # The person goes to a page that one agent may see: it may read it, and do nothing more.
    people = [info for info in (await root.call(target.get_targets())).target_infos if info.type == "page"]
    person = next(info for info in people if info.browser_context_id not in guarded.guard._by_context)
    session = guarded.guard._inventory.by_target(person.target_id)
    await session.session.call(page.navigate(url=site.url("/mine")))
    while not session.document.loaded:
        await session.change(session.version)
    listed = {tab["id"]: tab for tab in await one.call("sessions")}
    assert listed[first]["foreground"]
    mine = next(key for key in listed if key != first)
    assert listed[mine] == {"id": mine, "title": "Mine", "foreground": False}
    assert (await one.call("read", sessionId=mine))["text"] == "mine"
    assert await one.fails("navigate", sessionId=mine, url=site.url()) is Code.TARGET_DENIED
    for action in ("back", "reload", "tabs:activate", "tabs:close"):
        assert await one.fails(action, sessionId=mine) is Code.TARGET_DENIED
    for session_id in (mine, first):
        assert await two.fails("read", sessionId=session_id) is Code.UNKNOWN_SESSION
    assert [tab["id"] for tab in await two.call("sessions")] == [other["id"]]
    # Cookies of the person are not the agent's.
    await evaluate(session, "document.cookie = 'login=person'")
    await one.call("navigate", url=site.url())
    assert await evaluate((await own(guarded, one))[0], "document.cookie") == ""


async def test_pages_and_what_they_load_are_two_lists(guarded, rules, counts, site):
    site.pages.update({"/": "<iframe src='/framed'></iframe>here", "/framed": "framed"})
    agent = GuardedAgent("one", guarded.actions)
    pages, loads, neither = (f"{name}.localhost:{site.port}" for name in ("a", "b", "c"))
    rules.pages["one"], rules.resources["one"] = {pages}, {loads}
    await agent.call("navigate", url=f"http://{pages}/")
    (tab,) = await own(guarded, agent)
    get = "fetch('http://%s/framed', {mode: 'no-cors'}).then(() => 1, () => 0)"
    assert await evaluate(tab, get % loads) == 1
    asked = len(site.asked)
    assert await evaluate(tab, get % neither) == 0
    assert await agent.fails("navigate", url=f"http://{loads}/") is Code.DESTINATION_DENIED
    await evaluate(tab, f"location.href = 'http://{loads}/'")
    assert (await agent.call("read"))["text"].endswith("here")
    site.pages["/hop"] = redirect(f"http://{neither}/")
    assert await agent.fails("navigate", url=f"http://{pages}/hop") is Code.DESTINATION_DENIED
    # Chromium asks for the first page's icon when it likes to.
    assert [line for line in site.asked[asked:] if line != "GET /favicon.ico"] == ["GET /hop"]
    assert counts.counts()["b.localhost", Egress.CONNECTED] >= 1
    # A frame of another site runs in another process: it is judged there as well.
    site.pages["/far"] = f"<script>{get % neither}.then(one => parent.postMessage(one, '*'))</script>"
    wait = "new Promise(done => onmessage = event => done(event.data))"
    frame = f"document.body.append(Object.assign(document.createElement('iframe'), {{src: 'http://{loads}/far'}}))"
    assert await evaluate(tab, f"{frame}, {wait}") == 0


async def test_private_addresses_need_to_be_named(guarded, rules, site):
    site.pages["/"] = "inside"
    agent = GuardedAgent("one", guarded.actions)
    rules.pages["one"] = {f"127.0.0.1:{site.port}"}
    rules.patterns = {f"{host}:{site.port}" for host in ("a.localhost", "127.0.0.2", "[::1]")}
    for host in ("a.localhost", "127.0.0.2", "[::1]", "0x7f.2"):
        assert await agent.fails("navigate", url=site.url("/", host)) is Code.DESTINATION_DENIED
        assert await agent.fails("tabs:create", url=site.url("/", host)) is Code.DESTINATION_DENIED
    await agent.call("navigate", url=site.url())
    # A page gets no further: its own request is stopped by the proxy.
    (tab,) = await own(guarded, agent)
    get = f"fetch('{site.url('/x', 'a.localhost')}', {{mode: 'no-cors'}}).then(() => 1, () => 0)"
    assert await evaluate(tab, get) == 0
    assert site.asked.count("GET /x") == 0
    guarded.guard.protect(site.port)
    assert await agent.fails("navigate", url=site.url()) is Code.DESTINATION_DENIED
    assert await evaluate(tab, "fetch('/y').then(() => 1, () => 0)") == 0
    assert "GET /y" not in site.asked


async def test_tabs_that_an_action_opens_are_named_and_bound(guarded, rules, site):
    site.pages.update({"/": "<script>onload = () => open('/popup')</script>here", "/popup": "popped"})
    agent, other = GuardedAgent("one", guarded.actions), GuardedAgent("two", guarded.actions)
    rules.pages["one"] = {f"127.0.0.1:{site.port}"}
    # In the background: a capture of the foreground ends when the popup takes the front.
    first = (await agent.call("sessions"))[0]["id"]
    await agent.call("tabs:create")
    result = await agent.call("navigate", sessionId=first, url=site.url())
    (opened,) = result["openedSessions"]
    await site.wait_asked("GET /popup")
    grant = await guarded.guard.context(agent.caller)
    popup = next(tab for tab in grant.view.own() if tab.id == opened)
    assert popup.standing is not None
    while popup.document.url != site.url("/popup") or not popup.document.loaded:
        await popup.change(popup.version)
    assert (await agent.call("read", sessionId=opened))["text"] == "popped"
    assert opened not in {tab["id"] for tab in await other.call("sessions")}
    created = await agent.call("tabs:create", url=site.url("/popup"))
    assert set(created) == {"completed", "sessionId"}


async def test_the_end_of_a_grant_is_the_end_of_its_context(guarded, rules, site):
    site.pages["/"] = "<script>onpagehide = () => navigator.sendBeacon('/late')</script>here"
    one, two = GuardedAgent("one", guarded.actions), GuardedAgent("two", guarded.actions)
    for agent in (one, two):
        rules.pages[agent.caller.principal_id] = {f"127.0.0.1:{site.port}"}
        await agent.call("navigate", url=site.url())
    grant = await guarded.guard.context(one.caller)
    (tab,) = grant.view.own()
    audit = MemoryAudit()
    ends = GrantEnds(audit, guarded.guard)
    moment = {"wall_ms": 1, "boot_ms": 1, "principal_id": "one"}
    ends.note(LifecycleEvent(event="principal-issued", generation=1, **moment))
    assert await guarded.guard.context(one.caller) is grant  # the same grant: nothing ends
    ends.note(LifecycleEvent(event="principal-revoked", generation=1, **moment))
    await tab.session.wait_ended()
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", grant.proxy.port)
    assert "POST /late" not in site.asked
    assert len(await two.call("sessions")) == 1
    # A new credential for the same principal begins with nothing of the old one.
    fresh = await guarded.guard.context(one.caller)
    assert fresh is not grant
    assert fresh.context_id != grant.context_id
    ends.note(LifecycleEvent(event="principal-issued", generation=2, **moment))
    assert fresh.ended
    event = AgentEvent(outcome=AuditOutcome.AUTHORIZED, request_id="r", wall_ms=1, boot_ms=1)
    await ends.admit(event).durable()
    await ends.flush()
    ends.note(LifecycleEvent(event="revoked", wall_ms=1, boot_ms=1))
    assert await two.fails("sessions") is Code.SHUTTING_DOWN
    assert len(audit.events) == 5


async def test_calls_of_one_agent_share_one_context_and_a_cancelled_one_leaves_none_behind(guarded):
    agent = GuardedAgent("one", guarded.actions)
    lists = []

    async def ask():
        lists.append(await agent.call("sessions"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert [tabs == lists[0] for tabs in lists] == [True] * 5
    other = GuardedAgent("two", guarded.actions)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other.call, "sessions")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert len(await other.call("sessions")) == 1
    assert len(guarded.guard._by_context) == 2


async def test_a_browser_that_has_gone_is_told(guarded):
    agent = GuardedAgent("one", guarded.actions)
    await guarded.chromium.connection.aclose()
    assert await agent.call("sessions") == []
    assert (await agent.call("application:state"))["ready"] is False
    assert await agent.fails("read") is Code.UNKNOWN_SESSION


async def test_a_click_acts_in_the_agents_own_window_and_names_the_popup(guarded, rules, site):
    site.pages.update({"/": "<a id=out href='/popup' target=_blank>out</a>", "/popup": "popped"})
    agent = GuardedAgent("one", guarded.actions)
    rules.pages["one"] = {f"127.0.0.1:{site.port}"}
    await agent.call("navigate", url=site.url())
    result = await agent.call("click", selector="#out")
    assert result["completed"]
    (opened,) = result["openedSessions"]
    assert opened in {tab["id"] for tab in await agent.call("sessions")}
    grant = await guarded.guard.context(agent.caller)
    assert [tab.standing is not None for tab in grant.view.own()] == [True, True]
