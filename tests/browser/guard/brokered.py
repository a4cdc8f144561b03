"""A whole broker in front of a guarded browser, and agents as their authors write them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from tabwarden import AgentClient, AgentControl, CallFailed, Grant, Limits, start_agent_control
from tabwarden.ports import Clock
from tabwarden_adapters.browser import GrantEnds, GuardedBrowser, guarded_chromium

from tests.browser.guard.agents import Rules
from tests.support.fakes import AllowOnly, MemoryAudit

PAGE_ACTIONS = ("sessions", "navigate", "back", "forward", "reload", "read", "inspect")
ACTIONS = (
    *PAGE_ACTIONS,
    "scroll",
    "click",
    "type",
    "select",
    "check",
    "tabs:create",
    "tabs:activate",
    "tabs:close",
)


@dataclass(frozen=True, slots=True)
class Brokered:
    """What a host holds."""

    browser: GuardedBrowser
    control: AgentControl
    audit: MemoryAudit
    rules: Rules
    clock: Clock | None

    @asynccontextmanager
    async def agent(self, name: str, *hosts: str, expires_at_ms: int | None = None) -> AsyncIterator["Agent"]:
        """A new credential of one of the grants, good for `hosts`."""
        self.rules.pages[name] = set(hosts)
        descriptor = await self.control.issue_principal(name, 1, expires_at_ms)
        async with AgentClient(descriptor, deadline_s=60.0, clock=self.clock) as client:
            yield Agent(client)


class Agent:
    """One caller."""

    def __init__(self, client: AgentClient) -> None:
        self.client = client

    async def call(self, action: str, **arguments: Any) -> Any:
        return await self.client.call(action, arguments)

    async def does(self, action: str, **arguments: Any) -> dict[str, Any]:
        """`call` for one that completes, without saying so again."""
        result: dict[str, Any] = await self.call(action, **arguments)
        assert result.pop("completed") is True
        return result

    async def fails(self, action: str, **arguments: Any) -> str:
        with pytest.raises(CallFailed) as failed:
            await self.call(action, **arguments)
        return failed.value.code


@asynccontextmanager
async def brokered(
    nursery: trio.Nursery, context: Any, *principals: str, clock: Clock | None = None
) -> AsyncIterator[Brokered]:
    """Run all of it while the block runs."""
    rules, audit = Rules(), MemoryAudit()
    flags = ("--disable-popup-blocking",)  # some pages of the tests open tabs by themselves
    async with guarded_chromium(nursery, rules, lambda: 1, context=context, extra_flags=flags) as browser:
        control = await start_agent_control(
            nursery,
            authorize=AllowOnly(*ACTIONS),
            actions=browser.actions,
            audit=GrantEnds(audit, browser.guard),
            identity_mode="individual",
            limits=Limits(requests_per_minute=10_000),
            timeout=60.0,
            clock=clock,
        )
        browser.guard.protect(int(control.address.rpartition(":")[2]))
        await control.reconcile_principals([Grant(name, 1) for name in principals])
        yield Brokered(browser, control, audit, rules, clock)
        await control.close()
