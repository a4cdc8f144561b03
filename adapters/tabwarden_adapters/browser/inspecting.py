"""Listing a page's controls: one fixed script, bound to the captured document (CDP domain Runtime)."""

from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET, UnsetType
from tabwarden import actions
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser import reading
from tabwarden_adapters.browser.selectors import target
from tabwarden_adapters.browser.text import visible_text

CONTROLS = 100  # a window: more than a form has, some 20 KB
CHARACTERS = 40_000  # of one window, as JSON: with 20 options each, a hundred selects are more than a reply


@dataclass(frozen=True, slots=True)
class ControlWindow:
    """A window of a page's controls. `next_cursor` is None at its end. Cursors count controls.

    `frames_not_read`: as in `reading.PageWindow`.
    """

    controls: list[actions.Control] = field(repr=False)
    next_cursor: int | None
    frames_not_read: list[str]


class _Option(msgspec.Struct):
    value: str
    label: str
    selected: bool


class _Control(msgspec.Struct):
    ref: str
    role: str
    name: str
    selector: str
    value: str | UnsetType = UNSET
    checked: bool | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    options: list[_Option] | UnsetType = UNSET


class _Answer(msgspec.Struct):
    controls: list[_Control]
    next: int | None
    frames: list[str]
    cut: bool


async def list_controls(run: reading.Run, cursor: int) -> ControlWindow:
    """The visible, non-sensitive controls of the captured document from number `cursor` on.

    Raises `ActionError` as `reading.read_text` does.
    """
    limits = (CONTROLS, CHARACTERS, reading.BUDGET_MS)
    answer = await run(scripts.INSPECT, cursor, *limits)
    if answer is None:
        raise ActionError(Code.STALE)
    try:
        window = msgspec.convert(answer, _Answer)
    except msgspec.ValidationError:
        raise ActionError(Code.FAILURE) from None
    if window.cut and not window.controls:
        raise ActionError(Code.RESULT_TOO_LARGE)
    controls = [_control(control) for control in window.controls]
    return ControlWindow(controls, window.next, [visible_text(name) for name in window.frames])


def _control(control: _Control) -> actions.Control:
    try:
        target(control.selector)
    except ActionError:
        control.selector = control.ref  # a path that our own rules refuse is of no use
    options: list[actions.Option] | UnsetType = UNSET
    if control.options is not UNSET:
        options = [
            actions.Option(value=option.value, label=visible_text(option.label), selected=option.selected)
            for option in control.options
        ]
    return actions.Control(
        ref=control.ref,
        role=control.role,
        name=visible_text(control.name),
        selector=control.selector,
        value=control.value if control.value is UNSET else visible_text(control.value),
        checked=control.checked,
        disabled=control.disabled,
        options=options,
    )
