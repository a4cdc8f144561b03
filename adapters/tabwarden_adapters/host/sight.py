"""What asking about an agent's call needs to see of the tabs. A browser's own answers implement it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from tabwarden.errors import Code


class Ahead(Protocol):
    """What pressing or filling in one element may lead to: the page's word. None is not known."""

    @property
    def missing(self) -> Code | None:
        """Why there is no such element, as the action itself would say."""
        ...

    @property
    def name(self) -> str | None:
        """All that it is called."""
        ...

    @property
    def in_form(self) -> bool | None:
        """Whether it belongs to a form."""
        ...

    @property
    def form_targets(self) -> tuple[str, ...] | None:
        """The addresses that the form may be sent to."""
        ...

    @property
    def leads_to(self) -> str:
        """A link's address; empty without one."""
        ...

    @property
    def downloads(self) -> bool:
        """Whether it says that it saves a file."""
        ...


class SeenTab(Protocol):
    """One tab, captured at one moment."""

    @property
    def url(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    def current(self) -> bool:
        """True while the same document is there, in front without a break if it was."""
        ...

    async def element(self, selector: str, /) -> Ahead:
        """Of the element that `selector` names."""
        ...

    async def entry(self, by: int, /) -> str | None:
        """The address of an entry of its history, so many steps on."""
        ...

    async def secrets(self) -> bool | None:
        """Whether a field for a password, a card or a one-time code shows. None: that cannot be told."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """No agent knows of the tab while the block runs; afterwards all that was captured of it is stale.
        Raises `ActionError` with `browser-management-busy`."""
        ...


class SeenTabs(Protocol):
    """All tabs that agents may know of."""

    async def refresh(self) -> None:
        """Ask the host anew which these are."""
        ...

    def tab(self, session_id: str | None, /) -> SeenTab | None:
        """The tab with this id, or the one in front for None. None: there is none. Answers at once."""
        ...

    def every(self) -> Sequence[SeenTab]:
        """All that answer, each as it is now. Answers at once."""
        ...
