"""A `HostBackend` of site modes, a person's answers, and a browser's tabs."""

from collections.abc import Collection
from typing import Protocol

from tabwarden_adapters.host.origins import web_origin
from tabwarden_adapters.host.questions import Questions, Reply
from tabwarden_adapters.host.site_modes import SiteModes
from tabwarden_adapters.host.values import (
    Answer,
    ApprovalKind,
    ApprovalRequest,
    HandoffRequest,
    LogEntry,
    OpenTabRequest,
    SiteMode,
)

_ANSWERS = {Reply.YES: Answer.YES, Reply.CONFIRM: Answer.CONFIRM}


class HostTabs(Protocol):
    """The tabs of the host's browser."""

    async def excluded(self) -> Collection[str]:
        """The targets that no agent may see. Raises when that is not known: the engine then excludes all."""
        ...

    async def open(self, url: str, *, background: bool) -> bool:
        """Open a tab in an ordinary window; False when it was not opened."""
        ...


class PersonBackend:
    """Answers as the person and their lists say. A site that is off is never asked about."""

    def __init__(
        self,
        sites: SiteModes,
        questions: Questions,
        tabs: HostTabs,
        *,
        sensitive_hosts: Collection[str] = (),
    ) -> None:
        """`sensitive_hosts`: where the person overrode the pause on sensitive pages."""
        self._sites = sites
        self._questions = questions
        self._tabs = tabs
        self._sensitive_hosts = sorted(sensitive_hosts)
        self._agreed: set[str] = set()

    async def site_mode(self, origin: str, /) -> SiteMode:
        """`ASK` stays `ASK` after a yes: the engine remembers what it was answered."""
        return await self._sites.mode(origin)

    async def sensitive_overrides(self) -> Collection[str]:
        """As they were given."""
        return self._sensitive_hosts

    async def excluded_targets(self) -> Collection[str]:
        """See `HostTabs.excluded`."""
        return await self._tabs.excluded()

    async def approve(self, request: ApprovalRequest, /) -> Answer:
        """The person's answer; `NO` without asking on a site that is off."""
        if await self._sites.mode(request.origin) is SiteMode.OFF:
            return Answer.NO
        answer = _ANSWERS.get(await self._questions.ask(request), Answer.NO)
        # The policy may have changed while somebody thought about it.
        if await self._sites.mode(request.origin) is SiteMode.OFF:
            return Answer.NO
        if request.kind is not ApprovalKind.RISK:
            # Only for opening tabs there: an engine is told each time it asks.
            (self._agreed.discard if answer is Answer.NO else self._agreed.add)(request.origin)
        return answer

    async def handoff(self, request: HandoffRequest, /) -> bool:
        """Whether the person says that it is done. Asked for any site: the agent gains nothing by it, and
        a login often leads to a site that agents have no part of."""
        return await self._questions.ask(request) is Reply.DONE

    async def log(self, entry: LogEntry, /) -> None:
        """The server's own ring is what is shown."""

    async def open_tab(self, request: OpenTabRequest, /) -> bool:
        """Where the site is allowed, or is asked about and the person has agreed to it in this run: there is
        no time to ask, since an engine waits two seconds."""
        origin = web_origin(request.url)
        mode = await self._sites.mode(origin)
        if mode is SiteMode.OFF or (mode is SiteMode.ASK and origin not in self._agreed):
            return False
        return await self._tabs.open(request.url, background=request.background)
