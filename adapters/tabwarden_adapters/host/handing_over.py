"""The action `handoff`: a person at the host does a step that only she can do, and has the tab to herself."""

from typing import Final

from msgspec import UNSET
from tabwarden.actions import Completed, Handoff
from tabwarden.authority.describing import visible
from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.host.foreseeing import origin_of
from tabwarden_adapters.host.link import HostLink
from tabwarden_adapters.host.origins import OPAQUE
from tabwarden_adapters.host.ports import WaitsForUser
from tabwarden_adapters.host.sight import SeenTabs
from tabwarden_adapters.host.wording import who

_REASON: Final = 200  # characters, as the action's argument


class HandsOver:
    """An `ActionAdapter`. While it waits no agent knows of the tab; afterwards all captures of it, and all
    `ref`s, are stale. The wait is for the person: as long as the broker lets one wait."""

    def __init__(self, host: object, link: HostLink, tabs: SeenTabs) -> None:
        """A `host` that has no `wait_for_user` hands nothing over."""
        self._host = host
        self._link = link
        self._tabs = tabs

    async def __call__(self, arguments: Handoff, context: CallContext, /) -> Completed:
        """Raises `ActionError`: `not-available`, `user-denied` when the person did not say that it is done,
        `unknown-session`, `browser-management-busy`, `policy-denied` when the host is gone."""
        host = self._host
        if not isinstance(host, WaitsForUser):
            raise ActionError(Code.NOT_AVAILABLE)
        tab = self._tabs.tab(None if arguments.session_id is UNSET else arguments.session_id)
        if tab is None:
            raise ActionError(Code.UNKNOWN_SESSION)
        origin = origin_of(tab.url)
        if origin == OPAQUE:
            raise ActionError(Code.TARGET_DENIED, rule="host:nothing-to-hand-over")
        asks = f"{who(context.caller)} asks you to do this yourself. It wrote:"
        words = f"{asks} {visible(arguments.reason, _REASON)}"
        # The tab is the person's before she is told, and until her question is off the screen.
        with tab.alone():
            context.effects_begin()
            with context.waiting_for_person():
                done = await host.wait_for_user(words, origin)
        context.check()
        if not self._link.alive:
            raise ActionError(Code.POLICY_DENIED, rule="host:gone", committed=None)
        if done is not True:
            raise ActionError(Code.USER_DENIED, rule="host:handoff", committed=None)
        context.effects_done()
        return Completed(completed=True)
