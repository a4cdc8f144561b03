"""What the policy says of the application: what is shown, what is locked, what the company put there."""

import re
from dataclasses import dataclass, field
from typing import Final

from tabwarden.actions import Appearance
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.application.addresses import web_href
from tabwarden_adapters.application.values import (
    MAX_MANAGED,
    StoredBookmark,
    plain_text,
)

APPEARANCE: Final = "appearance"
BOOKMARKS: Final = "bookmarks"
NO_APPEARANCE: Final = Appearance()
SECTIONS: Final = frozenset({APPEARANCE, BOOKMARKS})
APPEARANCE_KEYS: Final = ("mode", "accent", "tabMode")
_MAX_NAMES = 64  # sections and settings that a policy may name
_NAME = re.compile(r"[a-z][A-Za-z0-9-]{0,31}(\.[a-z][A-Za-z0-9-]{0,31})?")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationPolicy:
    """One version of it. The default shows nothing and lets nothing be changed.

    The three sets hold names of sections (`appearance`, `bookmarks`, and others that only the host knows) or
    of single settings (`appearance.mode`). What is not visible is not told and not changed; hidden wins over
    visible, and what is locked is shown but not changed. `appearance` has the values that settings begin
    with, and that locked ones have whatever they were changed to before. `managed` are the company's
    bookmarks.

    Raises `ConfigurationError` naming the field.
    """

    version: int
    visible: frozenset[str] = frozenset()
    hidden: frozenset[str] = SECTIONS
    locked: frozenset[str] = SECTIONS
    appearance: Appearance = NO_APPEARANCE
    managed: tuple[StoredBookmark, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if type(self.version) is not int or not 0 <= self.version <= 2**53:
            raise ConfigurationError("application policy: version must be an integer from 0 to 2^53")
        for name in ("visible", "hidden", "locked"):
            _check_names(name, getattr(self, name))
        if not isinstance(self.appearance, Appearance):
            raise ConfigurationError("application policy: appearance is not one")
        _check_managed(self.managed)

    def shows(self, section: str, setting: str | None = None) -> bool:
        """Whether agents may know of this section, or of this setting in it."""
        names = _names(section, setting)
        return not names.isdisjoint(self.visible) and names.isdisjoint(self.hidden)

    def is_locked(self, section: str, setting: str | None = None) -> bool:
        """Whether it stays as it is."""
        return not _names(section, setting).isdisjoint(self.locked)


def company_bookmark(bookmark_id: str, title: str, url: str, folder: str = "") -> StoredBookmark:
    """One of the company's, with its address as people write it. Raises `ConfigurationError` naming it."""
    href = web_href(url)
    if href is None:
        raise ConfigurationError(
            f"company bookmark {bookmark_id!a}: url must be an http or https address without credentials"
        )
    return StoredBookmark(bookmark_id, title, href, folder)


def _names(section: str, setting: str | None) -> frozenset[str]:
    return frozenset({section} if setting is None else {section, f"{section}.{setting}"})


def _check_names(field_name: str, names: object) -> None:
    shown = f"application policy: {field_name}"
    if not isinstance(names, frozenset) or len(names) > _MAX_NAMES:
        raise ConfigurationError(f"{shown} must be a set of at most {_MAX_NAMES} names")
    for name in names:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise ConfigurationError(f"{shown}: {name!a} is not a section or section.setting")
        section, _, setting = name.partition(".")
        if section == APPEARANCE and setting and setting not in APPEARANCE_KEYS:
            known = ", ".join(f"appearance.{key}" for key in APPEARANCE_KEYS)
            raise ConfigurationError(f"{shown}: there is no {name!a}; there are {known}")


def _check_managed(managed: object) -> None:
    shown = "application policy: managed"
    if not isinstance(managed, tuple) or len(managed) > MAX_MANAGED:
        raise ConfigurationError(f"{shown} must be a tuple of at most {MAX_MANAGED} bookmarks")
    seen: set[str] = set()
    for number, one in enumerate(managed):
        where = f"{shown}[{number}]"
        if not isinstance(one, StoredBookmark):
            raise ConfigurationError(f"{where} is not a bookmark")
        if _ID.fullmatch(one.id) is None or one.id in seen:
            raise ConfigurationError(f"{where}.id must be unique: 1 to 64 letters, digits or . _ -")
        seen.add(one.id)
        if not plain_text(one.title) or not plain_text(one.folder):
            raise ConfigurationError(f"{where}: title and folder are at most 256 visible characters")
        if web_href(one.url) != one.url:
            raise ConfigurationError(
                f"{where}.url must be an http or https address without credentials, in its normal form"
            )
