"""`tabs:group`, for a host that has groups."""

from tabwarden import actions
from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.application.addresses import web_href
from tabwarden_adapters.application.judging import Judge
from tabwarden_adapters.application.ports import TabGroups
from tabwarden_adapters.application.values import plain_text


class GroupControls:
    """Moves one tab, when the caller has a right to every tab that the move concerns."""

    def __init__(self, groups: TabGroups, judge: Judge) -> None:
        self._groups = groups
        self._judge = judge

    async def put(
        self, arguments: actions.GroupTab, call: CallContext, policy_version: int, /
    ) -> actions.CompletedIn:
        """The groups that the tab leaves and joins say something of all tabs in them."""
        policy = self._judge.policy(call, policy_version)
        session_id, group = arguments.session_id, arguments.group
        if not plain_text(group):
            raise ActionError(Code.INVALID_ARGUMENTS)

        def look() -> None:
            # Tabs move and load meanwhile, so their addresses are asked for anew.
            self._judge.last_look(call, policy, self._involved(session_id, group))

        self._judge.require_destinations(call, self._involved(session_id, group))
        await self._groups.put(session_id, group, look)
        call.effects_done()
        call.check()
        return actions.CompletedIn(completed=True, session_id=session_id)

    def _involved(self, session_id: str, group: str) -> list[str]:
        addresses = list(self._groups.addresses(session_id, group))
        # A blank tab is nobody's site; any other address without a normal form is judged, and denied.
        return [web_href(one) or one for one in addresses if one not in ("", "about:blank")]
