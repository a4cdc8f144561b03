"""What leaves for an agent: told to the person first, word for word but for secrets, or it does not leave."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio
from msgspec import UNSET
from tabwarden import actions
from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller
from tabwarden.ports import ActionAdapter, CallContext, Clock

from tabwarden_adapters.host.agreements import Agreements
from tabwarden_adapters.host.consent import SITE_OFF
from tabwarden_adapters.host.foreseeing import origin_of
from tabwarden_adapters.host.limits import MAX_NAME
from tabwarden_adapters.host.ports import KeepsLog, Policy
from tabwarden_adapters.host.sight import SeenTab, SeenTabs
from tabwarden_adapters.host.values import LogEntry, SiteMode

NOT_LOGGED: Final = "host:not-logged"
_CHARACTERS_PER_TOKEN: Final = 4  # no tokenizer is known here; the host shows it as about so many
Scrub = Callable[[str], str | None]


class Releases:
    """Wraps a browser's actions: `around(actions)`."""

    def __init__(
        self, host: Policy, tabs: SeenTabs, agreements: Agreements, scrub: Scrub, clock: Clock
    ) -> None:
        """`scrub` replaces secrets, in a thread; None for a text that it could not look through, which then
        does not leave. A `host` that keeps no log is told nothing."""
        self._host = host
        self._tabs = tabs
        self._agreements = agreements
        self._scrub = scrub
        self._clock = clock

    def around(self, plain: Mapping[str, ActionAdapter]) -> dict[str, ActionAdapter]:
        """The same actions."""
        made: dict[str, ActionAdapter] = dict(plain)
        for name, text_of in _TEXTS.items():
            if name in made:
                made[name] = partial(self._told, name, made[name], text_of)
        if "sessions" in made:
            made["sessions"] = partial(self._titles, made["sessions"])
        return made

    async def _told(
        self,
        name: str,
        plain: ActionAdapter,
        text_of: Callable[[Any, Any], str],
        arguments: Any,
        context: CallContext,
        /,
    ) -> object:
        tab = self._tabs.tab(None if arguments.session_id is UNSET else arguments.session_id)
        if tab is None:
            raise ActionError(Code.UNKNOWN_SESSION)
        arguments = msgspec.structs.replace(arguments, session_id=tab.session_id)
        origin = origin_of(tab.url)
        result = await plain(arguments, context)
        committed = None if name == "ai" else False
        if not tab.current():
            raise ActionError(Code.STALE, committed=committed)  # perhaps of another page than what is told
        # The person may have switched the site off while it was read.
        if await self._host.site_mode(origin) is SiteMode.OFF:
            raise ActionError(Code.POLICY_DENIED, rule=SITE_OFF, committed=committed)
        context.check()
        if isinstance(self._host, KeepsLog):
            text = await trio.to_thread.run_sync(self._scrub, text_of(arguments, result))
            context.check()
            if text is None or not await self._host.log(self._entry(name, origin, text, context.caller)):
                raise ActionError(Code.CONTENT_DENIED, rule=NOT_LOGGED, committed=committed)
            context.check()
        return result

    def _entry(self, name: str, origin: str, text: str, caller: Caller) -> LogEntry:
        who = {} if caller.principal_id is None else {"agent": caller.principal_id[:MAX_NAME]}
        tokens = math.ceil(len(text) / _CHARACTERS_PER_TOKEN)
        return LogEntry(name, origin, text, tokens, self._clock.wall_ms(), who)

    async def _titles(self, plain: ActionAdapter, arguments: Any, context: CallContext, /) -> object:
        """A title is text of its page: told of sites that the person lets this agent see. What shows another
        document by now was judged by none, or by the wrong one."""
        before = {tab.session_id: tab for tab in self._tabs.every()}
        listed = await plain(arguments, context)
        if not isinstance(listed, list):
            return listed
        told = []
        for one in listed:
            shown = one.title and await self._shown(before.get(one.id), context.caller)
            told.append(one if shown else msgspec.structs.replace(one, title=""))
        context.check()
        return told

    async def _shown(self, tab: SeenTab | None, caller: Caller) -> bool:
        if tab is None:
            return False
        origin = origin_of(tab.url)
        mode = await self._host.site_mode(origin)
        agreed = mode is SiteMode.ASK and self._agreements.site(caller, origin) is not None
        return (mode is SiteMode.ALLOWED or agreed) and tab.current()


def _read(arguments: actions.Read, result: actions.PageText) -> str:
    return result.text


def _inspect(arguments: actions.Inspect, result: actions.Controls) -> str:
    return msgspec.json.encode(result.controls).decode()


def _ai(arguments: actions.Ai, result: actions.AiText) -> str:
    return f"{arguments.prompt}\n\n{result.text}"


def _picture(arguments: actions.InSession, result: actions.Picture) -> str:
    return f"[a picture of {result.width} × {result.height}, {result.masked} places masked]"  # noqa: RUF001


_TEXTS: Final[Mapping[str, Callable[[Any, Any], str]]] = {
    "read": _read,
    "inspect": _inspect,
    "ai": _ai,
    "screenshot": _picture,
}
