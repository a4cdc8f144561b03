"""Bookmarks as values, with their bounds."""

import unicodedata
from dataclasses import dataclass, field
from typing import Literal

from tabwarden.actions import Bookmark
from tabwarden.authority.projection import encode
from tabwarden.errors import ActionError, Code
from tabwarden.protocol.seal import MAX_PLAINTEXT

TEXT_CHARACTERS = 256  # a title or a folder, as in the action table
URL_CHARACTERS = 8192  # as in the action table, after normalising too
MAX_PERSONAL = 500  # more than a person looks through; the bytes below are what mostly decides
MAX_MANAGED = 1000  # as many as a policy document may have
# A list has no pages, so it must fit one sealed reply, whose envelope and counters need some hundred bytes.
LIST_BYTES = MAX_PLAINTEXT - 512
MANAGED_BYTES = 24 * 1024  # of that kept free for the company's: some 200
PERSONAL_BYTES = LIST_BYTES - MANAGED_BYTES  # with no more company bookmarks, all can be listed

# Bidirectional controls and marks: they show a text in another order than it has.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class StoredBookmark:
    """One personal bookmark. `url` is a `web_href`."""

    id: str
    title: str = field(repr=False)
    url: str = field(repr=False)
    folder: str = field(default="", repr=False)

    def as_result(self, *, managed: bool = False) -> Bookmark:
        """As the action table has it."""
        return Bookmark(id=self.id, title=self.title, url=self.url, folder=self.folder, managed=managed)

    def size_in_list(self, *, managed: bool = False) -> int:
        """Bytes: its JSON and the comma."""
        return len(encode(self.as_result(managed=managed))) + 1


@dataclass(frozen=True, slots=True)
class Bookshelf:
    """The personal bookmarks at one revision."""

    revision: int
    bookmarks: tuple[StoredBookmark, ...]

    def find(self, bookmark_id: str) -> StoredBookmark | None:
        """The one with this id."""
        return next((one for one in self.bookmarks if one.id == bookmark_id), None)


@dataclass(frozen=True, slots=True)
class BookmarkChange:
    """`add` and `update` put `bookmark`, the latter in the place of the one with its id; `remove` takes the
    one with `bookmark.id` away and looks at nothing else of it."""

    action: Literal["add", "update", "remove"]
    bookmark: StoredBookmark

    def applied_to(self, shelf: Bookshelf) -> Bookshelf:
        """The next revision. Raises `ActionError`: `conflict` for an id that is not there (or is, for `add`),
        `result-too-large` when it would no longer fit."""
        one, there = self.bookmark, shelf.find(self.bookmark.id)
        if (there is None) != (self.action == "add"):
            raise ActionError(Code.CONFLICT, rule="bookmarks.id")
        if self.action == "add":
            after = (*shelf.bookmarks, one)
        else:
            kept = one if self.action == "update" else None
            replaced = (kept if item.id == one.id else item for item in shelf.bookmarks)
            after = tuple(item for item in replaced if item is not None)
        if self.action != "remove" and not fits(after):
            raise ActionError(Code.RESULT_TOO_LARGE, rule="bookmarks.full")
        return Bookshelf(shelf.revision + 1, after)


def fits(bookmarks: tuple[StoredBookmark, ...]) -> bool:
    """Whether so many personal bookmarks may be kept."""
    return len(bookmarks) <= MAX_PERSONAL and sum(one.size_in_list() for one in bookmarks) <= PERSONAL_BYTES


def plain_text(text: str) -> bool:
    """Whether a title or folder shows as what it is: no controls, line breaks, surrogates or reordering."""
    return len(text) <= TEXT_CHARACTERS and not any(
        character in _REORDERING or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        for character in text
    )
