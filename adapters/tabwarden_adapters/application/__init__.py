"""The application room: what agents may do with the browser's settings, bookmarks and tab groups."""

from tabwarden_adapters.application.controls import Control, create_application_controls
from tabwarden_adapters.application.policy import SECTIONS, ApplicationPolicy, company_bookmark
from tabwarden_adapters.application.ports import (
    BeforeCommit,
    BookmarkStore,
    DestinationPolicy,
    PolicySource,
    SettingsStore,
    TabGroups,
)
from tabwarden_adapters.application.sqlite_store import ApplicationStore, application_store
from tabwarden_adapters.application.values import BookmarkChange, Bookshelf, StoredBookmark

__all__ = [
    "SECTIONS",
    "ApplicationPolicy",
    "ApplicationStore",
    "BeforeCommit",
    "BookmarkChange",
    "BookmarkStore",
    "Bookshelf",
    "Control",
    "DestinationPolicy",
    "PolicySource",
    "SettingsStore",
    "StoredBookmark",
    "TabGroups",
    "application_store",
    "company_bookmark",
    "create_application_controls",
]
