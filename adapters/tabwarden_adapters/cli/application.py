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
from tabwarden.ports import Inspector

from tabwarden_adapters.application import (
    SECTIONS,
    ApplicationPolicy,
    Control,
    DestinationPolicy,
    PolicySource,
    application_store,
    company_bookmark,
    create_application_controls,
)


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
            hidden=SECTIONS - shown,
            locked=frozenset(self.locked),
            managed=tuple(company_bookmark(one.id, one.title, one.url, one.folder) for one in self.bookmarks),
        )


@asynccontextmanager
async def application_controls(
    settings: ApplicationSettings,
    *,
    wanted: bool,
    policy: PolicySource,
    destination_allowed: DestinationPolicy,
    inspect: Inspector | None = None,
) -> AsyncIterator[Mapping[str, Control]]:
    """Action name -> callback, on the store while the block runs; none, and no file, unless `wanted`.

    Raises `ConfigurationError`.
    """
    if not wanted:
        yield {}
        return
    async with application_store(settings.store_path) as store:
        yield create_application_controls(
            policy=policy,
            destination_allowed=destination_allowed,
            inspect=inspect,
            settings=store,
            bookmarks=store,
        )
