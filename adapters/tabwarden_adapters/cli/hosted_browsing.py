"""The browser of a host: attached to by host.json, and nothing done in it that the host does not permit."""

from collections.abc import AsyncIterator, Container, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio
from tabwarden.clock import SystemClock
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.browser import AiGateway, AppControl, AttachedBrowser, guarded_attached
from tabwarden_adapters.cli.governing import Ruling
from tabwarden_adapters.cli.inspection import PolicyInspector
from tabwarden_adapters.cli.served_browser import End, ServedBrowser
from tabwarden_adapters.cli.settings import ServeSettings
from tabwarden_adapters.dlp import Scrubber
from tabwarden_adapters.dlp.scrubber import WITHHELD
from tabwarden_adapters.host import (
    Agreements,
    AllTargets,
    HandsOver,
    HostAuthorizer,
    HostFile,
    HostLink,
    HostPolicy,
    HostUnavailable,
    Releases,
    attach_host,
)

_LOGGED_CHARACTERS = 200_000  # more than any result has: a reply is 128 KiB at the most
_LOGGED_S = 5.0  # of a thread, for one text: what takes longer is not shown, and so does not leave


@asynccontextmanager
async def hosted_browsing(
    nursery: trio.Nursery,
    settings: ServeSettings,
    ruling: Ruling,
    *,
    controls: Mapping[str, AppControl],
    inspect: PolicyInspector,
    ai: AiGateway | None,
) -> AsyncIterator[ServedBrowser]:
    """See `browsing`. Raises `ConfigurationError` when there is no host to attach to."""
    try:
        policy, link, file = attach_host(Path(settings.host_home) if settings.host_home else None)
    except HostUnavailable as unavailable:
        raise ConfigurationError(f"cannot attach to a host: {unavailable.problem.value}") from None

    async def excluding() -> Container[str] | None:
        found = await policy.excluded_targets() if link.alive else AllTargets()
        return None if isinstance(found, AllTargets) else found

    async with guarded_attached(
        nursery,
        file.cdp_port,
        excluding,
        ruling.network,
        ruling.version,
        app_controls=controls,
        inspect=inspect,
        ai=ai,
    ) as browser:
        yield _browsing(browser, policy, link, file, ruling)


def _browsing(
    browser: AttachedBrowser, policy: HostPolicy, link: HostLink, file: HostFile, ruling: Ruling
) -> ServedBrowser:
    tabs = browser.tabs
    agreements = Agreements(ruling.version, tabs.exists)
    scrubber = Scrubber(characters=_LOGGED_CHARACTERS, seconds=_LOGGED_S)

    def scrub(text: str) -> str | None:
        scrubbed = scrubber(text)
        return None if scrubbed == WITHHELD else scrubbed

    releases = Releases(policy, tabs, agreements, scrub, SystemClock())
    return ServedBrowser(
        browser=browser,
        actions={**releases.around(browser.actions), "handoff": HandsOver(policy, link, tabs)},
        authorize=lambda inner: HostAuthorizer(
            inner, policy, link, tabs, agreements, policy_version=ruling.version
        ),
        watch=partial(_watch, browser, link, file),
    )


async def _watch(browser: AttachedBrowser, link: HostLink, file: HostFile, end: End) -> None:
    """Call `end` as soon as the host's process or its browser is gone, or its answers are another's."""

    async def browser_ended() -> None:
        await browser.wait_ended()
        link.end()

    async with trio.open_nursery() as watching:
        watching.start_soon(link.watch, file)
        watching.start_soon(browser_ended)
        await link.wait_ended()
        watching.cancel_scope.cancel()
    await end()
