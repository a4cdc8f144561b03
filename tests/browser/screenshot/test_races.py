"""What happens while a picture is taken: navigation, closing, policies, cancellation, around each call."""

# Markup and scripts in lines of their own.
# ruff: noqa: E501

from typing import Any

import pytest
import trio
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser.cdp.generated import page, runtime, target

from tests.browser.agent import Call
from tests.browser.screenshot.test_masks import SECRET

PAGE = f"""<p class=p></p>{SECRET}<div id=h></div>
<script>h.attachShadow({{mode: 'closed'}}).innerHTML = '<b>x</b>'; window.n = 0; setInterval(() => n++)</script>"""
OTHER = "<body style='background:red'>other"


class Moment:
    """Does `event` around call number `when` of the tab's session."""

    def __init__(self, camera, event, when: int, *, after: bool) -> None:
        self.camera = camera
        self.tab = camera.tab
        self.call = Call("screenshot")
        self.happened = False
        self.native, self.calls = self.tab.session.call, 0

        async def call(command):
            self.calls += 1
            now = self.calls == when
            if now and not after:
                self.happened = True
                await event(self)
            result = await self.native(command)
            if now and after:
                self.happened = True
                await event(self)
            return result

        self.tab.session.call = call

    def over(self) -> None:
        del self.tab.session.call


async def navigate(moment: Moment) -> None:
    before = moment.tab.document.loader_id
    await moment.native(page.navigate(url=moment.camera.site.url("/other")))
    while moment.tab.document.loader_id == before:
        await moment.tab.change(moment.tab.version)


async def close(moment: Moment) -> None:
    await moment.camera.agent.host._root.call(target.close_target(target_id=moment.tab.target_id))
    while moment.tab.ended is None:
        await moment.tab.change(moment.tab.version)


async def change_policy(moment: Moment) -> None:
    moment.camera.agent.policy += 1


async def forbid(moment: Moment) -> None:
    moment.camera.agent.forbidden.add("127.0.0.1")


async def revoke(moment: Moment) -> None:
    moment.call.ended = Code.REVOKED


EXPECTED = {
    navigate: Code.STALE,
    close: Code.SESSION_GONE,
    change_policy: Code.STALE,
    forbid: Code.DESTINATION_DENIED,
    revoke: Code.REVOKED,
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("event", EXPECTED, ids=lambda event: event.__name__)
async def test_no_picture_of_what_is_not_there_any_more(camera, site, event, after):
    site.pages["/other"] = OTHER
    for when in range(1, 40):
        if event is close:
            await camera.agent.call("tabs:create")
        await camera.show(PAGE)
        moment = Moment(camera, event, when, after=after)
        try:
            with trio.fail_after(30):
                code = (await camera.fails(moment.call)).code
        except AssertionError:
            code = None
        moment.over()
        camera.agent.forbidden.discard("127.0.0.1")
        if not moment.happened:
            break
        assert code is EXPECTED[event], (when, code)
        assert moment.call.effects == []
        if event is navigate:
            await camera.show(PAGE)  # the tab is of use again
    assert code is None
    assert when > 8


async def test_a_tab_that_is_left_meanwhile(camera, site):
    """A tab behind may never be drawn: that must not keep anybody waiting."""
    site.pages["/other"] = OTHER
    await camera.show(PAGE)
    tab, root = camera.tab, camera.agent.host._root
    created = await camera.agent.call("tabs:create", url=site.url("/other", "other.localhost"))
    other = next(one for one in camera.agent.host.tabs() if one.id == created["sessionId"])
    for frame in range(1, 4):
        await camera.agent.call("tabs:activate", sessionId=tab.id)
        native, frames = tab.session.call, 0

        async def call(command, native=native, frame=frame):
            nonlocal frames
            frames += command.method == "Page.captureScreenshot"
            if frames == frame and command.method == "Page.captureScreenshot":
                await root.call(target.activate_target(target_id=other.target_id))
            return await native(command)

        tab.session.call = call
        code = None
        with trio.fail_after(60):
            try:
                assert (await camera.take(sessionId=tab.id)).tinged() == 0
            except ActionError as error:
                code = error.code
        assert code in (None, Code.STALE, Code.BUSY)
        del tab.session.call
        assert not tab.claimed
        assert await camera.agent.host.tab(tab.id).session.call(runtime.evaluate(expression="1"))


async def test_a_picture_that_is_cut_off_leaves_the_page_as_it_was(camera):
    await camera.show(PAGE)
    for when in range(1, 40):
        scope = trio.CancelScope()

        async def cancel(moment, scope=scope):
            scope.cancel()

        moment = Moment(camera, cancel, when, after=False)
        with scope:
            await camera.take(moment.call)
        moment.over()
        if not scope.cancel_called:
            break
        assert scope.cancelled_caught
        assert not moment.tab.claimed
        # Its timers run, its clocks too, and the next picture is a whole one.
        assert await camera.js(
            "new Promise((done) => { const was = n; (function f() { n > was ? done(true) : setTimeout(f) })() })"
        )
        assert (await camera.take()).tinged() == 0
    assert when > 8


async def test_cancelled_while_it_is_inspected(camera):
    scope = trio.CancelScope()

    class Inspector:
        async def inspect(self, text: str, *, direction: str, caller: Any = None) -> str | None:
            if direction == "from-page":
                scope.cancel()
            await trio.lowlevel.checkpoint()
            return None

    camera.inspected(Inspector())
    await camera.show("<p>text</p>")
    with scope:
        await camera.take()
    assert scope.cancelled_caught
    assert not camera.tab.claimed
