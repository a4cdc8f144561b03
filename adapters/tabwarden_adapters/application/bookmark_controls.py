"""`bookmarks:list` and `bookmarks:mutate`: the company's are shown and never changed, personal ones change by
compare-and-set on the policy's version and their own revision."""

import os
from collections.abc import Callable
from functools import partial

from msgspec import UNSET
from tabwarden import actions
from tabwarden.authority.projection import encode
from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext, Inspector

from tabwarden_adapters.application.addresses import web_href
from tabwarden_adapters.application.inspecting import require_clean
from tabwarden_adapters.application.judging import Judge
from tabwarden_adapters.application.policy import BOOKMARKS, ApplicationPolicy
from tabwarden_adapters.application.ports import BookmarkStore
from tabwarden_adapters.application.values import (
    LIST_BYTES,
    BookmarkChange,
    StoredBookmark,
    plain_text,
)


def random_id() -> str:
    """The id of a new bookmark: 32 hexadecimal digits that say nothing."""
    return os.urandom(16).hex()


class BookmarkControls:
    """Both actions on one store."""

    def __init__(
        self,
        store: BookmarkStore,
        judge: Judge,
        inspect: Inspector | None,
        new_id: Callable[[], str] = random_id,
    ) -> None:
        self._store = store
        self._judge = judge
        self._inspect = inspect
        self._new_id = new_id

    async def list(
        self, arguments: actions.Arguments, call: CallContext, policy_version: int, /
    ) -> actions.Bookmarks:
        """All of them or nothing: a caller without a right to one destination is refused the whole list."""
        policy = self._visible(call, policy_version)
        shelf = await self._store.bookshelf()
        call.check()
        everything = (*policy.managed, *shelf.bookmarks)
        self._judge.require_destinations(call, [one.url for one in everything])
        result = actions.Bookmarks(
            managed=[one.as_result(managed=True) for one in policy.managed],
            personal=[one.as_result() for one in shelf.bookmarks],
            revision=shelf.revision,
            policy_version=policy.version,
            can_mutate=not policy.is_locked(BOOKMARKS),
        )
        if len(encode(result)) > LIST_BYTES:
            raise ActionError(Code.RESULT_TOO_LARGE)
        await require_clean(self._inspect, everything, call)
        if self._judge.policy(call, policy_version) != policy:
            raise ActionError(Code.STALE)
        self._judge.require_destinations(call, [one.url for one in everything])
        return result

    async def mutate(
        self, arguments: actions.MutateBookmarks, call: CallContext, policy_version: int, /
    ) -> actions.Completed:
        """One change of one personal bookmark, if nothing has changed since the caller looked."""
        policy = self._visible(call, policy_version)
        if policy.is_locked(BOOKMARKS):
            raise ActionError(Code.POLICY_DENIED, rule="bookmarks.locked")
        if any(one.id == arguments.id for one in policy.managed):
            raise ActionError(Code.TARGET_DENIED, rule="bookmarks.managed")
        bookmark_id = self._new_id() if arguments.id is UNSET else arguments.id
        draft = None if arguments.bookmark is UNSET else _stored(bookmark_id, arguments.bookmark)
        if arguments.policy_version != policy.version:
            raise ActionError(Code.CONFLICT, rule="bookmarks.policy-version")
        shelf = await self._store.bookshelf()
        call.check()
        if shelf.revision != arguments.expected_revision:
            raise ActionError(Code.CONFLICT, rule="bookmarks.revision")
        involved = [one for one in (shelf.find(bookmark_id), draft) if one is not None]
        hrefs = [one.url for one in involved]
        self._judge.require_destinations(call, hrefs)
        if draft is not None:
            await require_clean(self._inspect, [draft], call)
        change = BookmarkChange(arguments.action, draft or StoredBookmark(bookmark_id, "", ""))
        look = partial(self._judge.last_look, call, policy, hrefs)
        # What was judged is what will be changed: the store does nothing at any other revision.
        await self._store.change_bookmarks(change, shelf.revision, look)
        call.effects_done()
        call.check()
        return actions.Completed(completed=True)

    def _visible(self, call: CallContext, policy_version: int) -> ApplicationPolicy:
        policy = self._judge.policy(call, policy_version)
        if not policy.shows(BOOKMARKS):
            raise ActionError(Code.POLICY_DENIED, rule="bookmarks.hidden")
        return policy


def _stored(bookmark_id: str, draft: actions.BookmarkDraft) -> StoredBookmark:
    href = web_href(draft.url)
    if href is None or not plain_text(draft.title) or not plain_text(draft.folder):
        raise ActionError(Code.INVALID_ARGUMENTS)
    return StoredBookmark(bookmark_id, draft.title, href, draft.folder)
