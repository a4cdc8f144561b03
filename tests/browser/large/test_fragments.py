"""Addresses, titles and documents of megabytes: nothing is kept beyond a bound, nothing is mistaken."""

import pytest
from tabwarden.errors import ActionError, Code

from tests.browser.large.conftest import MB, measured
from tests.browser.reading.probe import in_page
from tests.browser.whole import WHOLE

PAGE = "<!doctype html><title>t</title><p>here</p><button id=b>b</button>"
MESSAGES = 40_000


@pytest.fixture
async def shown(agent, site, other):
    site.pages["/"] = PAGE
    await agent.call("navigate", url=site.url("/", "large.localhost"))


async def works(agent, meter, text="here\n\nb"):
    """Reading, inspecting and clicking are what they are on any page."""
    with meter.at_most(MESSAGES):
        assert (await agent.call("read"))["text"] == text
        assert [control["selector"] for control in (await agent.call("inspect"))["controls"]] == ["#b"]
        assert await agent.call("click", selector="#b") == {"completed": True}


async def listed(agent, other):
    tabs = {tab["id"]: tab for tab in await agent.call("sessions")}
    assert tabs[other.session_id] == {"id": other.session_id, "title": "Other", "foreground": False}
    assert len(tabs) == 2
    return next(tab["title"] for key, tab in tabs.items() if key != other.session_id)


async def test_an_address_of_two_megabytes(shown, agent, meter, other):
    for change in ("location.hash = 'a'.repeat(2e6)", "history.pushState(0, '', '/?' + 'a'.repeat(2e6))"):
        await in_page(agent, change)
        with measured() as memory:
            await works(agent, meter)
            await other.reads()
            assert await listed(agent, other) == "t"
            agent.judged.clear()  # the test's own notes
        assert memory.kept < MB
        assert memory.peak < 40 * MB  # a message, its text, and what the test notes of each call


@pytest.mark.parametrize("size", [3_000_000, 40_000_000])
async def test_one_that_is_too_long_for_an_address_is_no_destination(shown, agent, site, meter, other, size):
    # The larger one is not even told: only that something was, and to whom.
    before = agent.host.get_context(None)
    await in_page(agent, f"history.pushState(0, '', '/?' + 'a'.repeat({size}))")
    assert not agent.host.context_current(before.token)
    assert agent.host.get_context(None).url == ""
    for action, arguments in (("read", {}), ("inspect", {}), ("click", {"selector": "#b"}), ("reload", {})):
        assert await agent.fails(action, **arguments) is Code.DESTINATION_DENIED
    await other.reads()
    assert await listed(agent, other) == ""
    await agent.call("navigate", url=site.url("/", "large.localhost"))
    await works(agent, meter)


async def test_addresses_that_a_page_asks_for_are_not_kept(shown, agent, site, other):
    site.pages["/gone"] = (204, {}, "")
    tab = agent.host._inventory.find(None)
    with measured() as memory:
        for number in range(6):
            await in_page(agent, f"void (location = '/gone?{number}' + 'a'.repeat(1e6))")
            while len(tab._requested) <= number or not tab.given_up:
                await tab.change(tab.version)
        site.asked.clear()  # the test's own notes
    assert memory.kept < 2 * MB  # one of the six, where the tab's last request is still told of
    await other.reads()


async def test_a_title_of_two_megabytes(shown, agent, meter, other):
    await in_page(agent, "document.title = 'title '.repeat(350000)")
    with meter.at_most(MESSAGES):
        assert await listed(agent, other) == ("title " * 100)[:256]
    await works(agent, meter)


async def test_a_history_of_many_of_them(shown, agent, site, meter, other):
    await in_page(
        agent, "for (let i = 0; i < 3; i += 1) history.pushState(0, '', `/?${i}` + 'a'.repeat(1e6))"
    )
    with measured() as memory:
        assert await agent.call("back") == {"completed": True}
        await other.reads()
        agent.judged.clear()  # the test's own notes
    assert memory.kept < 2 * MB  # the address that the tab is at now
    await works(agent, meter)


async def test_many_frames(shown, agent, site, meter, other):
    # Chromium takes half a minute for a thousand.
    await in_page(
        agent,
        f"const count = {1_000 if WHOLE else 150};"
        """(() => {
          for (let i = 0; i < count; i += 1) {
            const one = document.body.appendChild(document.createElement('iframe'));
            one.contentDocument.body.textContent = `f${i}`;
          }
        })()""",
    )
    await other.reads()
    with meter.at_most(4 * MESSAGES):  # the frames' own events among them
        result = await agent.call("read")
        assert result["text"].split() == ["here", "b", *(f"f{number}" for number in range(50))]
        assert result["framesNotRead"] == [site.url("", "large.localhost")]
        listed = await agent.call("inspect")
        assert [control["selector"] for control in listed["controls"]] == ["#b"]
        assert await agent.call("click", selector="#b") == {"completed": True}
    await other.reads()


async def test_elements_in_each_other_without_end(shown, agent, site, other):
    # A parser stops at 512; a script does not. Chromium may not survive it: then that is what is told.
    await in_page(
        agent,
        """(() => {
          let inner = document.createTextNode('deep');
          for (let i = 0; i < 5000; i += 1) {
            const outer = document.createElement('i');
            outer.append(inner);
            inner = outer;
          }
          document.body.append(inner);
        })()""",
    )
    for action, arguments in (("read", {}), ("inspect", {}), ("click", {"selector": "#b"})):
        ended = await ending(agent, action, arguments)
        assert ended in (None, Code.RESULT_TOO_LARGE, Code.SESSION_GONE, Code.UNKNOWN_SESSION), action
    await other.reads()


async def ending(agent, action, arguments):
    try:
        await agent.call(action, **arguments)
    except ActionError as error:
        return error.code
    return None
