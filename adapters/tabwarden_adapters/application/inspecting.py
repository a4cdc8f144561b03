"""Texts of bookmarks go past the content inspector before they leave and before they are kept."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext, Inspector

from tabwarden_adapters.application.values import StoredBookmark

# What is told for everything that goes to an agent. What is kept will be listed, so it is judged as that.
EXPORT: Final = "from-page"


async def require_clean(
    inspect: Inspector | None, bookmarks: Iterable[StoredBookmark], call: CallContext
) -> None:
    """Return when nothing is found. Raises `content-denied` for a finding, and for an inspector that could
    not look; whatever ends the call comes through."""
    found = "\n".join(text for one in bookmarks for text in _texts(one))
    if inspect is None or not found:
        return
    call.check()
    try:
        finding: object = await inspect.inspect(found, direction=EXPORT, caller=call.caller)
    except ActionError:
        raise
    except Exception:
        raise ActionError(Code.CONTENT_DENIED, rule="inspector-failed") from None
    call.check()
    if finding is not None:
        raise ActionError(Code.CONTENT_DENIED, rule="inspector-finding")


def _texts(one: StoredBookmark) -> Iterable[str]:
    yield from (one.title, one.url, one.folder)
    plain = unquote(one.url)
    if plain != one.url:
        yield plain  # a secret must not pass because it is spelt with percent signs
