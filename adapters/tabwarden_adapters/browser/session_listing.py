"""The action `sessions`: a host's tabs, with the titles that the caller has a right to."""

from collections.abc import Sequence

from tabwarden import actions
from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.browser.contract import (
    CapturedContext,
    ContextCurrent,
    GetContext,
    GetSessions,
    PolicyVersion,
    SessionInfo,
)
from tabwarden_adapters.browser.operation import HostOperation, broken, checked_context, permits
from tabwarden_adapters.browser.recording import Recorder
from tabwarden_adapters.browser.text import visible_title
from tabwarden_adapters.browser.urls import destination
from tabwarden_adapters.browser.withholding import Gate

TITLE_MARGIN = 1024  # characters beyond a title's cut that are looked at


class SessionListing:
    """Its `sessions` is the adapter."""

    def __init__(
        self,
        get_context: GetContext,
        get_sessions: GetSessions,
        context_current: ContextCurrent,
        policy_version: PolicyVersion | None,
        gate: Gate,
        recorder: Recorder,
    ) -> None:
        self._get_context = get_context
        self._get_sessions = get_sessions
        self._context_current = context_current
        self._policy_version = policy_version
        self._gate = gate
        self._recorder = recorder

    async def sessions(self, arguments: actions.Arguments, call: CallContext) -> list[actions.Session]:
        """A title is text of its page: without the right to the page it is withheld."""
        operation = HostOperation(call, self._policy_version)
        operation.check()

        async def work() -> list[actions.Session]:
            with operation.trace.child("host.sessions"):
                infos: object = await self._get_sessions()
            operation.check()
            return [await self._listed(info, operation) for info in _inventory(infos)]

        return await self._recorder.record(operation, work, lambda listed: operation.check())

    async def _listed(self, info: SessionInfo, operation: HostOperation) -> actions.Session:
        whole = visible_title(info.title, TITLE_MARGIN)
        title = ""
        captured = self._disclosable(info, operation)
        if captured is not None:
            title = await self._gate.title(whole, operation)
        operation.check()
        if captured is None or self._context_current(captured.token) is not True:
            title = ""
        return actions.Session(id=info.id, title=title, foreground=info.foreground)

    def _disclosable(self, info: SessionInfo, operation: HostOperation) -> CapturedContext | None:
        """The tab whose title may be told to this caller."""
        href = destination(info.url)
        if href is None:
            return None
        try:
            captured = checked_context(self._get_context(info.id), info.id)
        except ActionError as error:
            if error.code is Code.FAILURE:
                raise
            return None  # it has just gone
        allowed = captured.ready and permits(captured, operation.caller, href)
        return captured if allowed else None


def _inventory(infos: object) -> Sequence[SessionInfo]:
    """The host's tabs, if that is what it answered. Raises `ActionError`."""
    if not isinstance(infos, list | tuple) or not all(type(info) is SessionInfo for info in infos):
        raise broken()
    if not all(
        type(info.id) is type(info.title) is type(info.url) is str and type(info.foreground) is bool
        for info in infos
    ):
        raise broken()
    return infos
