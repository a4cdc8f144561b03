"""Serves the figures to scrapers, from a thread with an event loop of its own.

Whatever scrapers do, the broker's loop never waits for them, and what they can take is bounded: connections
at once and in a second, bytes and time of each, and how often the figures are read.
"""

import logging
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import Final

import trio

from tabwarden_observability.scrape_request import MAX_HEAD, ScrapeRefused, answer, judge, own_hosts, whole

_LOG: Final = logging.getLogger("tabwarden.observability")
_READ_BYTES: Final = 4096
_BACKLOG: Final = 16


@dataclass(frozen=True, slots=True)
class ScrapeLimits:
    """How much scrapers may take."""

    connections: int = 8  # one more ends the oldest, so that idle ones keep nobody out
    gap_s: float = 0.05  # between two connections: a flood gets 20 answers a second and no more
    request_s: float = 5.0  # from being let in to the last byte of the answer
    fresh_s: float = 0.5  # reading takes some ms of the interpreter; those who ask within that share it


LIMITS: Final = ScrapeLimits()


class ScrapeServer:
    """Listens from when it is made, answers from `start` to `stop`. `read` gives the figures in Prometheus'
    text format; it is called from the thread, and must not wait."""

    def __init__(
        self, address: str, port: int, read: Callable[[], bytes], limits: ScrapeLimits = LIMITS
    ) -> None:
        """`address`: IPv4 or IPv6 in digits; port 0 takes any. Raises OSError when they cannot be had."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, port), family=family, backlog=_BACKLOG)
        self.port: Final[int] = self._socket.getsockname()[1]
        self._hosts = own_hosts(address, self.port)
        self._read = read
        self._limits = limits
        self._held: tuple[float, bytes] | None = None
        self._guests: deque[trio.CancelScope] = deque()
        self._lock = threading.Lock()
        self._stopping = False
        self._stop: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name="tabwarden-scrapes", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Have the thread drop all connections and end. Does not block."""
        with self._lock:
            self._stopping = True
            if self._stop is not None:
                with suppress(trio.RunFinishedError):
                    self._stop()
        if self._thread.ident is None:
            self._socket.close()

    def stop(self, timeout_s: float) -> bool:
        """Blocks for `timeout_s` at most. True when the thread has ended."""
        self.ask_to_stop()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except Exception:  # a fault of ours; its text may have a peer's bytes in it
            _LOG.error("metrics are not served any more: please report this")
        finally:
            self._socket.close()

    async def _serve(self) -> None:
        token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as scope:
            with self._lock:
                if self._stopping:
                    return
                self._stop = lambda: token.run_sync_soon(scope.cancel)
            listening = trio.SocketListener(trio.socket.from_stdlib_socket(self._socket))
            async with listening, trio.open_nursery() as nursery:
                while True:
                    # OSError: out of descriptors, or a peer that is gone again.
                    with suppress(OSError):
                        self._let_in(nursery, await listening.accept())
                    await trio.sleep(self._limits.gap_s)

    def _let_in(self, nursery: trio.Nursery, stream: trio.SocketStream) -> None:
        guests = self._guests
        if len(guests) >= self._limits.connections:
            guests.popleft().cancel()
        scope = trio.CancelScope(deadline=trio.current_time() + self._limits.request_s)
        guests.append(scope)
        nursery.start_soon(self._attend, stream, scope)

    async def _attend(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        try:
            with scope, suppress(trio.BrokenResourceError):
                await stream.send_all(self._answer(await _request(stream)))
                await _farewell(stream)
        finally:
            stream.socket.close()
            with suppress(ValueError):  # put out by another
                self._guests.remove(scope)

    def _answer(self, request: bytes | ScrapeRefused) -> bytes:
        try:
            if isinstance(request, ScrapeRefused):
                raise request
            judge(request, self._hosts)
            return answer(HTTPStatus.OK, self._figures())
        except ScrapeRefused as refused:
            return answer(refused.status)
        except Exception:
            _LOG.error("metrics could not be read: please report this")
            return answer(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _figures(self) -> bytes:
        held = self._held
        if held is None or monotonic() - held[0] > self._limits.fresh_s:
            figures = self._read()
            held = self._held = (monotonic(), figures)
        return held[1]


async def _request(stream: trio.SocketStream) -> bytes | ScrapeRefused:
    """All that came until a request was whole, or why it never will be."""
    data = b""
    try:
        while not whole(data):
            more = await stream.receive_some(_READ_BYTES)
            if not more:
                return ScrapeRefused(HTTPStatus.BAD_REQUEST)
            data += more
    except ScrapeRefused as refused:
        return refused
    return data


async def _farewell(stream: trio.SocketStream) -> None:
    """Let the answer arrive: closing while the peer still sends would throw it away at the other end."""
    await stream.send_eof()
    left = 8 * MAX_HEAD
    while left > 0 and (more := await stream.receive_some(_READ_BYTES)):
        left -= len(more)
