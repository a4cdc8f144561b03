"""A site that keeps every byte that it is sent, and inspectors of bodies that a test can hold."""

from contextlib import suppress
from typing import Any

import trio
from tabwarden.errors import ActionError, Code, ContentClass
from tabwarden.model import Caller
from tabwarden_adapters.browser import HostCounts
from tabwarden_adapters.browser.cdp.generated import runtime

WORKER = "onmessage = event => eval(event.data).then(postMessage)"
SERVICE = (
    "addEventListener('install', () => skipWaiting());"
    "addEventListener('activate', event => event.waitUntil(clients.claim()));"
    "addEventListener('fetch', event => { if (event.request.method === 'POST')"
    " event.respondWith(fetch(event.request)) })"
)
FRAME = "<script>onmessage = event => eval(event.data)</script>framed"
PATIENCE_S = 30  # until something that must come has not come
SCRIPTS = {"/worker.js": WORKER, "/service.js": SERVICE}


class Receiver:
    """HTTP/1.1 on 127.0.0.1. `raw` is everything that came, `bodies` what was sent to a path, whole."""

    def __init__(self) -> None:
        self.port = 0
        self.raw = bytearray()
        self.bodies: dict[str, list[bytes]] = {}
        self._more = trio.lowlevel.ParkingLot()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def wait(self, path: str, times: int = 1) -> list[bytes]:
        """What came to `path`, once it was asked for so often."""
        with trio.fail_after(PATIENCE_S):
            while len(self.bodies.get(path, ())) < times:
                await self._more.park()
        return self.bodies[path]

    async def serve(self, stream: trio.SocketStream) -> None:
        buffer = b""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                while b"\r\n\r\n" not in buffer:
                    if not (data := await self._read(stream)):
                        return
                    buffer += data
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                fields = {one.partition(":")[0].lower(): one.partition(":")[2].strip() for one in lines[1:]}
                length = int(fields.get("content-length", 0))
                while len(buffer) < length:
                    if not (data := await self._read(stream)):
                        return
                    buffer += data
                body, buffer = buffer[:length], buffer[length:]
                path = lines[0].split(" ")[1]
                self.bodies.setdefault(path, []).append(body)
                self._more.unpark_all()
                await stream.send_all(self._answer(path))

    async def _read(self, stream: trio.SocketStream) -> bytes:
        data = bytes(await stream.receive_some())
        self.raw += data
        return data

    def _answer(self, path: str) -> bytes:
        status, text = "200 -", SCRIPTS.get(path, FRAME)
        fields = {
            "Content-Type": "text/javascript" if path in SCRIPTS else "text/html; charset=utf-8",
            "Content-Length": str(len(text)),
            "Access-Control-Allow-Origin": "*",
        }
        if path.startswith("/again"):
            status, fields["Location"] = "307 -", path.replace("/again", "/twice")
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"HTTP/1.1 {status}\r\n{head}\r\n{text}".encode()


class Watched(HostCounts):
    """Counts that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._more = trio.lowlevel.ParkingLot()

    def count(self, host: str, outcome: Any) -> None:
        super().count(host, outcome)
        self._more.unpark_all()

    async def wait(self, outcome: Any, times: int) -> None:
        with trio.fail_after(PATIENCE_S):
            while sum(count for (_, one), count in self.counts().items() if one is outcome) < times:
                await self._more.park()


class Looker:
    """Implements `BodyInspector`: denies what `passing` does not name; with `held`, only once that is set."""

    def __init__(self, *passing: str) -> None:
        self.passing = passing
        self.wanted = True
        self.asked: list[str] = []
        self.held: trio.Event | None = None
        self.callers: set[Caller | None] = set()
        self._more = trio.lowlevel.ParkingLot()

    def looks_at(self, direction: str) -> bool:
        assert direction == "to-site"
        return self.wanted

    async def wait_asked(self, times: int = 1) -> None:
        with trio.fail_after(PATIENCE_S):
            while len(self.asked) < times:
                await self._more.park()

    async def inspect(self, text: str, *, direction: str, caller: Caller | None = None) -> str | None:
        if direction != "to-site":
            return None
        self.asked.append(text)
        self.callers.add(caller)
        self._more.unpark_all()
        if self.held is not None:
            await self.held.wait()
        if text not in self.passing:
            raise ActionError(
                Code.CONTENT_DENIED, rule="dlp.corporate:x", content_class=ContentClass.CORPORATE
            )
        return None


async def evaluate(tab: Any, expression: str) -> Any:
    command = runtime.evaluate(
        expression=expression, await_promise=True, return_by_value=True, user_gesture=True
    )
    with trio.move_on_after(PATIENCE_S):
        return (await tab.session.call(command)).result.value
    raise AssertionError(f"no answer to {expression[:300]}")
