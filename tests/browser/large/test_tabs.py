"""Two hundred tabs: all listed, one in front, and nothing kept of them when they are closed."""

import gc

import msgspec
import pytest
import trio
from tabwarden.limits import PADDED_SIZES
from tabwarden_adapters.browser import ChromiumHost, launch_chromium
from tabwarden_adapters.browser.cdp.generated import target

from tests.browser.agent import Agent
from tests.browser.large.conftest import measured

TABS, AGAIN, AT_ONCE = 200, 75, 25
PER_TAB = 64_000  # bytes of ours
LEFT = 2_000  # bytes of ours for each tab that is gone: what Python's own containers have grown by


@pytest.fixture
async def chromium(nursery):
    # Else each of them is a process.
    async with launch_chromium(nursery, extra_flags=("--renderer-process-limit=4",)) as chromium:
        yield chromium


@pytest.fixture
async def agent(chromium):
    agent = Agent()
    agent.attach(await ChromiumHost.start(chromium, policy_version=lambda: agent.policy))
    return agent


async def in_batches(items, each):
    for first in range(0, len(items), AT_ONCE):
        async with trio.open_nursery() as nursery:
            for item in items[first : first + AT_ONCE]:
                nursery.start_soon(each, item)


async def test_two_hundred_tabs_come_and_go(agent, chromium, site):
    title = "\u4e16" * 300  # three bytes each
    site.pages["/"] = f"<title>{title}</title>here"
    await agent.call("navigate", url=site.url())
    first = agent.host.get_context(None).session_id
    inventory, root = agent.host._inventory, chromium.connection.root
    opened = []

    async def open_one(number):
        created = await root.call(target.create_target(url="about:blank"))
        opened.append((await inventory.opened(created.target_id)).id)

    with measured() as memory:
        await in_batches(range(TABS), open_one)
        await agent.call("application:state")
    assert memory.kept < TABS * PER_TAB
    sessions = await agent.call("sessions")
    assert {tab["id"] for tab in sessions} == {first, *opened}
    assert len(sessions) == TABS + 1
    (front,) = (tab["id"] for tab in sessions if tab["foreground"])
    assert (await agent.call("application:state"))["activeTabId"] == front
    assert (await agent.call("tabs:activate", sessionId=first))["completed"]
    assert [tab["id"] for tab in await agent.call("sessions") if tab["foreground"]] == [first]
    assert (await agent.call("read"))["text"] == "here"
    # However long the titles are, all of them fit into one reply.
    await agent.call("navigate", sessionId=opened[-1], url=site.url())
    sessions = await agent.call("sessions")
    titles = {tab["id"]: tab["title"] for tab in sessions}
    assert titles[first] == titles[opened[-1]] == title[:79]
    assert len(msgspec.json.encode(sessions)) + TABS * 3 * 79 < PADDED_SIZES[-1]

    # A second round shows what is kept of the first.
    by_id = {tab.id: tab.target_id for tab in inventory.tabs()}

    async def close_one(session_id):
        tab = inventory.find(session_id)
        await root.call(target.close_target(target_id=by_id[session_id]))
        await tab.session.wait_ended()

    sessions_before = len(chromium.connection._sessions)
    await in_batches(opened, close_one)
    assert len(await agent.call("sessions")) == 1
    assert len(chromium.connection._sessions) == sessions_before - TABS
    assert len(chromium.connection._pending) < 10
    gc.collect()
    opened.clear()
    by_id.clear()
    with measured() as memory:
        await in_batches(range(AGAIN), open_one)
        by_id.update({tab.id: tab.target_id for tab in inventory.tabs()})
        await in_batches(list(opened), close_one)
        opened.clear()
        by_id.clear()
    assert memory.kept < AGAIN * LEFT
    assert (await agent.call("read", sessionId=first))["text"] == "here"
