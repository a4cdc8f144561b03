"""Navigations of an agent, followed to their end, on a real Chromium."""

import pytest
import trio
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser.cdp.generated import input as input_domain
from tabwarden_adapters.browser.cdp.generated import page

from tests.browser.agent import ANYBODY, Call
from tests.browser.site import redirect

DOWNLOAD = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment"}


async def test_it_ends_with_the_load_and_says_so(agent, site):
    pictured = trio.Event()

    async def picture():
        await pictured.wait()
        return 200, {"Content-Type": "image/svg+xml"}, "<svg xmlns='http://www.w3.org/2000/svg'/>"

    site.pages.update({"/": "<p>start</p>", "/slow": "<img src=/picture>shown", "/picture": picture})
    call = Call("navigate")
    assert await agent.call("navigate", call, url=site.url()) == {"completed": True}
    assert call.effects == ["begin", "done"]
    assert call.trace.children == ["cdp.page"]
    async with trio.open_nursery() as nursery:
        ended = trio.Event()

        async def go():
            await agent.call("navigate", url=site.url("/slow"))
            ended.set()

        nursery.start_soon(go)
        await site.wait_asked("GET /picture")
        assert not ended.is_set()  # there, but not loaded
        assert await agent.fails("navigate", url=site.url()) is Code.BUSY
        pictured.set()
    assert (await agent.call("read"))["text"] == "shown"


async def test_it_follows_redirects_scripts_fragments_and_dialogs(agent, site):
    site.pages.update(
        {
            "/there": "<p>there</p><h2 id=part>part</h2>",
            "/hop": redirect("/hop2"),
            "/hop2": redirect("/there"),
            "/script": "<script>location.replace('/there')</script>",
            "/meta": "<meta http-equiv=refresh content='0;url=/there'>",
            "/form": "<form method=post action=/posted></form><script>document.forms[0].submit()</script>",
            "/posted": "posted",
            "/alert": "<script>alert(1); if (!confirm('sure?')) document.write('declined')</script>",
            "/login": (401, {"WWW-Authenticate": "Basic realm=x"}, "please log in"),
        }
    )
    for path in ("/hop", "/script", "/there", "/there#part", "/there#part"):
        assert await agent.call("navigate", url=site.url(path)) == {"completed": True}, path
        assert (await agent.call("read"))["text"] == "there\n\npart", path
    assert await agent.call("navigate", url=site.url("/alert")) == {"completed": True, "dialogsDismissed": 2}
    assert (await agent.call("read"))["text"] == "declined"
    await agent.call("navigate", url=site.url("/login"))
    assert (await agent.call("read"))["text"] == "please log in"
    await agent.call("navigate", url=site.url("/form"))
    assert (await agent.call("read"))["text"] == "posted"
    # To load it again would post again.
    assert await agent.fails("reload") is Code.NAVIGATION_FAILED
    assert site.asked.count("POST /posted") == 1
    assert (await agent.call("read"))["text"] == "posted"


async def test_denied_addresses_are_never_asked_for(agent, site):
    forbidden = site.url("/x", "forbidden.localhost")
    dotted = site.url("/x", "forbidden.localhost.")
    site.pages.update(
        {
            "/": "here",
            "/x": "secret",
            "/hop": redirect(site.url("/hop2")),
            "/hop2": redirect(forbidden),
            "/dotted": redirect(dotted),
            "/user": redirect(forbidden.replace("//", "//a:b@")),
            "/script": f"<p>before<script>location.href='{forbidden}'</script>",
            "/frame": f"<p>around<iframe src='{forbidden}'></iframe>",
        }
    )
    await agent.call("navigate", url=site.url())
    for url in (forbidden, dotted, site.url("/hop"), site.url("/dotted"), site.url("/user")):
        assert await agent.fails("navigate", url=url) is Code.DESTINATION_DENIED
        assert (await agent.call("read"))["text"] == "here"  # the tab is as it was
    assert await agent.fails("navigate", url=site.url("/script")) is Code.DESTINATION_DENIED
    assert (await agent.call("read"))["text"] == "before"
    await agent.call("navigate", url=site.url("/frame"))
    assert (await agent.call("read"))["text"] == "around"
    assert "GET /x" not in site.asked
    assert forbidden in agent.judged


async def test_what_is_not_a_page_is_a_failure(agent, site):
    site.pages.update(
        {
            "/": "here",
            "/nothing": (204, {}, ""),
            "/file": (200, DOWNLOAD, "x"),
            "/hop": redirect("/file"),
            "/broken": (500, {}, ""),
            "/odd": "<script>location.href='mailto:a@b.test'</script>here too",
            "/missing": (404, {}, "<p>sorry"),
            "/leaves": "<script>location.href='/nothing'</script>",
        }
    )
    await agent.call("navigate", url=site.url())
    for path in ("/nothing", "/file", "/hop"):
        assert await agent.fails("navigate", url=site.url(path)) is Code.NAVIGATION_FAILED, path
        assert (await agent.call("read"))["text"] == "here"
    for url in (site.url("/broken"), "http://127.0.0.1:9/", "http://nowhere.invalid/"):
        assert await agent.fails("navigate", url=url) is Code.NAVIGATION_FAILED, url
        assert await agent.fails("read") is Code.DESTINATION_DENIED  # an error page is no site
    assert await agent.fails("navigate", url=site.url("/leaves")) is Code.NAVIGATION_FAILED
    await agent.call("navigate", url=site.url("/missing"))
    assert (await agent.call("read"))["text"] == "sorry"
    for url in ("data:text/html,x", "javascript:alert(1)", "chrome://settings", "http://a:b@127.0.0.1/"):
        assert await agent.fails("navigate", url=url) is Code.INVALID_ARGUMENTS


async def test_a_cancelled_navigation_stops_and_the_tab_stays_usable(agent, site):
    forever = trio.Event()

    async def hang():
        await forever.wait()
        return 200, {}, "late"

    site.pages.update({"/": "here", "/hang": hang, "/loop": "<script>location.reload()</script>"})
    await agent.call("navigate", url=site.url())
    call = Call("navigate")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: agent.call("navigate", call, url=site.url("/hang")))
        await site.wait_asked("GET /hang")
        nursery.cancel_scope.cancel()
    assert call.effects == ["begin"]
    assert (await agent.call("read"))["text"] == "here"
    with trio.move_on_after(0.3) as scope:
        await agent.call("navigate", url=site.url("/loop"))
    assert scope.cancelled_caught
    site.pages["/loop"] = "over"  # a page that goes on reloading itself makes every capture stale
    text = None
    while text != "here":  # its last reload may still come after what we ask for
        try:
            await agent.call("navigate", url=site.url())
            text = (await agent.call("read"))["text"]
        except ActionError as error:
            if error.code is not Code.STALE:
                raise
    forever.set()


async def test_history_and_reload(agent, site):
    count = 0

    async def counted():
        nonlocal count
        count += 1
        return 200, {"Cache-Control": "no-store"}, f"loaded {count}"

    site.pages.update({"/a": "a", "/b": "b<p id=x>", "/counted": counted})
    assert await agent.fails("back") is Code.NOT_AVAILABLE
    for path in ("/a", "/b", "/b#x", "/counted"):
        await agent.call("navigate", url=site.url(path))
    before = agent.host.get_context(None)
    assert await agent.call("reload") == {"completed": True}
    assert not agent.host.context_current(before.token)
    assert (await agent.call("read"))["text"] == "loaded 2"
    assert await agent.fails("forward") is Code.NOT_AVAILABLE
    for text in ("b", "b", "a"):
        assert await agent.call("back") == {"completed": True}
        assert (await agent.call("read"))["text"] == text
    assert await agent.fails("back") is Code.DESTINATION_DENIED  # about:blank is no site
    for text in ("b", "b", "loaded"):
        assert await agent.call("forward") == {"completed": True}
        assert (await agent.call("read"))["text"].startswith(text)
    agent.forbidden.add("127.0.0.1")
    asked = len(site.asked)
    for action in ("back", "reload", "read"):
        assert await agent.fails(action) is Code.DESTINATION_DENIED
    assert len(site.asked) == asked


async def test_a_page_that_asks_to_stay_stays(agent, site):
    site.pages["/"] = "<body>stay<script>onbeforeunload = (event) => event.preventDefault()</script>"
    await agent.call("navigate", url=site.url())
    session = agent.host._inventory.find(None).session
    for kind in ("mousePressed", "mouseReleased"):  # a page may ask only after a person touched it
        await session.call(
            input_domain.dispatch_mouse_event(type=kind, x=5, y=5, button="left", click_count=1)
        )
    assert await agent.fails("reload") is Code.NAVIGATION_FAILED
    assert await agent.fails("navigate", url=site.url("/elsewhere")) is Code.NAVIGATION_FAILED
    assert (await agent.call("read"))["text"] == "stay"
    await agent.call("tabs:create")
    first = (await agent.call("sessions"))[0]["id"]
    assert await agent.fails("tabs:close", sessionId=first) is Code.CONFLICT


async def test_an_operation_is_bound_to_what_was_captured(agent, site):
    site.pages.update({"/a": "a", "/b": "b"})
    await agent.call("navigate", url=site.url("/a"))
    captured = agent.host.get_context(None)
    assert agent.host.context_current(captured.token)
    await agent.call("navigate", url=site.url("/b"))

    def allowed(href: str) -> bool:
        return agent.allowed(ANYBODY, href)

    call = Call("navigate")
    with pytest.raises(ActionError) as caught:
        await agent.host.navigate(site.url("/a"), captured, allowed, call)
    assert caught.value.code is Code.STALE
    assert call.effects == []
    with pytest.raises(ActionError) as caught:
        await agent.host.run(captured, "() => true", [captured.url], Call("read"))
    assert caught.value.code is Code.STALE
    fresh = await agent.host.navigate(site.url("/a"), agent.host.get_context(None), allowed, call)
    assert agent.host.context_current(fresh.token)
    assert fresh.foreground
    agent.policy += 1
    assert not agent.host.context_current(fresh.token)
    ended = Call("navigate")
    ended.ended = Code.REVOKED
    assert await agent.fails("navigate", ended, url=site.url("/b")) is Code.REVOKED
    assert (await agent.call("read"))["text"] == "a"


async def test_a_policy_change_on_the_way_suppresses_the_result(agent, site):
    async def change():
        agent.policy += 1
        return 200, {}, "new"

    site.pages["/"] = change
    assert await agent.fails("navigate", url=site.url()) is Code.STALE


async def test_somebody_elses_navigation_is_not_taken_for_ours(agent, site, nursery):
    """What CDP does for another program looks like a person's typing: no page asked for it."""
    hold = trio.Event()

    async def slow():
        await hold.wait()
        return 200, {}, ""

    site.pages.update({"/ours": "<img src=/slow>ours", "/slow": slow, "/theirs": "theirs"})
    codes: list[Code] = []

    async def go():
        codes.append(await agent.fails("navigate", url=site.url("/ours")))

    async with trio.open_nursery() as inner:
        inner.start_soon(go)
        await site.wait_asked("GET /slow")
        await agent.host._inventory.find(None).session.call(page.navigate(url=site.url("/theirs")))
    assert codes == [Code.STALE]
    hold.set()
