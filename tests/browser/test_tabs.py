"""Tabs: which there are, which one is in front, and what a capture of one is worth."""

from tabwarden.errors import Code
from tabwarden_adapters.browser import ChromiumHost
from tabwarden_adapters.browser.cdp.generated import page, runtime, target

from tests.browser.agent import Agent


async def until(agent, condition):
    """Wait for the inventory to be as `condition` says."""
    while not condition():
        await agent.host._inventory.change()


async def test_a_tab_keeps_its_id_for_its_life(agent, site):
    site.pages.update({"/": "<title>One\u202e  \ntitle</title>x", "/2": "<title>Two</title>y"})
    first = (await agent.call("sessions"))[0]
    assert first["foreground"]
    assert first["title"] == ""  # about:blank is no site: its title may be anybody's
    await agent.call("navigate", sessionId=first["id"], url=site.url())
    created = await agent.call("tabs:create", url=site.url("/2", "other.localhost"))
    assert created["completed"]
    second = created["sessionId"]
    assert await agent.call("sessions") == [
        {"id": first["id"], "title": "One title", "foreground": False},
        {"id": second, "title": "Two", "foreground": True},
    ]
    agent.forbidden.add("other.localhost")
    assert [tab["title"] for tab in await agent.call("sessions")] == ["One title", ""]
    for action in ("tabs:close", "tabs:activate", "read"):
        assert await agent.fails(action, sessionId=second) is Code.DESTINATION_DENIED
    agent.forbidden.remove("other.localhost")
    assert await agent.call("tabs:close", sessionId=second) == {"completed": True}
    for action in ("tabs:close", "tabs:activate", "read", "reload"):
        assert await agent.fails(action, sessionId=second) is Code.UNKNOWN_SESSION
    await until(agent, lambda: agent.host._inventory.foreground is not None)
    assert (await agent.call("sessions"))[0] == {"id": first["id"], "title": "One title", "foreground": True}
    assert await agent.fails("tabs:close", sessionId=first["id"]) is Code.CONFLICT
    assert await agent.fails("tabs:create", group="work") is Code.NOT_AVAILABLE
    assert await agent.fails("tabs:create", url=site.url("/", "localhost")) is Code.DESTINATION_DENIED
    site.pages["/hop"] = (302, {"Location": site.url("/", "localhost")}, "")
    assert await agent.fails("tabs:create", url=site.url("/hop")) is Code.DESTINATION_DENIED
    await until(
        agent,
        lambda: len(agent.host._inventory.tabs()) == 1 and agent.host._inventory.foreground is not None,
    )
    assert await agent.call("application:state") == {
        "ready": True,
        "policyVersion": 1,
        "activeTabId": first["id"],
        "tabCount": 1,
    }


async def test_switching_away_and_back_ends_foreground_captures_only(agent, site):
    site.pages.update({"/1": "one", "/2": "two"})
    await agent.call("navigate", url=site.url("/1"))
    one = (await agent.call("sessions"))[0]["id"]
    front = agent.host.get_context(None)
    two = (await agent.call("tabs:create", url=site.url("/2")))["sessionId"]
    back = agent.host.get_context(one)
    assert front.foreground
    assert not back.foreground
    assert not agent.host.context_current(front.token)
    assert (await agent.call("tabs:activate", sessionId=one)) == {"completed": True, "sessionId": one}
    assert not agent.host.context_current(front.token)
    assert agent.host.context_current(back.token)
    # What is in front by a person's hand is seen as well: another program stands for it here.
    inventory = agent.host._inventory
    front = agent.host.get_context(None)
    await inventory._connection.root.call(target.activate_target(target_id=inventory.find(two).target_id))
    await until(
        agent, lambda: inventory.foreground is inventory.find(two) and not inventory.find(one).visible
    )
    assert not agent.host.context_current(front.token)
    assert (await agent.call("read"))["text"] == "two"
    assert (await agent.call("read", sessionId=one))["text"] == "one"
    # An intended navigation keeps the activation, a reload in the background does not bring it forward.
    front = agent.host.get_context(None)
    await agent.call("navigate", url=site.url("/1"))
    assert agent.host.get_context(None).token.activation == front.token.activation
    await agent.call("reload", sessionId=one)
    assert inventory.foreground is inventory.find(two)


async def test_popups_are_known_before_they_run(agent, site):
    site.pages.update(
        {"/": "<body onclick=\"window.open('/popup')\">here", "/popup": "<title>Popup</title>popped"}
    )
    await agent.call("navigate", url=site.url())
    opener = agent.host._inventory.find(None)
    await opener.session.call(runtime.evaluate(expression="document.body.onclick()", user_gesture=True))
    await until(agent, lambda: len(agent.host._inventory.tabs()) == 2)
    popup = agent.host._inventory.tabs()[1]
    assert popup.opener_id == opener.target_id
    seen = popup.version
    while popup.document.url != site.url("/popup") or not popup.document.loaded:
        await popup.change(seen)
        seen = popup.version
    assert (await agent.call("read", sessionId=popup.id))["text"] == "popped"


async def test_excluded_targets_do_not_exist(chromium, site):
    excluded: set[str] = set()
    agent = Agent()
    agent.attach(await ChromiumHost.start(chromium, policy_version=lambda: 1, excluded_targets=excluded))
    tab = agent.host._inventory.tabs()[0]
    excluded.add(tab.target_id)
    assert await agent.call("sessions") == []
    assert await agent.fails("read") is Code.UNKNOWN_SESSION
    assert await agent.fails("read", sessionId=tab.id) is Code.UNKNOWN_SESSION
    created = await chromium.connection.root.call(target.create_target(url="about:blank"))
    await agent.host._inventory.opened(created.target_id)
    assert len(await agent.call("sessions")) == 1


async def test_a_crashed_tab_is_gone_until_it_is_loaded_again(agent, site):
    site.pages["/"] = "alive"
    await agent.call("navigate", url=site.url())
    tab = agent.host._inventory.tabs()[0]
    captured = agent.host.get_context(None)
    other = (await agent.call("tabs:create"))["sessionId"]
    tab.session.post(page.navigate(url="chrome://crash"))
    while tab.ended is None:
        await tab.change(tab.version)
    assert [found["id"] for found in await agent.call("sessions")] == [other]
    assert not agent.host.context_current(captured.token)
    assert await agent.fails("read", sessionId=captured.session_id) is Code.UNKNOWN_SESSION
    assert (await agent.call("application:state"))["ready"]
