"""A click that is one on its target or none: checked before the press, at each event's arrival, and after.

A page can change between the last check and the press. What arrives elsewhere in the page, or in a frame
around the target, is stopped there by page/guard.js; when the press was not the target's, the button is let
go outside of the viewport, so that nothing is clicked. A frame of another origin can so get a press, never a
click.
"""

from dataclasses import dataclass
from typing import Final

import msgspec
import trio
from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.browser.capture import Binding, Captures, TabContext, translated
from tabwarden_adapters.browser.cdp import CdpError, Command
from tabwarden_adapters.browser.input import NOWHERE, Point, move, press, release
from tabwarden_adapters.browser.popups import Popups
from tabwarden_adapters.browser.tab import Tab
from tabwarden_adapters.browser.target_element import PASSING, Answer, Hands, Step, denial

ATTEMPTS: Final = 3  # a menu that opens under the pointer moves things once
TOLD_S: Final = 1.0  # handlers have run when an input event is answered; the guard's word comes just after


class _State(msgspec.Struct, frozen=True):
    """What page/guard.js saw."""

    pressed: bool
    consumed: bool
    clicked: bool


@dataclass(frozen=True, slots=True)
class Work:
    """One action on one captured tab."""

    captures: Captures
    captured: TabContext
    context: CallContext
    binding: Binding
    hands: Hands
    popups: Popups

    @property
    def tab(self) -> Tab:
        """The captured tab."""
        return self.hands.tab

    def in_place(self) -> bool:
        """True while the captured document is there, behind its own popups or not."""
        return self.captures.in_place(self.captured.token, behind=self.popups.asked)

    def check(self) -> None:
        """The check between press and release: the page itself may have moved within its document or have
        opened a tab in front. Raises `ActionError`."""
        self.context.check()
        if not self.in_place():
            self.captures.require(self.captured.token)


async def click(work: Work, action: str) -> None:
    """Click the target, as far as `action` may. Returns when its handlers have run.

    Raises `ActionError`: `target-denied` when it cannot be hit (nothing was pressed), `conflict` when the
    click did not arrive, `stale`, `session-gone`.
    """
    point = await work.hands.prepare(action)
    # Before the last look, whose answer then says that these have been heard.
    told = work.hands.ask(_State, "pressed"), work.hands.ask(_State, "released")
    for attempt in range(ATTEMPTS):
        work.binding.check()
        work.context.effects_begin()
        await work.binding.call(move(point))
        why = (await work.hands.step(Step, "arm", action, point.x, point.y)).why()
        if why is None:
            await _press(work, point, *told)
            return
        if why not in PASSING or attempt == ATTEMPTS - 1:
            raise denial(why)
        point = await work.hands.prepare(action)


async def _press(work: Work, point: Point, pressed: Answer[_State], released: Answer[_State]) -> None:
    down = True
    try:
        await _send(work, press(point))
        was_pressed = await _told(work, pressed)
        if not work.in_place():
            down = False
            _left(work, was_pressed)
            return
        work.check()
        if was_pressed is None or not was_pressed.pressed:
            raise ActionError(Code.CONFLICT, committed=None)
        down = not await _send(work, release(point))
        state = await _told(work, released)
        if state is not None and (state.clicked or state.consumed):
            return
        if not work.in_place():
            _left(work, was_pressed)
            return
        work.check()
        raise ActionError(Code.CONFLICT, committed=None)
    finally:
        if down:
            _let_go(work)


async def _told(work: Work, answer: Answer[_State]) -> _State | None:
    """What the guard says. A document that is about to go cannot: then until it has gone."""
    state = await answer.within(TOLD_S)
    if state is None:
        with trio.move_on_after(TOLD_S):
            while work.in_place() and work.tab.in_flight is not None:
                await work.tab.change(work.tab.version)
    return state


def _left(work: Work, state: _State | None) -> None:
    """The document went with the press: that was the click, if the page did it. Raises `ActionError`."""
    tab, document = work.tab, work.tab.document
    by_page = tab.ended is None and document is not None and tab.by_page(document.loader_id)
    work.context.check()
    if state is None or not state.pressed or not by_page:
        work.check()
        raise ActionError(Code.STALE, committed=None)


async def _send(work: Work, command: Command[None]) -> bool:
    """Send an input event to the captured document. Its answer comes when the page's handlers have run; none
    comes from a page that has left."""
    work.check()
    try:
        await work.tab.session.call(command)
    except CdpError as error:
        if work.in_place():
            raise translated(error) from None
        return False
    return True


def _let_go(work: Work) -> None:
    """The button must not stay down, and nothing must be clicked by letting it go."""
    work.hands.post("shut")
    if work.captures.in_place(work.captured.token, behind=True):
        work.tab.session.post(release(NOWHERE))
