"""Where an action takes place: the tab as it was when a person was asked, and its origin."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import ada_url
from tabwarden.model import Caller

_SCHEMES = ("http:", "https:")


@dataclass(frozen=True, slots=True)
class Place:
    """One captured tab. `origin` is as in `https://example.test:8443`, None for a page that has none.
    `current` says at once whether this very document is still what the tab shows, in front without a break if
    it was in front; it is asked again right before the action begins."""

    origin: str | None
    current: Callable[[], bool]


class PlaceOf(Protocol):
    """Captures this caller's tab with this id, or for None the one in front. Answers at once.

    None: there is no such tab, and the call ends with `unknown-session`. May raise `ActionError` to end a
    call that no person need be asked about.
    """

    def __call__(self, caller: Caller, session_id: str | None, /) -> Place | None: ...


class _Page(Protocol):
    @property
    def url(self) -> str: ...


class Captured(Protocol):
    """What is used of a host's captured tab (`tabwarden_adapters.browser.CapturedContext`)."""

    @property
    def session_id(self) -> str: ...
    @property
    def page(self) -> _Page: ...
    @property
    def token(self) -> object: ...


def places(
    get_context: Callable[[str | None], Captured | None], context_current: Callable[[Any], bool]
) -> PlaceOf:
    """A `PlaceOf` from the two callbacks that a host gives to `create_agent_adapters`."""

    def place_of(caller: Caller, session_id: str | None, /) -> Place | None:
        captured = get_context(session_id)
        if captured is None or session_id not in (None, captured.session_id):
            return None
        token = captured.token
        return Place(origin_of(captured.page.url), lambda: context_current(token) is True)

    return place_of


def origin_of(url: str) -> str | None:
    """Scheme, host and port of an HTTP(S) address as browsers read it (WHATWG URL, HTML 7.1.1), or None.
    `good.test.` is the same place as `good.test`."""
    try:
        parsed = ada_url.URL(url)
        if parsed.protocol not in _SCHEMES or not parsed.hostname:
            return None
        if parsed.hostname.endswith("."):
            parsed.hostname = parsed.hostname.removesuffix(".")
        return str(parsed.origin)
    except ValueError:
        return None
