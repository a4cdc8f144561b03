"""How a CDP call can fail. Nothing here carries text from Chromium, which may hold text of a page."""

from enum import StrEnum

from tabwarden.errors import TabwardenError


class EndReason(StrEnum):
    """Why a session or the whole connection answers no more."""

    DETACHED = "detached"
    CRASHED = "crashed"
    LOST = "lost"
    VIOLATION = "violation"


class CdpError(TabwardenError):
    """The root of what a CDP call raises."""


class CommandFailed(CdpError):
    """Chromium answered with an error: `method` and JSON-RPC `code` (-32000 is its usual one)."""

    def __init__(self, method: str, code: int) -> None:
        super().__init__(f"{method}: error {code}")
        self.method = method
        self.code = code


class SessionEnded(CdpError):
    """The target is gone or the pipe is closed: the call was not, or will never be, answered."""

    def __init__(self, reason: EndReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class ReplyUnreadable(CdpError):
    """Chromium's answer was larger than allowed, or not of the documented shape."""


class ReplyTooLarge(ReplyUnreadable):
    """Chromium's answer was larger than a message may be: a page can make some so."""


class TooManyCommands(CdpError):
    """More commands wait to be written than Chromium takes: nothing was sent."""


class EventsLost(CdpError):
    """A subscriber was too slow, so events were lost and what it knows is out of date."""
