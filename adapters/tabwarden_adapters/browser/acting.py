"""The actions of a page: click, type, select, check, scroll. docs/acting.md says what each of them promises.

Each takes hold of its element (target_element.py), looks at it, acts with real input events (input.py,
clicking.py), and looks again: nothing is completed that is not there to be seen.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakSet

import msgspec
import trio
from tabwarden import actions
from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser.capture import Binding, Captures, TabContext, claimed
from tabwarden_adapters.browser.cdp import CdpError, Session
from tabwarden_adapters.browser.cdp.generated import page
from tabwarden_adapters.browser.clicking import Work, click
from tabwarden_adapters.browser.contract import Acted, Deed
from tabwarden_adapters.browser.input import delete, insert
from tabwarden_adapters.browser.inventory import Tabs
from tabwarden_adapters.browser.popups import Popups
from tabwarden_adapters.browser.tab import WORLD, Tab
from tabwarden_adapters.browser.target_element import Step, hands

FOLLOW_S: Final = 3.0  # a page that a click leads to may take its time; the click is done all the same
BREATH_S: Final = 0.25  # a frame, which takes 16 ms, and no longer for one that is not painted
START_S: Final = 0.5  # from a page's asking for a navigation to its start: some ms


class _Intent(Step, frozen=True):
    how: str = ""
    same: bool = False
    keeps: bool = True


class _Entry(Step, frozen=True):
    empty: bool = False
    text: str = ""


class _Kept(msgspec.Struct, frozen=True):
    kept: bool


class _Offer(Step, frozen=True):
    same: bool = False


class _Toggled(Step, frozen=True):
    checked: bool | None = None


class _Scrolled(msgspec.Struct, frozen=True):
    moved: bool
    kept: bool


class Actor:
    """Does the actions of one host's tabs, one at a time in each."""

    def __init__(self, tabs: Tabs, captures: Captures, root: Session) -> None:
        self._tabs = tabs
        self._root = root
        self._captures = captures
        self._without_choosers: WeakSet[Tab] = WeakSet()
        self._watched: WeakSet[Tab] = WeakSet()

    async def act(
        self, captured: TabContext, deed: Deed, context: CallContext, *, captures: Captures | None = None
    ) -> Acted:
        """Do `deed` on the captured tab, which must be in front. `captures`, when given, judge it.

        Raises `ActionError`: `conflict` when it is not in front or the page did not keep what was asked for,
        `target-denied`, `stale-ref`, `invalid-arguments` (a selector, or a text that the field would change),
        `stale`, `session-gone`, `browser-management-busy`.
        """
        captures = captures or self._captures
        tab = captures.require(captured.token)
        if captured.token.activation is None:
            raise ActionError(Code.CONFLICT)
        if not captured.interactive:
            raise ActionError(Code.TARGET_DENIED, rule="tab-not-interactive")
        binding = Binding(captures, captured.token, context)
        with claimed(tab):
            dialogs = tab.dialogs_dismissed
            popups = Popups(tab, self._tabs, self._root)
            try:
                await self._no_choosers(tab, binding)
                with _shielded(tab):
                    async with hands(binding, captured.url) as held:
                        await _do(Work(captures, captured, context, binding, held, popups), deed)
                opened = await popups.opened()
            finally:
                popups.close()
            return Acted(tab.dialogs_dismissed - dialogs, tuple(tab.id for tab in opened))

    async def _no_choosers(self, tab: Tab, binding: Binding) -> None:
        """No file chooser opens for this document any more.

        A page may open one as long as the activation by our click lasts, some seconds after it, so this is
        taken back only when the document goes, and its activation with it.
        """
        if tab not in self._watched:
            self._watched.add(tab)
            tab.session.on(page.FrameNavigated, lambda event: self._choosers_again(tab, event))
        if tab not in self._without_choosers:
            self._without_choosers.add(tab)
            await binding.call(page.set_intercept_file_chooser_dialog(enabled=True))

    def _choosers_again(self, tab: Tab, event: page.FrameNavigated) -> None:
        if event.frame.id == tab.target_id and tab in self._without_choosers:
            self._without_choosers.discard(tab)
            tab.session.post(page.set_intercept_file_chooser_dialog(enabled=False))


@contextmanager
def _shielded(tab: Tab) -> Iterator[None]:
    """No input event reaches a document that takes the captured one's place while one is on its way."""
    added: list[str] = []
    over = False

    def told(result: page.AddScriptToEvaluateOnNewDocumentResult | CdpError) -> None:
        if isinstance(result, CdpError):
            return
        added.append(result.identifier)
        if over:
            remove()

    def remove() -> None:
        for identifier in added:
            tab.session.post(page.remove_script_to_evaluate_on_new_document(identifier=identifier))

    # Not waited for: what comes after it in this session comes after it in the browser.
    script = page.add_script_to_evaluate_on_new_document(source=scripts.SHIELD, world_name=WORLD)
    tab.session.ask(script, told)
    try:
        yield
    finally:
        over = True
        remove()


async def _do(work: Work, deed: Deed) -> None:
    match deed:
        case actions.Scroll():
            await _scroll(work, deed.x, deed.y)
        case actions.Click():
            await work.hands.look(deed.selector)
            led = _Led(work.tab)
            try:
                await click(work, "click")
                work.context.effects_done()
                await _follow(work, led)
                # Wherever the tab is now, the click was one on what was captured; the policy must still be.
                if not work.captures.policy_holds(work.captured.token):
                    raise ActionError(Code.STALE, committed=True)
            finally:
                led.close()
        case actions.Type():
            await work.hands.look(deed.selector)
            await _type(work, deed.text)
        case actions.Select():
            await work.hands.look(deed.selector)
            await _select(work, deed.value)
        case actions.Check():
            await work.hands.look(deed.selector)
            await _check(work, deed.checked)


# ---- click ------------------------------------------------------------------------------------------


class _Led:
    """What a tab is led to from now on."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._navigation = tab.navigation
        self._started = tab.started[-1] if tab.started else None
        self.asked = False
        self._undo = tab.session.on(page.FrameRequestedNavigation, self._requested)

    def _requested(self, event: page.FrameRequestedNavigation) -> None:
        self.asked = self.asked or (
            event.frame_id == self._tab.target_id and event.disposition == "currentTab"
        )

    def close(self) -> None:
        """Note nothing more."""
        self._undo()

    @property
    def begun(self) -> bool:
        """True when a navigation has started."""
        return bool(self._tab.started) and self._tab.started[-1] != self._started

    @property
    def settled(self) -> bool:
        """True when it is over, one way or the other."""
        tab, document = self._tab, self._tab.document
        if tab.ended is not None or document is None:
            return True
        arrived = tab.navigation > self._navigation and (document.loaded or document.stopped)
        return self.begun and tab.in_flight is None and (arrived or tab.given_up)


async def _follow(work: Work, led: _Led) -> None:
    """Wait, not for long, for what the click led to: the next action would only find it on its way."""
    tab = work.tab
    if not (led.asked or led.begun):
        await work.hands.ask(bool, "breathe").within(BREATH_S)  # a form is sent a moment after the click
    with trio.move_on_after(FOLLOW_S):
        with trio.move_on_after(START_S):
            while led.asked and not led.begun:
                await tab.change(tab.version)
        while led.begun and not led.settled:
            await tab.change(tab.version)
    work.context.check()


# ---- type -------------------------------------------------------------------------------------------


async def _type(work: Work, text: str) -> None:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not _plain(text):
        raise ActionError(Code.INVALID_ARGUMENTS)
    intent = await work.hands.require(_Intent, "intend", text)
    if not intent.keeps:
        raise ActionError(Code.INVALID_ARGUMENTS)
    if intent.same:
        return
    if intent.how == "set":
        await work.hands.prepare("type")
        work.binding.check()
        work.context.effects_begin()
        await work.hands.require(Step, "set")
    else:
        await click(work, "type")
        entry = await work.hands.require(_Entry, "enter")
        if text:
            await work.binding.call(insert(entry.text))
        elif not entry.empty:
            await work.binding.call(delete(down=True))
            await work.binding.call(delete(down=False))
    kept = await work.hands.step(_Kept, "entered", intent.how == "text")
    if not kept.kept:
        raise ActionError(Code.CONFLICT, committed=None)
    work.context.effects_done()


def _plain(text: str) -> bool:
    """False for controls that no key types, and for what is no text at all."""
    return not any(
        (character < " " and character not in "\t\n")
        or character == "\x7f"
        or "\ud800" <= character <= "\udfff"
        for character in text
    )


# ---- select, check, scroll --------------------------------------------------------------------------


async def _select(work: Work, value: str) -> None:
    offer = await work.hands.require(_Offer, "offers", value)
    point = await work.hands.prepare("select")
    if offer.same:
        return
    work.binding.check()
    work.context.effects_begin()
    await work.hands.require(Step, "choose", value, point.x, point.y)
    if not await work.hands.step(bool, "chose", value):
        raise ActionError(Code.CONFLICT, committed=None)
    work.context.effects_done()


async def _check(work: Work, wanted: bool) -> None:
    now = await work.hands.require(_Toggled, "toggled")
    if now.checked is wanted:
        return
    await click(work, "check")
    if not await work.hands.step(bool, "checks", wanted):
        raise ActionError(Code.CONFLICT, committed=None)
    work.context.effects_done()


async def _scroll(work: Work, x: int, y: int) -> None:
    work.binding.check()
    work.context.effects_begin()
    scrolled = await work.hands.step(_Scrolled, "scroll", x, y)
    if not scrolled.kept:
        raise ActionError(Code.CONFLICT, committed=None)
    work.context.effects_done()
