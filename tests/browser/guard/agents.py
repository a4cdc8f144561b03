"""Agents on a guarded browser: policy by caller, and calls as the pipeline makes them."""

from collections.abc import Mapping
from typing import Any

from tabwarden.actions import parse_arguments
from tabwarden.authority.projection import project
from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller
from tabwarden.ports import ActionAdapter

from tests.browser.agent import Call


class Rules:
    """A `NetworkPolicy`. `pages`, `resources` and `named` hold `host:port` by principal."""

    def __init__(self) -> None:
        self.pages: dict[str | None, set[str]] = {}
        self.resources: dict[str | None, set[str]] = {}
        self.patterns: set[str] = set()  # allowed, but only as if by a pattern

    def destination_allowed(self, caller: Caller, href: str) -> bool:
        return href.split("/")[2] in self.pages.get(caller.principal_id, set()) | self.patterns

    def resource_allowed(self, caller: Caller, href: str) -> bool:
        listed = href.split("/")[2] in self.resources.get(caller.principal_id, set())
        return listed or self.destination_allowed(caller, href)

    def endpoint_allowed(self, caller: Caller, host: str, port: int) -> bool:
        if caller.principal_id is None:  # the whole browser: what anybody may
            everybody = set().union(*self.pages.values(), *self.resources.values(), self.patterns)
            return f"{host}:{port}" in everybody
        return self.resource_allowed(caller, f"http://{host}:{port}/")

    def endpoint_named(self, caller: Caller, host: str, port: int) -> bool:
        return self.endpoint_allowed(caller, host, port) and f"{host}:{port}" not in self.patterns


class GuardedAgent:
    """One caller of `adapters`."""

    def __init__(self, name: str, adapters: Mapping[str, ActionAdapter]) -> None:
        self.caller = Caller(name, 1)
        self._adapters = adapters

    async def call(self, action: str, **arguments: Any) -> Any:
        spec, parsed = parse_arguments(action, arguments)
        call = Call(action)
        call.caller = self.caller
        return project(spec, await self._adapters[action](parsed, call))

    async def fails(self, action: str, **arguments: Any) -> Code:
        try:
            await self.call(action, **arguments)
        except ActionError as error:
            return error.code
        raise AssertionError(f"{action} succeeded")
