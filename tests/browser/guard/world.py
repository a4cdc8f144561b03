"""The two sides of the matrix: a site that serves what the table says, and a host that only counts."""

import json
import socket
from collections.abc import Callable
from contextlib import suppress

import trio

from tests.browser.guard.kinds import KINDS, Kind

SITE = "site.localhost"
CROSS_SITE = "other.localhost"


class Deaf:
    """A TCP and a UDP socket on one port of 127.0.0.1 that nobody answers: the kernel keeps what comes."""

    def __init__(self) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.tcp.setblocking(False)
        self.port: int = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.udp.setblocking(False)

    def arrived(self) -> tuple[int, int]:
        """How many TCP connections and UDP packets have come so far."""
        connections = packets = 0
        while True:
            try:
                self.tcp.accept()[0].close()
                connections += 1
            except BlockingIOError:
                break
        while True:
            try:
                self.udp.recv(2048)
                packets += 1
            except BlockingIOError:
                break
        return connections, packets

    def close(self) -> None:
        self.tcp.close()
        self.udp.close()


class Seen:
    """Names of kinds that something was noted of; `wait` for all of some."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._more = trio.lowlevel.ParkingLot()

    def add(self, host: str) -> None:
        self.names.add(host.partition(".")[0])
        self._more.unpark_all()

    async def wait(self, names: set[str]) -> set[str]:
        """Those of `names` that have not come within some seconds: none, if all is well."""
        with trio.move_on_after(15):
            while names - self.names:
                await self._more.park()
        return names - self.names


class World:
    """Serves the pages that reach for `zone`, each kind for a host of its own there."""

    def __init__(self, zone: str, zone_port: int) -> None:
        self.zone = zone
        self.zone_port = zone_port
        self.port = 0
        self.asked = Seen()
        self._routes: dict[str, Callable[[Kind], tuple[dict[str, str], str]]] = {
            "kind": lambda kind: (
                {k: self._fill(kind, v) for k, v in kind.headers},
                self._fill(kind, kind.text),
            ),
            "go": lambda kind: ({"Location": self._urls(kind)["@U"]}, ""),
            "worker": lambda kind: ({"Content-Type": "text/javascript"}, self._fill(kind, kind.text)),
            "start": lambda kind: ({}, self._starter(kind)),
        }

    def url(self, path: str, host: str = SITE) -> str:
        return f"http://{host}:{self.port}{path}"

    def _urls(self, kind: Kind) -> dict[str, str]:
        host = f"{kind.name}.{self.zone}:{self.zone_port}"
        return {
            "@U": f"http://{host}/k",
            "@S": f"https://{host}/k",
            "@W": f"ws://{host}/k",
            "@H": host,
            "@R": self.url(f"/go/{kind.name}"),
        }

    def _fill(self, kind: Kind, text: str) -> str:
        for mark, value in self._urls(kind).items():
            text = text.replace(mark, value)
        return text

    def _starter(self, kind: Kind) -> str:
        """A frame that starts the kind's worker."""
        script = json.dumps(f"/worker/{kind.name}")
        code = {
            "worker": f"new Worker({script})",
            "shared": f"new SharedWorker({script})",
            "service": f"navigator.serviceWorker.register({script}, {{scope: {script}}}).catch(() => 0)",
        }[kind.place]
        return f"<script>{code}</script>"

    def page(self) -> str:
        """The page with everything in it; `gestures` and popups are the test's to run."""
        parts = ["<!doctype html><meta charset=utf-8><body>"]
        leaving = []
        for kind in KINDS:
            if kind.place == "frame":
                parts.append(f"<iframe src='/kind/{kind.name}'></iframe>")
            elif kind.place == "oopif":
                parts.append(f"<iframe src='{self.url('/kind/' + kind.name, CROSS_SITE)}'></iframe>")
            elif kind.place in ("worker", "shared", "service"):
                parts.append(f"<iframe src='/start/{kind.name}'></iframe>")
            elif kind.place == "page":
                parts.append(self._fill(kind, kind.text))
            elif kind.place == "leave":
                leaving.append(self._fill(kind, kind.text))
        parts.append(f"<script>addEventListener('pagehide', () => {{ {';'.join(leaving)} }})</script>")
        return "".join(parts)

    def gestures(self) -> list[str]:
        """Scripts to run in the page, each with a user gesture."""
        scripts = [self._fill(kind, kind.text) for kind in KINDS if kind.place == "gesture"]
        scripts += [f"open('/kind/{kind.name}')" for kind in KINDS if kind.place == "popup"]
        return [f"(() => {{ {script} }})()" for script in scripts]

    async def serve(self, stream: trio.SocketStream) -> None:
        """One request, one answer."""
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (data := await stream.receive_some()):
                    return
                head += data
            path = head.split(b" ")[1].decode()
            status, headers, body = self._answer(path)
            self.asked.add(path.rpartition("/")[2])
            payload = body.encode()
            fields = {
                "Content-Type": "text/html",
                "Content-Length": str(len(payload)),
                "Access-Control-Allow-Origin": "*",
                "Connection": "close",
                **headers,
            }
            text = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            with suppress(trio.BrokenResourceError):
                await stream.send_all(f"HTTP/1.1 {status} -\r\n{text}\r\n".encode() + payload)

    def _answer(self, path: str) -> tuple[int, dict[str, str], str]:
        _, route, *rest = path.split("/")
        if route == "page":
            return 200, {}, self.page()
        found = [kind for kind in KINDS if rest and kind.name == rest[0].partition("?")[0]]
        if route not in self._routes or not found:
            return 200, {}, ""
        headers, body = self._routes[route](found[0])
        return 302 if route == "go" else 200, headers, body
