"""Where a caller's tab is at this moment, and whether it still is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tabwarden.errors import ActionError
from tabwarden.model import Caller

from tabwarden_adapters.browser.host import ChromiumHost


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """`current` is True while the same document is in the tab, in front without a break if it was.
    `session_id` is None for a tab that is still to be made."""

    url: str = field(repr=False)
    current: Callable[[], bool]
    session_id: str | None = None


class WhereIs(Protocol):
    """The tab with this id, or the caller's in front for None; None when there is none. Answers at once."""

    def __call__(self, caller: Caller, session_id: str | None, /) -> Whereabouts | None: ...


def whereabouts(host: ChromiumHost, session_id: str | None) -> Whereabouts | None:
    """Of a tab that `host` has."""
    try:
        captured = host.get_context(session_id)
    except ActionError:
        return None
    return Whereabouts(captured.url, lambda: host.context_current(captured.token), captured.session_id)
