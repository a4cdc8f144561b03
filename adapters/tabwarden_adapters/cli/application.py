"""Application control for `serve`: its settings, and the callbacks on the store that they name.

[application]
visible = ["appearance", "bookmarks"]        # what agents may know of; without any, nothing
locked = ["appearance.accent"]               # shown, but not changed
store = "application.db"                     # where changes are kept

[[application.bookmarks]]                    # the company's: shown, never changed
id = "wiki"
title = "Wiki"
url = "https://wiki.example.org/"
folder = "Work"
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.application import (
    ApplicationPolicy,
    Control,
    application_store,
    company_bookmark,
    create_application_controls,
)
from tabwarden_adapters.policy import StaticPolicy

_SCOPES = frozenset({"settings:get", "settings:update", "bookmarks:list", "bookmarks:mutate"})
_SECTIONS = frozenset({"appearance", "bookmarks"})


class ManagedBookmark(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One company bookmark."""

    id: str
    title: str
    url: str
    folder: str = ""


class ApplicationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table `[application]`."""

    visible: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    store: str | None = None
    bookmarks: tuple[ManagedBookmark, ...] = ()

    @property
    def store_path(self) -> Path:
        """Where changes are kept: across restarts, unlike what is in the runtime folder."""
        if self.store:
            return Path(self.store)
        try:
            home = Path.home()
        except RuntimeError:
            raise ConfigurationError("no home folder is known: set application.store") from None
        return home.absolute() / ".local" / "state" / "tabwarden" / "application.db"

    def policy(self, version: int) -> ApplicationPolicy:
        """As a policy of this version. What is not visible is hidden. Raises `ConfigurationError`."""
        visible = frozenset(self.visible)
        shown = visible | {name.partition(".")[0] for name in visible}
        return ApplicationPolicy(
            version=version,
            visible=visible,
            hidden=_SECTIONS - shown,
            locked=frozenset(self.locked),
            managed=tuple(company_bookmark(one.id, one.title, one.url, one.folder) for one in self.bookmarks),
        )


@asynccontextmanager
async def application_controls(
    settings: ApplicationSettings, scopes: tuple[str, ...], policy: StaticPolicy
) -> AsyncIterator[Mapping[str, Control]]:
    """Action name -> callback, on the store while the block runs; none, and no file, when `scopes` has none
    of theirs. Raises `ConfigurationError`."""
    current = settings.policy(policy.policy_version)
    if _SCOPES.isdisjoint(scopes):
        yield {}
        return
    async with application_store(settings.store_path) as store:
        yield create_application_controls(
            policy=lambda caller: current,
            destination_allowed=policy.destination_allowed,
            inspect=None,  # `serve` has no inspector yet, for pages neither
            settings=store,
            bookmarks=store,
        )
