"""The tabs of the host's Chromium, as its backend asks for them."""

from collections.abc import Collection

from tabwarden_adapters.browser import HostedChromium
from tabwarden_adapters.host import PrivateTargets


class ChromiumTabs:
    """Implements `HostTabs`."""

    def __init__(self, chromium: HostedChromium) -> None:
        self._chromium = chromium
        self._private = PrivateTargets(chromium.default_context)

    async def start(self) -> None:
        """Take the inventory, and follow it from now on. Raises `CdpError`."""
        await self._chromium.watch(self._private.seen, self._private.gone)

    async def excluded(self) -> Collection[str]:
        """See `HostTabs`. Raises `CdpError`."""
        await self._chromium.told()
        return self._private.ids()

    async def open(self, url: str, *, background: bool) -> bool:
        """See `HostTabs`."""
        return await self._chromium.open_tab(url, background=background)
