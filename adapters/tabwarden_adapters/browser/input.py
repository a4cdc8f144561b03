"""Input events of a mouse and a key, as CDP commands (domain Input). Points: CSS pixels of the viewport."""

from dataclasses import dataclass
from typing import Final

from tabwarden_adapters.browser.cdp import Command
from tabwarden_adapters.browser.cdp.generated import input as domain

LEFT: Final = 1  # CDP's bit for the left button in `buttons`
DELETE: Final = 46  # the Windows virtual key code, which names a key to Chromium on every platform


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the viewport."""

    x: float
    y: float


# Outside of every viewport: nothing is there that a button could be let go on.
NOWHERE: Final = Point(-10, -10)


def move(point: Point) -> Command[None]:
    """The pointer moves there."""
    return domain.dispatch_mouse_event(type="mouseMoved", x=point.x, y=point.y)


def press(point: Point) -> Command[None]:
    """The left button goes down. Always the first click: two clicks of agents are never a double click."""
    return domain.dispatch_mouse_event(
        type="mousePressed", x=point.x, y=point.y, button="left", buttons=LEFT, click_count=1
    )


def release(point: Point) -> Command[None]:
    """The left button goes up."""
    return domain.dispatch_mouse_event(
        type="mouseReleased", x=point.x, y=point.y, button="left", buttons=0, click_count=1
    )


def insert(text: str) -> Command[None]:
    """Text arrives in what has the focus, in place of what is selected there, as from an input method."""
    return domain.insert_text(text=text)


def delete(*, down: bool) -> Command[None]:
    """The Delete key goes down or up."""
    return domain.dispatch_key_event(
        type="rawKeyDown" if down else "keyUp",
        key="Delete",
        code="Delete",
        windows_virtual_key_code=DELETE,
        commands=["DeleteForward"] if down else None,
    )
