"""A third party's browser in memory. It allows nothing until it is told to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import trio
from tabwarden.actions import parse_arguments
from tabwarden.authority.projection import project
from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller
from tabwarden.ports import ActionAdapter
from tabwarden_adapters.browser import (
    Acted,
    AdapterEvent,
    CapturedContext,
    Deed,
    Operation,
    SessionInfo,
    create_agent_adapters,
)
from tabwarden_adapters.browser import page as scripts

from tests.browser.agent import Call

ONE = "00000000-0000-4000-8000-000000000001"
TWO = "00000000-0000-4000-8000-000000000002"
ADDRESS = "https://allowed.test/page"
READ = {"text": "what shows", "next": None, "frames": [], "cut": False}
CONTROL = {"ref": "r0123456789abcdef.1", "role": "button", "name": "Send", "selector": "#send"}
CONTROLS = {"controls": [CONTROL], "next": None, "frames": [], "cut": False}
BOOKMARKS = {"managed": [], "personal": [], "revision": 1, "policyVersion": 1, "canMutate": False}
Happening = Callable[[], object]


@dataclass(eq=False)
class FakeTab:
    """`generation` counts everything that makes a capture another one."""

    id: str
    url: str = ADDRESS
    title: str = "Title"
    generation: int = 0


@dataclass
class FakePage:
    """Implements `Page`."""

    host: "FakeHost"
    tab: FakeTab
    url: str

    async def run(self, script: str, arguments: Sequence[Any], operation: Operation, /) -> Any:
        assert arguments[0] == self.url
        return await self.host.answer("run", READ if script == scripts.READ else CONTROLS)

    async def act(self, deed: Deed, operation: Operation, /) -> Any:
        operation.effects_begin()
        result = await self.host.answer("act", Acted(0, ()))
        self.host.done.append(type(deed).__name__)
        operation.effects_done()
        return result


@dataclass
class FakeHost:
    """`instead` replaces the answer at a point (an exception is raised), `meanwhile` happens while a callback
    is waited for, and at `halt` it never comes back. `passed` are the points that were reached."""

    tabs: dict[str, FakeTab] = field(default_factory=lambda: {ONE: FakeTab(ONE), TWO: FakeTab(TWO)})
    front: str | None = ONE
    allowed_hosts: set[str] = field(default_factory=set)
    version: int = 1
    interactive: bool | None = None
    instead: dict[str, Any] = field(default_factory=dict)
    meanwhile: dict[str, Happening] = field(default_factory=dict)
    audited: bool = True  # else the broker's audit is the only one
    careless: bool = False  # judges no address itself
    halt: str = ""
    halted: trio.Event = field(default_factory=trio.Event)
    passed: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    inspected: list[tuple[str, str]] = field(default_factory=list)
    events: list[AdapterEvent] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    verdict: Any = True  # what the predicate answers for an allowed host
    current: Any = True  # what context_current answers for a capture that is current
    change: Callable[[CapturedContext], Any] = lambda context: context
    change_fresh: Callable[[CapturedContext], Any] = lambda context: context

    async def answer(self, point: str, value: Any) -> Any:
        self.passed.append(point)
        if point == self.halt:
            self.halted.set()
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        self.meanwhile.get(point, lambda: None)()
        value = self.instead.get(point, value)
        if isinstance(value, BaseException):
            raise value
        return value

    # ---- the contract -------------------------------------------------------------------------------

    def get_context(self, session_id: str | None, /) -> Any:
        tab = self.tabs.get(session_id or self.front or "")
        return None if tab is None else self.change(self.context(tab))

    def context(self, tab: FakeTab) -> CapturedContext:
        return CapturedContext(
            session_id=tab.id,
            ready=True,
            foreground=tab.id == self.front,
            interactive=self.interactive,
            token=(tab, tab.generation, tab.id == self.front),
            policy={"anything": "the host's"},
            policy_version=self.version,
            page=FakePage(self, tab, tab.url),
            destination_allowed=self.destination_allowed,
        )

    def destination_allowed(self, caller: Caller, href: str, /) -> Any:
        self.judged.append(href)
        if href.split("/")[2] not in self.allowed_hosts:
            return False
        if isinstance(self.verdict, BaseException):
            raise self.verdict
        return self.verdict

    def context_current(self, token: Any, /) -> Any:
        tab, generation, in_front = token
        there = self.tabs.get(tab.id) is tab and tab.generation == generation
        return there and (not in_front or self.front == tab.id) and self.current

    async def get_sessions(self) -> Any:
        listed = [SessionInfo(tab.id, tab.title, tab.id == self.front, tab.url) for tab in self.tabs.values()]
        return await self.answer("get_sessions", listed)

    async def navigate(self, url: str, captured: CapturedContext, operation: Operation, /) -> Any:
        return await self._load("navigate", url, captured, operation)

    async def history(self, by: int, captured: CapturedContext, operation: Operation, /) -> Any:
        return await self._load("history", f"https://allowed.test/{by}", captured, operation)

    async def reload(self, captured: CapturedContext, operation: Operation, /) -> Any:
        return await self._load("reload", captured.page.url, captured, operation)

    async def _load(self, point: str, url: str, captured: CapturedContext, operation: Operation) -> Any:
        operation.check()
        if not (self.careless or operation.allowed(url)):
            raise ActionError(Code.DESTINATION_DENIED)
        operation.effects_begin()
        await self.answer(point, None)
        tab = self.tabs[captured.session_id]
        tab.url, tab.generation = url, tab.generation + 1
        self.done.append(point)
        operation.effects_done()
        return self.instead.get("fresh", self.change_fresh(self.context(tab)))

    async def ai(self, prompt: str, captured: CapturedContext, operation: Operation, /) -> Any:
        self.done.append("ai")
        return await self.answer("ai", "an answer")

    async def audit(self, event: AdapterEvent, /) -> None:
        await self.answer(f"audit {event.outcome}", None)
        self.events.append(event)

    async def inspect(self, text: str, *, direction: str, caller: Caller | None = None) -> Any:
        """Implements `Inspector`."""
        self.inspected.append((direction, text))
        return await self.answer(f"inspect {direction}", None)

    async def bookmarks_list(self, arguments: Any, operation: Operation, policy_version: int, /) -> Any:
        return await self.answer("bookmarks:list", {**BOOKMARKS, "policyVersion": policy_version})

    async def tabs_close(self, arguments: Any, operation: Operation, policy_version: int, /) -> Any:
        operation.effects_begin()
        await self.answer("tabs:close", None)
        del self.tabs[arguments.session_id]
        self.done.append("tabs:close")
        return {"completed": True}

    # ---- what a broker does -------------------------------------------------------------------------

    def adapters(self, **changes: Any) -> Mapping[str, ActionAdapter]:
        callbacks: dict[str, Any] = {
            "get_context": self.get_context,
            "get_sessions": self.get_sessions,
            "context_current": self.context_current,
            "navigate": self.navigate,
            "history": self.history,
            "reload": self.reload,
            "inspect": self,
            "ai": self.ai,
            "audit": self.audit if self.audited else None,
            "app_controls": {"bookmarks:list": self.bookmarks_list, "tabs:close": self.tabs_close},
            "policy_version": lambda: self.version,
        }
        return create_agent_adapters(**{**callbacks, **changes})

    async def call(self, action: str, call: Call | None = None, /, **arguments: Any) -> Any:
        spec, parsed = parse_arguments(action, arguments)
        return project(spec, await self.adapters()[action](parsed, call or Call(action)))

    async def fails(self, action: str, call: Call | None = None, /, **arguments: Any) -> ActionError:
        try:
            await self.call(action, call, **arguments)
        except ActionError as error:
            return error
        raise AssertionError(f"{action} succeeded")

    # ---- happenings ---------------------------------------------------------------------------------

    def moves(self) -> None:
        """Every tab goes to another document."""
        for tab in self.tabs.values():
            tab.generation += 1

    def policy_changes(self) -> None:
        self.version += 1

    def tab_goes(self) -> None:
        del self.tabs[ONE]

    def switches(self) -> None:
        self.front = TWO


def open_host() -> FakeHost:
    """One that allows its own pages."""
    return FakeHost(allowed_hosts={"allowed.test"})


def changed(**changes: Any) -> Callable[[CapturedContext], CapturedContext]:
    return lambda context: replace(context, **changes)


# Every action with arguments that work, and the host's points on its way, in order.
ACTIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "sessions": ({}, ["get_sessions", "inspect from-page", "inspect from-page"]),
    "navigate": ({"url": "https://allowed.test/next"}, ["inspect to-page", "navigate"]),
    "back": ({}, ["history"]),
    "forward": ({}, ["history"]),
    "reload": ({}, ["reload"]),
    "read": ({}, ["run", "inspect from-page"]),
    "inspect": ({}, ["run", "inspect from-page"]),
    "scroll": ({"y": 1}, ["act"]),
    "click": ({"selector": "#send"}, ["act"]),
    "type": ({"selector": "#send", "text": "a"}, ["inspect to-page", "act"]),
    "select": ({"selector": "#send", "value": "a"}, ["act"]),
    "check": ({"selector": "#send", "checked": True}, ["act"]),
    "ai": ({"prompt": "what is it?"}, ["inspect to-model", "ai", "inspect from-model"]),
    "bookmarks:list": ({}, ["bookmarks:list"]),
    "tabs:close": ({"sessionId": TWO}, ["tabs:close"]),
}
AWAITS = [
    (action, point)
    for action, (_, points) in ACTIONS.items()
    for point in dict.fromkeys(["audit started", *points, "audit completed"])
]
UNAUDITED = [(action, point) for action, point in AWAITS if not point.startswith("audit")]
IN_A_TAB = [name for name in ACTIONS if name not in ("sessions", "bookmarks:list")]
NOT_STARTED, UNKNOWN, COMMITTED = False, None, True


def effect(error: ActionError, call: Call) -> bool | None:
    """What the broker makes of an ending (`Call.fail` in the service): what the call was told comes first."""
    if "done" in call.effects:
        return COMMITTED
    return UNKNOWN if "begin" in call.effects else error.committed
