"""The actions of a browser, each as an `ActionAdapter`: capture, check, act, check.

The adapters know no CDP: they work on the callbacks of a host (contract.py), of which our own Chromium is
the first (chromium_adapters.py). What a callback answers is checked here, whoever the host is.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import UNSET
from tabwarden import actions
from tabwarden.actions import ACTIONS
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden.ports import ActionAdapter, CallContext, Inspector

from tabwarden_adapters.browser.contract import (
    Acted,
    AdapterAudit,
    AiGateway,
    AppControl,
    CapturedContext,
    ContextCurrent,
    Deed,
    GetContext,
    GetSessions,
    History,
    Navigate,
    Operation,
    PolicyVersion,
    Reload,
)
from tabwarden_adapters.browser.inspecting import list_controls
from tabwarden_adapters.browser.masking import Painter
from tabwarden_adapters.browser.operation import (
    HostOperation,
    broken,
    checked_context,
    is_count,
    permits,
)
from tabwarden_adapters.browser.reading import MARGIN, READ_CHARACTERS, read_text
from tabwarden_adapters.browser.recording import Recorder
from tabwarden_adapters.browser.session_listing import SessionListing
from tabwarden_adapters.browser.shot import Shot, TakeShot
from tabwarden_adapters.browser.text import visible_text
from tabwarden_adapters.browser.urls import destination, origin, web_href
from tabwarden_adapters.browser.withholding import FROM_MODEL, FROM_PAGE, TO_MODEL, TO_PAGE, Gate

APPLICATION_ACTIONS: Final = frozenset(
    name for name in ACTIONS if name.startswith(("application:", "settings:", "bookmarks:", "tabs:"))
)
AI_CHARACTERS: Final = 20_000  # as many as a prompt may have
Load = Callable[[CapturedContext, Operation], Awaitable[CapturedContext]]


def create_agent_adapters(
    *,
    get_context: GetContext,
    get_sessions: GetSessions,
    context_current: ContextCurrent,
    navigate: Navigate,
    inspect: Inspector | None,
    history: History | None = None,
    reload: Reload | None = None,
    shot: TakeShot | None = None,
    ai: AiGateway | None = None,
    audit: AdapterAudit | None = None,
    app_controls: Mapping[str, AppControl] | None = None,
    policy_version: PolicyVersion | None = None,
) -> Mapping[str, ActionAdapter]:
    """Action name -> adapter, for every action that this host can do. contract.py says what each callback is.

    `inspect` looks through all text before it is returned, and through prompts; None, which has to be said,
    lets everything pass. Without `history` there is no back and no forward, and so on: an action that is
    absent answers `not-available`. `audit` is told of each action before it begins and after it has ended.
    `policy_version` is needed for `app_controls`; a host that has none cannot tell a click that led elsewhere
    from a policy that changed meanwhile, and such a click ends with `stale`.

    Raises `ConfigurationError` for `app_controls` that are no application actions or come without a
    `policy_version`, and for `ai` without `inspect`.
    """
    controls = dict(app_controls or {})
    unknown = sorted(controls.keys() - APPLICATION_ACTIONS)
    if unknown:
        raise ConfigurationError(f"not an application action: {', '.join(unknown)}")
    if controls and policy_version is None:
        raise ConfigurationError("app_controls need a policy_version")
    if ai is not None and inspect is None:
        raise ConfigurationError("ai needs an inspector: what is sent to a model must be looked through")
    gate, recorder = Gate(inspect), Recorder(audit)
    adapters = _Adapters(get_context, context_current, policy_version, gate, recorder)
    listing = SessionListing(get_context, get_sessions, context_current, policy_version, gate, recorder)
    made: dict[str, ActionAdapter] = {
        "sessions": listing.sessions,
        "navigate": partial(adapters.navigate, navigate),
        "read": adapters.read,
        "inspect": adapters.inspect,
        **dict.fromkeys(("scroll", "click", "type", "select", "check"), adapters.act),
    }
    if history is not None:
        made["back"] = partial(adapters.step, history, -1)
        made["forward"] = partial(adapters.step, history, 1)
    if reload is not None:
        made["reload"] = partial(adapters.reload, reload)
    if shot is not None:
        made["screenshot"] = partial(adapters.screenshot, shot, Painter(inspect))
    if ai is not None:
        made["ai"] = partial(adapters.ai, ai)
    for name, control in controls.items():
        made[name] = partial(adapters.control, name, control)
    return made


class _Adapters:
    def __init__(
        self,
        get_context: GetContext,
        context_current: ContextCurrent,
        policy_version: PolicyVersion | None,
        gate: Gate,
        recorder: Recorder,
    ) -> None:
        self._get_context = get_context
        self._context_current = context_current
        self._policy_version = policy_version
        self._gate = gate
        self._recorder = recorder

    # ---- navigation ---------------------------------------------------------------------------------

    async def navigate(
        self, navigate: Navigate, arguments: actions.Navigate, call: CallContext
    ) -> actions.Completed:
        """Where the tab is now does not matter: nothing of it is told or kept."""
        href = web_href(arguments.url)
        operation = self._capture(arguments.session_id, call)
        if not operation.allowed(href):
            raise ActionError(Code.DESTINATION_DENIED)
        return await self._go(operation, partial(navigate, href), href)

    async def step(
        self, history: History, by: int, arguments: actions.InSession, call: CallContext
    ) -> actions.Completed:
        """Back and forward: the entry's address is the host's to judge before it is sent for."""
        return await self._go(self._capture(arguments.session_id, call), partial(history, by))

    async def reload(
        self, reload: Reload, arguments: actions.InSession, call: CallContext
    ) -> actions.Completed:
        operation = self._capture(arguments.session_id, call)
        operation.require_destination()
        return await self._go(operation, reload)

    async def _go(self, operation: HostOperation, load: Load, sent: str = "") -> actions.Completed:
        """Have the host load something, and judge where the tab has come to. `sent`: the agent's address."""
        captured = operation.context

        async def work() -> CapturedContext:
            await self._gate.passes(sent, TO_PAGE, operation)
            operation.require_current()
            answer: object = await load(captured, operation)
            return self._arrived(answer, operation)

        def settled(fresh: CapturedContext) -> None:
            operation.check()
            self._require_fresh(fresh)

        fresh = await self._recorder.record(operation, work, settled)
        dismissed = fresh.dialogs_dismissed - captured.dialogs_dismissed
        return actions.Completed(
            completed=True,
            opened_sessions=list(fresh.opened_sessions) or UNSET,
            dialogs_dismissed=dismissed if dismissed > 0 else UNSET,
        )

    def _arrived(self, answer: object, operation: HostOperation) -> CapturedContext:
        """The refreshed context of the same tab, if that is what the host answered. Raises `ActionError`."""
        operation.effects_begin()
        try:
            fresh = checked_context(answer, operation.session_id)
        except ActionError:
            raise broken(None) from None  # what has become of the tab is not known
        operation.effects_done()
        operation.check()
        if not fresh.ready:
            raise ActionError(Code.SESSION_GONE, committed=True)
        self._require_fresh(fresh)
        if operation.context.foreground and not fresh.foreground and not fresh.opened_sessions:
            raise ActionError(Code.STALE, committed=True)  # switched away from meanwhile
        href = destination(fresh.page.url)
        if href is None or not permits(fresh, operation.caller, href):
            raise ActionError(Code.DESTINATION_DENIED, committed=True)
        return fresh

    def _require_fresh(self, fresh: CapturedContext) -> None:
        if self._context_current(fresh.token) is not True:
            raise ActionError(Code.STALE, committed=True)

    # ---- pages --------------------------------------------------------------------------------------

    async def read(self, arguments: actions.Read, call: CallContext) -> actions.PageText:
        operation = self._capture(arguments.session_id, call)
        href = operation.require_destination()

        async def work() -> actions.PageText:
            margin = MARGIN if self._gate.looks else 0
            window = await read_text(partial(self._run, operation), arguments.offset, margin)
            end = window.start + READ_CHARACTERS
            text = await self._gate.released(window.around, FROM_PAGE, operation, window.start, end)
            await self._gate.passes("\n".join(window.frames_not_read), FROM_PAGE, operation)
            self._require_still(operation)
            return actions.PageText(
                text=text,
                origin=origin(href),
                untrusted=True,
                next_offset=UNSET if window.next_offset is None else window.next_offset,
                frames_not_read=window.frames_not_read or UNSET,
            )

        return await self._recorder.record(operation, work, lambda text: self._require_still(operation))

    async def inspect(self, arguments: actions.Inspect, call: CallContext) -> actions.Controls:
        operation = self._capture(arguments.session_id, call)
        href = operation.require_destination()

        async def work() -> actions.Controls:
            window = await list_controls(partial(self._run, operation), arguments.cursor)
            controls = actions.Controls(
                controls=window.controls,
                origin=origin(href),
                untrusted=True,
                next_cursor=UNSET if window.next_cursor is None else window.next_cursor,
                frames_not_read=window.frames_not_read or UNSET,
            )
            await self._gate.value_passes(controls, operation)
            self._require_still(operation)
            return controls

        return await self._recorder.record(operation, work, lambda listed: self._require_still(operation))

    async def screenshot(
        self, shot: TakeShot, painter: Painter, arguments: actions.InSession, call: CallContext
    ) -> actions.Picture:
        """Pixels come from the host, what must not be seen of them is painted over here."""
        operation = self._capture(arguments.session_id, call)
        href = operation.require_destination()
        if not operation.context.foreground:
            raise ActionError(Code.CONFLICT)

        async def work() -> actions.Picture:
            self._require_still(operation)
            with operation.trace.child("host.screenshot"):
                taken: object = await shot(operation.context, painter.wants_texts, operation)
            self._require_still(operation)
            if type(taken) is not Shot:
                raise broken(operation.committed)
            with operation.trace.child("picture.mask"):
                picture = await painter.finish(taken, operation)
            self._require_still(operation)
            return actions.Picture(
                image=picture.image,
                media_type=picture.media_type,
                width=picture.width,
                height=picture.height,
                masked=picture.masked,
                origin=origin(href),
                untrusted=True,
            )

        return await self._recorder.record(operation, work, lambda picture: self._require_still(operation))

    async def _run(self, operation: HostOperation, script: str, *arguments: object) -> object:
        """A fixed script in the captured document; it gets the captured address first."""
        operation.require_current()
        answer = await operation.context.page.run(script, (operation.url, *arguments), operation)
        self._require_still(operation)
        return answer

    async def act(self, arguments: Deed, call: CallContext) -> actions.Completed:
        """Scroll, click, type, select, check. What the page does then is the network guard's to judge."""
        operation = self._capture(arguments.session_id, call)
        operation.require_destination()
        captured = operation.context
        if captured.interactive is False:
            raise ActionError(Code.TARGET_DENIED, rule="tab-not-interactive")
        if not captured.foreground:
            raise ActionError(Code.CONFLICT)

        async def work() -> Acted:
            if isinstance(arguments, actions.Type):
                await self._gate.passes(arguments.text, TO_PAGE, operation)
            self._require_still(operation)
            acted: object = await captured.page.act(arguments, operation)
            operation.effects_begin()
            if type(acted) is not Acted or not _well_typed(acted):
                raise broken(None)
            operation.effects_done()
            self._require_done(operation)
            return acted

        acted = await self._recorder.record(operation, work, lambda acted: self._require_done(operation))
        return actions.Completed(
            completed=True,
            opened_sessions=list(acted.opened_sessions) or UNSET,
            dialogs_dismissed=acted.dialogs_dismissed or UNSET,
        )

    @staticmethod
    def _require_done(operation: HostOperation) -> None:
        """After an action: the page may have gone elsewhere by it, but the call and the policy must hold."""
        operation.check()
        if not operation.policy_known:
            operation.require_current()  # which of the two it was cannot be told

    async def ai(self, ai: AiGateway, arguments: actions.Ai, call: CallContext) -> actions.AiText:
        """The prompt goes out only past the inspector, and so does the answer come back."""
        operation = self._capture(arguments.session_id, call)
        operation.require_destination()

        async def work() -> actions.AiText:
            await self._gate.passes(arguments.prompt, TO_MODEL, operation)
            self._require_still(operation)
            operation.effects_begin()
            answer: object = await ai(arguments.prompt, operation.context, operation)
            operation.effects_done()
            self._require_still(operation)
            if type(answer) is not str:
                raise broken(True)
            text = visible_text(answer)
            if len(text) > AI_CHARACTERS:
                raise ActionError(Code.RESULT_TOO_LARGE, committed=True)
            text = await self._gate.released(text, FROM_MODEL, operation)
            self._require_still(operation)
            return actions.AiText(text=text, untrusted=True)

        return await self._recorder.record(operation, work, lambda text: self._require_still(operation))

    # ---- the application ----------------------------------------------------------------------------

    async def control(self, name: str, control: AppControl, arguments: Any, call: CallContext) -> object:
        """One of the host's own operations, held to one version of the policy."""
        spec = ACTIONS[name]
        operation = HostOperation(call, self._policy_version)
        if spec.needs_session:
            operation = self._capture(arguments.session_id, call)
            # A tab that shows a site is the business of those with a right to it; a blank one is anybody's.
            if operation.url.startswith(("http:", "https:")):
                operation.require_destination()
        operation.check()

        async def work() -> object:
            if isinstance(arguments, actions.CreateTab) and arguments.url is not UNSET:
                await self._gate.passes(arguments.url, TO_PAGE, operation)
            if spec.needs_session:
                operation.require_current()
            result: object = await control(arguments, operation, operation.policy_version)
            if spec.effect == "read":
                operation.check()
                await self._gate.value_passes(result, operation)
            else:
                operation.effects_done()
            operation.check()
            return result

        return await self._recorder.record(operation, work, lambda result: operation.check())

    # ---- checks -------------------------------------------------------------------------------------

    def _capture(self, session_id: object, call: CallContext) -> HostOperation:
        """Pin a tab, once. Raises `ActionError`."""
        wanted = session_id if isinstance(session_id, str) else None
        operation = HostOperation(call, self._policy_version)
        operation.check()
        captured = checked_context(self._get_context(wanted), wanted)
        operation.pin(captured, self._get_context, self._context_current)
        return operation

    @staticmethod
    def _require_still(operation: HostOperation) -> None:
        """The capture and its destination, once more."""
        operation.require_current()
        operation.require_destination()


def _well_typed(acted: Acted) -> bool:
    return (
        is_count(acted.dialogs_dismissed)
        and type(acted.opened_sessions) is tuple
        and all(type(one) is str for one in acted.opened_sessions)
    )
