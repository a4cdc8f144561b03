"""Tabs, a policy inside and a person, for tests of what is asked when. All of them deny by default."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import trio
from tabwarden.actions import ACTIONS, parse_arguments
from tabwarden.errors import ActionError, Code
from tabwarden.model import Authorization, Caller
from tabwarden_adapters.host import (
    Agreements,
    Answer,
    ApprovalKind,
    HostAuthorizer,
    HostLink,
    HostProblem,
    SiteMode,
)

AGENT = Caller("agent-1", 1)
TAB = "00000000-0000-4000-8000-000000000001"
OTHER = "00000000-0000-4000-8000-000000000002"
SHOP, BANK = "https://shop.test", "https://bank.test"


@dataclass
class Element:
    """Implements `Ahead`."""

    name: str | None = None
    in_form: bool | None = None
    form_targets: tuple[str, ...] | None = None
    leads_to: str = ""
    downloads: bool = False
    missing: Code | None = None


class Tab:
    """Implements `SeenTab`; captured again after each change of `document`."""

    def __init__(self, session_id: str = TAB, url: str = f"{SHOP}/basket") -> None:
        self.session_id = session_id
        self.url = url
        self.document = 0
        self.elements: dict[str, Element] = {}
        self.entries: dict[int, str] = {}
        self.secret: bool | None = False
        self.hidden = 0
        self.looked: Callable[[], None] = lambda: None

    def captured(self) -> "Captured":
        return Captured(self, self.document, self.url)


@dataclass
class Captured:
    tab: Tab
    document: int
    url: str
    session_id: str = field(init=False)

    def __post_init__(self) -> None:
        self.session_id = self.tab.session_id

    def current(self) -> bool:
        return self.document == self.tab.document

    async def element(self, selector: str) -> Element:
        await trio.lowlevel.checkpoint()
        self.tab.looked()
        return self.tab.elements.get(selector, Element())

    async def entry(self, by: int) -> str | None:
        await trio.lowlevel.checkpoint()
        return self.tab.entries.get(by)

    async def secrets(self) -> bool | None:
        await trio.lowlevel.checkpoint()
        return self.tab.secret

    @contextmanager
    def alone(self) -> Iterator[None]:
        if self.tab.hidden:
            raise ActionError(Code.BUSY)
        self.tab.hidden += 1
        try:
            yield
        finally:
            self.tab.hidden -= 1
            self.tab.document += 1


class Tabs:
    """Implements `SeenTabs`. The first is in front."""

    def __init__(self, *tabs: Tab) -> None:
        self.all = list(tabs)
        self.refreshed = 0

    async def refresh(self) -> None:
        await trio.lowlevel.checkpoint()
        self.refreshed += 1

    def tab(self, session_id: str | None) -> Captured | None:
        for tab in self.all:
            if not tab.hidden and session_id in (None, tab.session_id):
                return tab.captured()
        return None

    def every(self) -> list[Captured]:
        return [tab.captured() for tab in self.all if not tab.hidden]

    def exists(self, session_id: str) -> bool:
        return any(tab.session_id == session_id for tab in self.all)


class Inner:
    """The policy inside: allows the actions that it was given."""

    def __init__(self, *actions: str) -> None:
        self.actions = set(actions)
        self.version = 1
        self.holds = True
        self.ask: str | None = None

    async def __call__(
        self, action: str, args: Any, scope: str, session_id: Any, **more: Any
    ) -> Authorization:
        await trio.lowlevel.checkpoint()
        return Authorization(
            action in self.actions,
            scopes=frozenset({ACTIONS[action].internal_scope}),
            rule="inner",
            ask=self.ask,
            still_holds=lambda: self.holds,
        )


class Person:
    """Implements `Policy`, `WaitsForUser` and `KeepsLog`; a person who says no and keeps no log."""

    def __init__(self) -> None:
        self.modes: dict[str, SiteMode] = {}
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.overrides: frozenset[str] = frozenset()
        self.problem: HostProblem | None = None
        self.meanwhile: Callable[[], Awaitable[None] | None] = lambda: None
        self.does_it = False
        self.logged: list[Any] = []
        self.logs = False

    async def site_mode(self, origin: str) -> SiteMode:
        await trio.lowlevel.checkpoint()
        return self.modes.get(origin, SiteMode.OFF)

    async def allowed_sensitive_hosts(self) -> frozenset[str]:
        await trio.lowlevel.checkpoint()
        return self.overrides

    async def approve(self, kind: ApprovalKind, origin: str, summary: str) -> Answer:
        self.asked.append((kind.value, origin))
        self.words.append(summary)
        await self._wait()
        return self.answers.pop(0) if self.answers else Answer.NO

    async def wait_for_user(self, reason: str, origin: str) -> bool:
        self.asked.append(("handoff", origin))
        self.words.append(reason)
        await self._wait()
        return self.does_it

    async def log(self, entry: Any) -> bool:
        await trio.lowlevel.checkpoint()
        self.logged.append(entry)
        return self.logs

    async def _wait(self) -> None:
        await trio.lowlevel.checkpoint()
        waiting = self.meanwhile()
        if waiting is not None:
            await waiting


class Desk:
    """A host authorizer with everything around it."""

    def __init__(self, *actions: str, wait_s: float = 298.0) -> None:
        self.tab = Tab()
        self.tabs = Tabs(self.tab, Tab(OTHER, f"{BANK}/"))
        self.inner = Inner(*(actions or ACTIONS))
        self.person = Person()
        self.link = HostLink()
        self.waits = 0
        self.agreements = Agreements(lambda: self.inner.version, self.tabs.exists)
        self.authorize = HostAuthorizer(
            self.inner,
            self.person,
            self.link,
            self.tabs,
            self.agreements,
            policy_version=lambda: self.inner.version,
            wait_s=wait_s,
        )

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self.waits += 1
        yield

    async def decide(self, action: str, caller: Caller = AGENT, **args: Any) -> Authorization:
        spec, parsed = parse_arguments(action, args)
        answer = await self.authorize(
            action,
            parsed,
            spec.policy_scope,
            args.get("sessionId"),
            caller=caller,
            waiting_for_person=self.waiting,
        )
        assert answer.allowed is False or answer.still_holds is not None
        return answer

    async def denied(self, action: str, **args: Any) -> tuple[str, str | None]:
        answer = await self.decide(action, **args)
        assert answer.allowed is False
        return answer.code.value, answer.rule

    async def allowed(self, action: str, **args: Any) -> list[tuple[str, str]]:
        """What was asked for it."""
        before = len(self.person.asked)
        answer = await self.decide(action, **args)
        assert answer.grants(ACTIONS[action].internal_scope), answer
        assert answer.still_holds is not None
        assert answer.still_holds() is True
        return self.person.asked[before:]
