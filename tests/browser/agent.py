"""What stands for the broker in these tests: a call's context, and a destination policy."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tabwarden.actions import parse_arguments
from tabwarden.authority.projection import project
from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller, Phase, TraceOutcome
from tabwarden.ports import ActionAdapter
from tabwarden_adapters.browser import ChromiumHost, create_chromium_adapters

ANYBODY = Caller("agent-1", 1)


class Trace:
    """Implements `RequestTrace`; keeps the names of finished children."""

    trace_id = "0" * 32
    span_id = "0" * 16

    def __init__(self) -> None:
        self.children: list[str] = []

    def adopt(self, traceparent: str) -> None: ...

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        yield

    @contextmanager
    def child(self, name: str) -> Iterator[None]:
        yield
        self.children.append(name)

    def annotate(self, **attributes: str | int | bool | None) -> None: ...

    def end(self, outcome: TraceOutcome, code: str | None = None) -> None: ...


class Call:
    """Implements `CallContext`. `ended`, once set, is what `check` raises."""

    role = "agent"
    scopes: frozenset[str] = frozenset()

    def __init__(self, action: str) -> None:
        self.caller = ANYBODY
        self.action = action
        self.trace = Trace()
        self.effects: list[str] = []
        self.ended: Code | None = None

    def effects_begin(self) -> None:
        self.effects.append("begin")

    def effects_done(self) -> None:
        self.effects.append("done")

    def check(self) -> None:
        if self.ended is not None:
            raise ActionError(self.ended)


class Agent:
    """Calls actions as the pipeline does: arguments checked by the table, results projected by it.

    Hosts in `forbidden` are denied, and `policy` is the policy's version.
    """

    def __init__(self) -> None:
        self.forbidden = {"forbidden.localhost", "localhost"}
        self.judged: list[str] = []
        self.policy = 1
        self.host: ChromiumHost
        self.adapters: Mapping[str, ActionAdapter]

    def attach(self, host: ChromiumHost) -> None:
        self.host = host
        self.adapters = create_chromium_adapters(host, destination_allowed=self.allowed)

    def allowed(self, caller: Caller, href: str, /) -> bool:
        assert caller == ANYBODY
        self.judged.append(href)
        return href.split("/")[2].rpartition(":")[0] not in self.forbidden

    async def call(self, action: str, call: Call | None = None, **arguments: Any) -> Any:
        spec, parsed = parse_arguments(action, arguments)
        return project(spec, await self.adapters[action](parsed, call or Call(action)))

    async def fails(self, action: str, call: Call | None = None, **arguments: Any) -> Code:
        try:
            await self.call(action, call, **arguments)
        except ActionError as error:
            return error.code
        raise AssertionError(f"{action} succeeded")
