"""A page of the test's own, acted upon as an agent would, and looked into as its author would."""

from typing import Any

import pytest
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser.cdp.generated import runtime

from tests.browser.agent import Agent, Call
from tests.browser.site import Site


class Ending:
    """How an action ended: its code, the rule for the audit, and what is known of its effects."""

    def __init__(self, error: ActionError, call: Call) -> None:
        self.code = error.code
        self.rule = error.rule
        begun, done = "begin" in call.effects, "done" in call.effects
        self.effect = "committed" if done else "unknown" if begun else "not_started"

    def __repr__(self) -> str:
        return f"{self.code} {self.rule} {self.effect}"


class Stage:
    """`show` a page, `do` actions on it, `js` what became of it."""

    def __init__(self, agent: Agent, site: Site) -> None:
        self.agent = agent
        self.site = site
        self._watched: Any = None
        self.shown = ""

    async def show(self, markup: str, path: str = "/page") -> None:
        self.site.pages[path] = self.shown = markup
        while True:
            try:
                await self.agent.call("navigate", url=self.site.url(path))
            except ActionError as error:
                if error.code is not Code.STALE:
                    raise  # stale: word of an earlier switch of tabs came in between
            else:
                return

    async def do(self, action: str, selector: str | None = None, /, **arguments: Any) -> dict[str, Any]:
        if selector is not None:
            arguments["selector"] = selector
        result: dict[str, Any] = await self.agent.call(action, **arguments)
        assert result.pop("completed")
        return result

    async def no(
        self, action: str, selector: str | None = None, /, call: Call | None = None, **arguments: Any
    ) -> Ending:
        if selector is not None:
            arguments["selector"] = selector
        call = call or Call(action)
        try:
            await self.agent.call(action, call, **arguments)
        except ActionError as error:
            return Ending(error, call)
        raise AssertionError(f"{action} {selector} succeeded on {self.shown}")

    async def denied(self, action: str, selector: str, rule: str, /, **arguments: Any) -> None:
        """Denied for this reason, and nothing was begun."""
        ending = await self.no(action, selector, **arguments)
        assert (ending.code, ending.rule, ending.effect) == (Code.TARGET_DENIED, rule, "not_started"), (
            selector
        )

    async def at(self, path: str) -> None:
        """Wait until the tab in front shows this path, loaded."""
        tab = self.tab
        while not (tab.document.url == self.site.url(path) and tab.document.loaded and tab.in_flight is None):
            await tab.change(tab.version)

    def watch(self, tab: Any) -> None:
        """From now on look into this tab, whichever is in front."""
        self._watched = tab

    @property
    def tab(self) -> Any:
        return self._watched or self.agent.host._inventory.find(None)

    async def js(self, expression: str) -> Any:
        """Evaluated in the page's own world."""
        result = await self.tab.session.call(
            runtime.evaluate(expression=expression, return_by_value=True, await_promise=True)
        )
        assert result.exception_details is None, result.exception_details
        return result.result.value


@pytest.fixture
async def stage(agent, site):
    return Stage(agent, site)
