"""A tiny HTTP/1.1 site on 127.0.0.1 that remembers what it was asked."""

from collections.abc import Awaitable, Callable

import trio

Answer = tuple[int, dict[str, str], str]
Page = str | Answer | Callable[[], Awaitable[Answer]]


class Site:
    """`pages` maps a path to HTML, to an answer, or to a function that may take its time."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[str] = []
        self.port = 0
        self._asked = trio.lowlevel.ParkingLot()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def wait_asked(self, line: str) -> None:
        """Wait for a request line without its version, e.g. `GET /slow`."""
        while line not in self.asked:
            await self._asked.park()

    async def serve(self, stream: trio.SocketStream) -> None:
        buffer = b""
        try:
            while True:
                while b"\r\n\r\n" not in buffer:
                    received = await stream.receive_some()
                    if not received:
                        return
                    buffer += received
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                length = next(
                    (int(x.split(":")[1]) for x in lines if x.lower().startswith("content-length")), 0
                )
                while len(buffer) < length:
                    buffer += await stream.receive_some()
                buffer = buffer[length:]
                line = lines[0].rpartition(" ")[0]
                del head, lines  # of megabytes, perhaps, and the next one may be long in coming
                await stream.send_all(await self._answer(line))
                del line
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _answer(self, line: str) -> bytes:
        self.asked.append(line)
        self._asked.unpark_all()
        page = self.pages.get(line.partition(" ")[2].partition("?")[0], (404, {}, "not here"))
        if callable(page):
            page = await page()
        status, headers, body = (200, {}, page) if isinstance(page, str) else page
        payload = body.encode()
        fields = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(payload)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"HTTP/1.1 {status} -\r\n{head}\r\n".encode() + payload


def redirect(location: str) -> Answer:
    return 302, {"Location": location}, ""
