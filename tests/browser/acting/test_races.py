"""All that can end a capture, put between any two steps of every action: nothing lands anywhere else."""

# Markup in lines of its own.
# ruff: noqa: E501

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser.cdp.generated import page, target

from tests.browser.agent import Call

HEARD = """<script>window.log = [];
for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'keydown', 'beforeinput', 'input',
  'change', 'scroll']) document.addEventListener(type, () => log.push(type), true)</script>"""
PAGE = f"""<!doctype html><title>page</title>{HEARD}<button id=b>1</button><input id=t><input type=checkbox id=c>
<select id=s><option value=1>1<option value=2>2</select><p style="height:4000px">"""
ACTIONS: dict[str, dict[str, Any]] = {
    "click": {"selector": "#b"},
    "type": {"selector": "#t", "text": "text"},
    "select": {"selector": "#s", "value": "2"},
    "check": {"selector": "#c", "checked": True},
    "scroll": {"y": 100},
}
Event = Callable[["Race"], Awaitable[None]]


class Race:
    """One action in a tab of its own, next to a bystander, with `event` at its CDP call number `when`."""

    def __init__(self, stage, event: Event, when: int, after: bool) -> None:
        self.after = after
        self.stage = stage
        self.agent = stage.agent
        self.inventory = stage.agent.host._inventory
        self.event = event
        self.when = when
        self.happened = False

    async def run(self, action: str) -> tuple[Code | None, list[str]]:
        self.bystander = self.inventory.tabs()[0]
        created = await self.agent.call("tabs:create", url=self.stage.site.url("/page"))
        self.tab = self.inventory.find(created["sessionId"])
        self.call = Call(action)
        self.native, calls = self.tab.session.call, 0

        async def call(command):
            nonlocal calls
            calls += 1
            if calls == self.when and not self.after:
                # Our checks have passed already: it happens while the command is on its way.
                self.happened = True
                await self.event(self)
            result = await self.native(command)
            if calls == self.when and self.after:
                self.happened = True
                await self.event(self)
            return result

        self.tab.session.call = call
        code = None
        try:
            with trio.fail_after(20):
                await self.agent.call(action, self.call, sessionId=created["sessionId"], **ACTIONS[action])
        except ActionError as error:
            code = error.code
        self.tab.session.call = self.native
        return code, self.call.effects

    async def log(self, tab) -> list[str]:
        self.stage.watch(tab)
        result: list[str] = await self.stage.js("log")
        return result

    async def clean(self) -> None:
        if self.tab.ended is None:
            await self.agent.host._root.call(target.close_target(target_id=self.tab.target_id))
        while self.tab in self.inventory.tabs():
            await self.inventory.change()


async def navigate(race: Race) -> None:
    await race.native(page.navigate(url=race.stage.site.url("/other")))
    while race.tab.document.url != race.stage.site.url("/other") or not race.tab.document.loaded:
        await race.tab.change(race.tab.version)


async def reload(race: Race) -> None:
    before = race.tab.document.loader_id
    await race.native(page.reload())
    while race.tab.document.loader_id == before or not race.tab.document.loaded:
        await race.tab.change(race.tab.version)


async def close(race: Race) -> None:
    await race.agent.host._root.call(target.close_target(target_id=race.tab.target_id))
    while race.tab.ended is None:
        await race.tab.change(race.tab.version)


async def activate(race: Race) -> None:
    await race.agent.host._root.call(target.activate_target(target_id=race.bystander.target_id))
    while race.inventory.foreground is not race.bystander:
        await race.inventory.change()


async def change_policy(race: Race) -> None:
    race.agent.policy += 1


async def revoke(race: Race) -> None:
    race.call.ended = Code.REVOKED


EXPECTED = {
    navigate: {Code.STALE},
    reload: {Code.STALE},
    close: {Code.SESSION_GONE},
    activate: {Code.STALE},
    change_policy: {Code.STALE},
    revoke: {Code.REVOKED},
}


# The first calls of all actions are the same, and a click is a part of others.
FIRST = {"click": 1, "type": 11, "check": 11, "select": 5, "scroll": 5}


@pytest.mark.parametrize("event", EXPECTED, ids=lambda event: event.__name__)
@pytest.mark.parametrize("action", ACTIONS)
async def test_no_action_lands_on_another_document_or_tab(stage, event, action):
    stage.site.pages["/other"] = f"other{HEARD}<button id=b style='width:500px;height:500px'>1</button>"
    await stage.show(PAGE)
    after = event not in (navigate, reload)
    for when in range(FIRST[action], 60):
        race = Race(stage, event, when, after)
        code, effects = await race.run(action)
        if not race.happened:
            break
        where = f"{event.__name__} at call {when} of {action}: {code} {effects}"
        # A click that was seen to arrive is one, whatever becomes of the tab.
        arrived = action == "click" and "done" in effects and event in (close, activate)
        assert code in EXPECTED[event] or (arrived and code is None), where
        assert await race.log(race.bystander) == [], where
        if race.tab.ended is None:
            log = await race.log(race.tab)
            if event in (navigate, reload) or "begin" not in effects:
                assert log == [], where
            elif "done" not in effects:
                assert log.count("click") <= (action in ("type", "check")), where
        await race.clean()
    else:
        raise AssertionError("an action of so many steps?")
    assert code is None
    assert when > FIRST[action]


async def test_a_call_that_is_cut_off_lets_the_button_go(stage):
    """The deadline, a disconnection and a closing broker come as a cancellation, at any await."""
    for when in range(1, 60):
        await stage.show(PAGE)
        session, calls = stage.tab.session, 0
        native = session.call
        with trio.CancelScope() as scope:

            async def call(command, native=native, when=when):
                nonlocal calls
                calls += 1
                if calls == when:
                    scope.cancel()
                return await native(command)

            session.call = call
            try:
                await stage.do("click", "#b")
            finally:
                del session.call
        if not scope.cancel_called:
            break
        # Nothing of it is left over: not a button that is down, not a guard or a shield.
        assert await stage.do("click", "#b") == {}, when
        log = await stage.js("log")
        assert log[-1] == "click", (when, log)
        assert log.count("click") <= 2, (when, log)
        await stage.show(PAGE)
        assert await stage.do("click", "#b") == {}, when
    assert when > 8


async def test_a_release_that_comes_late_clicks_nothing(stage):
    """Input events and questions have ways of their own through the browser: this is the slowest way."""
    await stage.show(PAGE)
    session, call, late = stage.tab.session, Call("click"), []
    native_call, native_post = session.call, session.post

    async def revoked_by_the_press(command):
        result = await native_call(command)
        if command.params.get("type") == "mousePressed":
            call.ended = Code.REVOKED
        return result

    def held_back(command):
        if command.params.get("type") == "mouseReleased":
            late.append(command)
        else:
            native_post(command)

    session.call, session.post = revoked_by_the_press, held_back
    try:
        with pytest.raises(ActionError) as ended:
            await stage.agent.call("click", call, sessionId=stage.tab.id, selector="#b")
    finally:
        del session.call, session.post
    assert ended.value.code is Code.REVOKED
    assert await stage.js("log") == ["pointerdown", "mousedown"]
    [release] = late
    await session.call(release)
    assert "click" not in await stage.js("log")
    # And then nothing of it is in the way.
    assert await stage.do("click", "#b") == {}
    assert (await stage.js("log"))[-1] == "click"
