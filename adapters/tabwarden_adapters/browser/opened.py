"""Names, in an action's result, the tabs that came of it."""

from collections.abc import Awaitable, Callable

import msgspec
import trio
from msgspec import UNSET
from tabwarden import actions

from tabwarden_adapters.browser.tab import Tab

OPENED_S = 1.0  # a popup is attached at once; its first document takes some 50 ms


async def with_opened(
    result: object, opened: Callable[[], list[Tab]], change: Callable[[], Awaitable[None]]
) -> object:
    """`result`, with those of `opened` in its `openedSessions`, where it has such a field.

    Waits until those tabs can be used, `OPENED_S` seconds at the most; `change` returns after any change.
    """
    if not isinstance(result, actions.Completed):
        return result
    with trio.move_on_after(OPENED_S):
        while any(not tab.known for tab in opened()):
            await change()
    told = result.opened_sessions if isinstance(result.opened_sessions, list) else []
    found = list(dict.fromkeys([*told, *(tab.id for tab in opened())]))
    return msgspec.structs.replace(result, opened_sessions=found or UNSET)
