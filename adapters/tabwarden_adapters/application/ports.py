"""What this room needs from outside. A host may put its own behind each of these.

A change goes by one rule, so that what is said of it is true: the store makes sure of everything that could
still refuse the change, calls `before_commit` from the event loop, and only then changes anything.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from tabwarden.actions import Appearance
from tabwarden.model import Caller

from tabwarden_adapters.application.policy import ApplicationPolicy
from tabwarden_adapters.application.values import BookmarkChange, Bookshelf

# Called once, at the last moment before a change, in the event loop's thread. When it raises, nothing may be
# changed, and what it raised must come out.
BeforeCommit = Callable[[], None]


class SettingsStore(Protocol):
    """Keeps the three appearance settings of this browser."""

    async def appearance(self) -> Appearance:
        """What was set; UNSET for what never was."""
        ...

    async def change_appearance(self, change: Appearance, before_commit: BeforeCommit, /) -> Appearance:
        """Set what `change` says and leave the rest; return what is set once that is durable.

        Raises `ActionError`: `browser-management-busy` when another change is under way, before anything has
        begun; `failure` otherwise, with what is known of effects.
        """
        ...


class BookmarkStore(Protocol):
    """Keeps the personal bookmarks. Company bookmarks are the policy's and never in here."""

    async def bookshelf(self) -> Bookshelf:
        """All personal bookmarks in order, and the revision that they are."""
        ...

    async def change_bookmarks(
        self, change: BookmarkChange, expected_revision: int, before_commit: BeforeCommit, /
    ) -> int:
        """Make one change if the revision is still `expected_revision`; return the next revision (one more)
        once that is durable.

        Raises `ActionError`: `conflict` for another revision or for an id that is not there,
        `browser-management-busy` when another change is under way, both before anything has begun;
        `result-too-large` when the shelf is full; `failure` otherwise, with what is known of effects.
        """
        ...


class TabGroups(Protocol):
    """Tab groups, of a host that has them."""

    def addresses(self, session_id: str, group: str, /) -> Sequence[str]:
        """The addresses of all tabs that are involved: this one, and those in the groups that it leaves and
        joins. Answers at once; the empty text stands for a tab without a site."""
        ...

    async def put(self, session_id: str, group: str, before_commit: BeforeCommit, /) -> None:
        """Put the tab into the group; the empty name takes it out of its group. Raises `ActionError`."""
        ...


class PolicySource(Protocol):
    """The part of the current policy that concerns the application, for this caller. Answers at once."""

    def __call__(self, caller: Caller, /) -> ApplicationPolicy: ...


class DestinationPolicy(Protocol):
    """May `caller` know of and reach `href`? Only True allows; raising denies. `href` is a `web_href`."""

    def __call__(self, caller: Caller, href: str, /) -> bool: ...
