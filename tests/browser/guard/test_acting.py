"""Acting as agents do: through the broker, in a context of their own and in the person's tabs."""

import pytest

from tests.browser.guard.brokered import brokered

FORM = """<!doctype html><title>form</title><body style="height:4000px">
  <button id=b onclick="o.textContent = 'clicked'">go</button><output id=o></output>
  <input id=t><select id=s><option value=1>one<option value=2>two</select><input type=checkbox id=c>
  <p id=p></p><button id=d onclick="p.textContent = confirm('sure?')">ask</button>
  <a id=out href=/popup target=_blank>out</a><a id=named href=/popup target=w rel=opener>named</a>"""


@pytest.fixture(params=["isolated", "shared"])
async def broker(nursery, request):
    async with brokered(nursery, request.param, "one", "two") as broker:
        yield broker


@pytest.fixture
async def agent(broker, site):
    site.pages.update({"/": FORM, "/2": "<title>two</title>second", "/popup": "<title>popup</title>popped"})
    async with broker.agent("one", f"127.0.0.1:{site.port}") as agent:
        yield agent


async def values(agent):
    listed = (await agent.call("inspect"))["controls"]
    return {
        one["selector"]: one.get("value", one.get("checked"))
        for one in listed
        if "value" in one or "checked" in one
    }


async def test_a_form_is_filled(agent, site):
    await agent.does("navigate", url=site.url())
    assert await agent.does("click", selector="#b") == {}
    assert await agent.does("type", selector="#t", text="gr\u00fc\u00dfe \U0001f600") == {}
    assert await agent.does("select", selector="#s", value="2") == {}
    assert await agent.does("check", selector="#c", checked=True) == {}
    assert await agent.does("check", selector="#c", checked=True) == {}
    assert await values(agent) == {"#t": "gr\u00fc\u00dfe \U0001f600", "#s": "2", "#c": True}
    assert (await agent.call("read"))["text"].startswith("goclicked")
    assert await agent.does("scroll", x=0, y=500) == {}
    assert await agent.fails("select", selector="#s", value="3") == "target-denied"
    assert await agent.fails("click", selector="#none") == "target-denied"


async def test_history(agent, site):
    await agent.does("navigate", url=site.url())
    await agent.does("navigate", url=site.url("/2"))
    assert await agent.does("back") == {}
    assert (await agent.call("read"))["text"].startswith("go")
    assert await agent.does("forward") == {}
    assert await agent.does("reload") == {}
    assert (await agent.call("read"))["text"] == "second"
    assert await agent.fails("forward") == "not-available"


async def test_a_dialog_is_dismissed_and_told(agent, site):
    await agent.does("navigate", url=site.url())
    assert await agent.does("click", selector="#d") == {"dialogsDismissed": 1}
    assert "false" in (await agent.call("read"))["text"]


async def test_a_popup_is_bound_and_named_and_its_end_leaves_the_opener_usable(agent, broker, site):
    await agent.does("navigate", url=site.url())
    opener = next(tab["id"] for tab in await agent.call("sessions") if tab["foreground"])
    async with broker.agent("two", f"other.localhost:{site.port}") as other:
        for selector in ("#out", "#named"):
            result = await agent.does("click", selector=selector)
            (opened,) = result["openedSessions"]
            listed = {tab["id"]: tab for tab in await agent.call("sessions")}
            assert listed[opened]["foreground"]
            assert (await agent.call("read", sessionId=opened))["text"] == "popped"
            # Bound to the grant: what it may not reach, its popup may not either.
            assert (
                await agent.fails("navigate", sessionId=opened, url=site.url("/", "other.localhost"))
                == "destination-denied"
            )
            assert await other.fails("read", sessionId=opened) in ("unknown-session", "destination-denied")
            await agent.does("tabs:close", sessionId=opened)
            await agent.does("tabs:activate", sessionId=opener)
            assert await agent.does("click", selector="#b") == {}
            assert (await agent.call("read"))["text"].startswith("goclicked")


async def test_closing_a_popup_brings_its_opener_back(agent, site):
    await agent.does("navigate", url=site.url())
    for selector in ("#out", "#named"):
        (opened,) = (await agent.does("click", selector=selector))["openedSessions"]
        await agent.does("tabs:close", sessionId=opened)
        assert await agent.does("click", selector="#b") == {}


async def test_a_page_that_opens_a_tab_when_it_is_loaded(agent, site):
    site.pages["/opens"] = "<!doctype html><title>t</title>here<script>onload = () => open('/popup')</script>"
    result = await agent.does("navigate", url=site.url("/opens"))
    (opened,) = result["openedSessions"]
    assert opened in {tab["id"] for tab in await agent.call("sessions")}
    assert (await agent.call("read", sessionId=opened))["text"] == "popped"
