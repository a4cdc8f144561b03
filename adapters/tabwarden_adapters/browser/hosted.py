"""A Chromium of our own that engines may attach to: its debugging port, and each of its targets as it comes.

It answers on both at once: we have its pipe, engines its port on 127.0.0.1. CDP has no authentication, so
whatever runs on this machine can use that port, whoever's it is. Web pages cannot: Chromium refuses
WebSockets that have an `Origin`.
"""

import os
import re
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from tabwarden.errors import ConfigurationError
from tabwarden.private_files import open_private_directory

from tabwarden_adapters.browser.cdp import CdpError, Command, EventsLost, Record, Session
from tabwarden_adapters.browser.cdp.generated import target
from tabwarden_adapters.browser.chromium import launch_chromium

PORT_FILE = "DevToolsActivePort"
PORT_S = 10.0  # Chromium writes the file before it answers on its pipe, or soon after
PORT_POLL_S = 0.02
MAX_PORT_FILE = 256  # a port, and the path of the browser's own WebSocket
ALL = [target.FilterEntry()]  # also tabs and the browser's own pages, which the default leaves out
BLANK = "about:blank"

_WRITTEN = re.compile(rb"([1-9][0-9]{0,4})\n/devtools/browser/[0-9a-f-]{36}\n?")

TargetSeen = Callable[[str, str, str | None], None]
TargetGone = Callable[[str], None]


class _Contexts(Record, frozen=True, kw_only=True):
    """`Target.getBrowserContextsResult`, as far as it is used."""

    default_browser_context_id: str | None = None


class HostedChromium:
    """Made by `hosted_chromium`. `debugging_port` is on 127.0.0.1, `default_context` the browser context of
    ordinary windows."""

    def __init__(self, root: Session, product: str, port: int, default_context: str) -> None:
        self._root = root
        self._whole = True
        self.product = product
        self.debugging_port = port
        self.default_context = default_context

    async def watch(self, seen: TargetSeen, gone: TargetGone) -> None:
        """Tell of every target, now there or coming: its id, its type and its browser context; and of its
        end. Neither may block. Raises `CdpError`."""
        self._root.on(
            target.TargetCreated,
            lambda event: seen(
                event.target_info.target_id, event.target_info.type, event.target_info.browser_context_id
            ),
        )
        self._root.on(target.TargetDestroyed, lambda event: gone(event.target_id))
        self._root.on_lost = self._lost
        await self._root.call(target.set_discover_targets(discover=True, filter=ALL))

    async def told(self) -> None:
        """Return once `watch` has told of every target that there was when this was called.

        Raises `CdpError` when that cannot be said: Chromium is gone, or an event was too large to be read.
        """
        # Its answer comes behind all that was told before.
        contexts = await self._root.call(_get_browser_contexts())
        if not self._whole or contexts.default_browser_context_id != self.default_context:
            raise EventsLost

    async def open_tab(self, url: str, *, background: bool) -> bool:
        """Open a tab in an ordinary window. False when Chromium does not."""
        try:
            await self._root.call(target.create_target(url=url, background=background))
        except CdpError:
            return False
        return True

    async def open_private(self) -> bool:
        """Open a window with a browser context of its own, which nothing of the others is in. False when
        Chromium does not."""
        try:
            made = await self._root.call(target.create_browser_context())
            context = made.browser_context_id
            await self._root.call(
                target.create_target(url=BLANK, browser_context_id=context, new_window=True)
            )
        except CdpError:
            return False
        return True

    async def wait_ended(self) -> None:
        """Return when Chromium has ended."""
        await self._root.wait_ended()

    def _lost(self, method: str) -> None:
        if method.startswith("Target."):
            self._whole = False


@asynccontextmanager
async def hosted_chromium(nursery: trio.Nursery, *, headless: bool) -> AsyncIterator[HostedChromium]:
    """Run it, with a new and empty profile and a free port, while the block runs. As `launch_chromium`.

    Raises `ConfigurationError` when it does not start, or does not say what is needed of it.
    """
    async with launch_chromium(
        nursery, headless=headless, extra_flags=("--remote-debugging-port=0",)
    ) as chromium:
        root = chromium.connection.root
        try:
            contexts = await root.call(_get_browser_contexts())
        except CdpError:
            contexts = _Contexts()
        if contexts.default_browser_context_id is None:
            raise ConfigurationError(
                "this Chromium does not say which of its tabs are private: install a newer one"
            )
        port = await _chosen_port(chromium.profile)
        yield HostedChromium(root, chromium.product, port, contexts.default_browser_context_id)


def _get_browser_contexts() -> Command[_Contexts]:
    """`Target.getBrowserContexts`."""
    return Command("Target.getBrowserContexts", {}, _Contexts)


async def _chosen_port(folder: Path | None) -> int:
    """The port that Chromium chose, from the file in its profile."""
    if folder is not None:
        with trio.move_on_after(PORT_S):
            # Nothing tells when the file is whole.
            while (port := read_port(folder / "profile")) is None:  # noqa: ASYNC110
                await trio.sleep(PORT_POLL_S)
            return port
    raise ConfigurationError("Chromium did not open its debugging port: start it by hand to see why")


def read_port(profile: Path) -> int | None:
    """What the file in a profile says; None while it is not there or not whole.

    Raises `ConfigurationError` when the folder is not this user's alone, or the file is no plain file of
    this user's with one name.
    """
    directory = open_private_directory(profile)
    try:
        try:
            file = os.open(
                PORT_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise ConfigurationError(f"Chromium's {PORT_FILE} cannot be read: {reason}") from None
    finally:
        os.close(directory)
    try:
        state = os.fstat(file)
        # Its mode is Chromium's choice: nobody else gets into the folder.
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_nlink != 1:
            raise ConfigurationError(f"Chromium's {PORT_FILE} is not the file that it writes: look who did")
        data = os.read(file, MAX_PORT_FILE + 1)
    finally:
        os.close(file)
    written = _WRITTEN.fullmatch(data)
    port = int(written[1]) if written else 0
    return port if 1 <= port <= 65_535 else None
