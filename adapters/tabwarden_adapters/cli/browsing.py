"""The browser of a served broker: one of its own, or the one of a host that asks a person."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import trio
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.browser import (
    AiGateway,
    AppControl,
    EgressCounters,
    guarded_chromium,
)
from tabwarden_adapters.cli.governing import Ruling
from tabwarden_adapters.cli.inspection import PolicyInspector
from tabwarden_adapters.cli.served_browser import ServedBrowser
from tabwarden_adapters.cli.settings import ServeSettings


@asynccontextmanager
async def browsing(
    nursery: trio.Nursery,
    settings: ServeSettings,
    ruling: Ruling,
    *,
    counters: EgressCounters,
    controls: Mapping[str, AppControl],
    inspect: PolicyInspector,
    ai: AiGateway | None,
) -> AsyncIterator[ServedBrowser]:
    """The browser while the block runs. Raises `ConfigurationError`."""
    if settings.host:
        if ruling.browser_context != "shared":
            raise ConfigurationError(
                "browser_context: a host's browser is its person's own: say shared (also in a signed policy, "
                "as agents.browserContext)"
            )
        if settings.headless:
            raise ConfigurationError("headless: a host's browser runs already: leave out one of the two")
        # Only here: the host room's libraries would slow down every other start.
        from tabwarden_adapters.cli.hosted_browsing import hosted_browsing

        async with hosted_browsing(
            nursery, settings, ruling, controls=controls, inspect=inspect, ai=ai
        ) as hosted:
            yield hosted
        return
    async with guarded_chromium(
        nursery,
        ruling.network,
        ruling.version,
        context=ruling.browser_context,
        headless=settings.headless,
        counters=counters,
        app_controls=controls,
        inspect=inspect,
        ai=ai,
    ) as browser:
        yield ServedBrowser(browser=browser, actions=browser.actions)
