"""What this room needs from outside."""

from typing import Any, Protocol

from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.ai.key import ApiKey


class Operation(CallContext, Protocol):
    """The call that is served. A browser's host gives it (`Operation` of its contract)."""

    def current(self) -> bool:
        """True while the tab that was captured for the call is what is there."""
        ...


def still(operation: Operation) -> None:
    """Raise when the call is over, or when its tab shows something else by now. After each await."""
    operation.check()
    if operation.current() is not True:
        raise ActionError(Code.STALE, committed=None)


class PageText(Protocol):
    """What goes along of a page. Only what a person would see, cleaned and bounded."""

    @property
    def origin(self) -> str:
        """As `https://example.test:8443`; never the whole address, which may hold a token."""
        ...

    @property
    def title(self) -> str:
        """On one line; empty when it is not known."""
        ...

    @property
    def text(self) -> str:
        """At most `PAGE_CHARACTERS`."""
        ...

    @property
    def following(self) -> str:
        """What comes after `text`, some `HOLD_CHARACTERS`: looked at, so that no cut hides half of a secret,
        and not sent."""
        ...

    @property
    def cut(self) -> bool:
        """True when the page has more text than this."""
        ...


class PageReader(Protocol):
    """Reads the captured page, and checks the call and its rights around that. Raises `ActionError`."""

    async def __call__(self, captured: Any, operation: Any, /) -> PageText: ...


class KeySource(Protocol):
    """Gives the key for one origin, or None when none is to be sent. Raises `ActionError` with
    `not-available` when there must be one and is not."""

    async def __call__(self, origin: str, /) -> ApiKey | None: ...
