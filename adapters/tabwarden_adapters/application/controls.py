"""The application's actions as callbacks for the browser adapters (`app_controls`).

A callback is `async def (arguments, call, policy_version)`: `arguments` are of the action table's type,
`call` tells of the call and takes what becomes of it, `policy_version` is what the call is held to.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from tabwarden.ports import CallContext, Inspector

from tabwarden_adapters.application.bookmark_controls import BookmarkControls
from tabwarden_adapters.application.group_controls import GroupControls
from tabwarden_adapters.application.judging import Judge
from tabwarden_adapters.application.ports import (
    BookmarkStore,
    DestinationPolicy,
    PolicySource,
    SettingsStore,
    TabGroups,
)
from tabwarden_adapters.application.setting_controls import SettingControls


class Control(Protocol):
    """One action's callback. Raises `ActionError`, with what is known of effects."""

    async def __call__(self, arguments: Any, call: CallContext, policy_version: int, /) -> object: ...


def create_application_controls(
    *,
    policy: PolicySource,
    destination_allowed: DestinationPolicy,
    inspect: Inspector | None,
    settings: SettingsStore | None = None,
    bookmarks: BookmarkStore | None = None,
    groups: TabGroups | None = None,
) -> Mapping[str, Control]:
    """Action name -> callback, for each store that is given; an action without one answers `not-available`.

    `inspect` looks through titles, addresses and folders before they leave and before they are kept
    (`direction`: `from-page` for both), and any finding withholds them; None, which has to be said, lets
    everything pass.
    """
    judge = Judge(policy, destination_allowed)
    made: dict[str, Control] = {}
    if settings is not None:
        setting_controls = SettingControls(settings, judge)
        made["settings:get"] = setting_controls.get
        made["settings:update"] = setting_controls.update
    if bookmarks is not None:
        bookmark_controls = BookmarkControls(bookmarks, judge, inspect)
        made["bookmarks:list"] = bookmark_controls.list
        made["bookmarks:mutate"] = bookmark_controls.mutate
    if groups is not None:
        made["tabs:group"] = GroupControls(groups, judge).put
    return made
