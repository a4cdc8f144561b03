"""A host to talk to, and raw HTTP to talk to it with."""

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from tabwarden_adapters.host import (
    Answer,
    ApprovalRequest,
    HandoffRequest,
    HostControlServer,
    HostLimits,
    LogEntry,
    OpenTabRequest,
    SiteMode,
)


class FakeHost:
    """A `HostBackend`. It denies everything until it is told otherwise, and notes what it was asked."""

    def __init__(self) -> None:
        self.modes: dict[str, SiteMode] = {}
        self.overrides: list[str] = []
        self.excluded: list[str] = []
        self.approving: Callable[[ApprovalRequest], Any] | None = None
        self.handing: Callable[[HandoffRequest], Any] | None = None
        self.opens = False
        self.asked: list[object] = []
        self.entries: list[LogEntry] = []
        self.waiting = 0
        self.withdrawn = 0

    async def site_mode(self, origin: str, /) -> SiteMode:
        self.asked.append(origin)
        return self.modes.get(origin, SiteMode.OFF)

    async def sensitive_overrides(self) -> Sequence[str]:
        return self.overrides

    async def excluded_targets(self) -> Sequence[str]:
        return self.excluded

    async def approve(self, request: ApprovalRequest, /) -> Answer:
        self.asked.append(request)
        return Answer.NO if self.approving is None else await self._person(self.approving, request)

    async def handoff(self, request: HandoffRequest, /) -> bool:
        self.asked.append(request)
        return False if self.handing is None else await self._person(self.handing, request)

    async def _person(self, answering: Callable[[Any], Any], request: object) -> Any:
        self.waiting += 1
        try:
            return await answering(request)
        except trio.Cancelled:
            self.withdrawn += 1
            raise
        finally:
            self.waiting -= 1

    async def log(self, entry: LogEntry, /) -> None:
        self.entries.append(entry)

    async def open_tab(self, request: OpenTabRequest, /) -> bool:
        self.asked.append(request)
        return self.opens


async def never(request: object) -> Any:
    """A person who has gone for a walk."""
    await trio.sleep_forever()


async def unchanged(text: str) -> str:
    """A `Scrubber` that finds nothing."""
    return text


async def until(condition: Callable[[], object], *, seconds: float = 15.0) -> None:
    """Let other tasks run until `condition` holds; no time is waited for, only events of others."""
    with trio.fail_after(seconds):
        while not condition():
            await trio.lowlevel.checkpoint()


def private_home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    return home


@asynccontextmanager
async def serving(
    tmp_path: Path, backend: FakeHost | Any = None, *, leftovers: bool = False, **options: Any
) -> AsyncIterator[HostControlServer]:
    """A host around the block. Afterwards nothing of it is left, and its nursery is unharmed."""
    options.setdefault("cdp_port", 9222)
    options.setdefault("home", private_home(tmp_path))
    options.setdefault("scrubber", unchanged)
    files = len(os.listdir("/proc/self/fd"))
    async with trio.open_nursery() as nursery:
        server = HostControlServer(nursery, FakeHost() if backend is None else backend, **options)
        async with server:
            yield server
        assert not (options["home"] / "host.json").exists()
        assert leftovers or not nursery.child_tasks
        assert server.statistics().contained == 0
        if not leftovers:
            assert server.statistics().connections == 0
            assert len(os.listdir("/proc/self/fd")) <= files


def request(
    server: HostControlServer,
    method: str,
    target: str,
    body: object = None,
    *,
    headers: Mapping[str, str] | None = None,
    raw_body: bytes | None = None,
) -> bytes:
    """The bytes of an honest request; `headers` replaces (or, with an empty value, removes) some."""
    data = raw_body if raw_body is not None else b"" if body is None else json.dumps(body).encode()
    fields = {"Host": server.address, "Authorization": f"Bearer {server.token}"}
    if method == "POST":
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
    fields |= headers or {}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items() if value)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data


async def open_stream(server: HostControlServer) -> trio.SocketStream:
    host, _, port = server.address.partition(":")
    return await trio.open_tcp_stream(host, int(port))


async def everything(stream: trio.SocketStream, *, seconds: float = 20.0) -> bytes:
    """All until the other side closes or resets."""
    got = b""
    with trio.fail_after(seconds):
        try:
            while data := await stream.receive_some(65_536):
                got += data
        except trio.BrokenResourceError:
            pass
    return got


async def ask_raw(server: HostControlServer, data: bytes, *, eof: bool = False) -> bytes:
    async with await open_stream(server) as stream:
        try:
            await stream.send_all(data)
            if eof:
                await stream.send_eof()
        except trio.BrokenResourceError:
            pass  # refused and closed before all was written
        return await everything(stream)


def parsed(reply: bytes) -> tuple[int, Any]:
    """Status and JSON of a reply, which must be whole and of the expected form."""
    head, _, body = reply.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    assert fields[b"content-type"] == b"application/json", reply
    assert fields[b"cache-control"] == b"no-store"
    assert fields[b"connection"] == b"close"
    assert int(fields[b"content-length"]) == len(body)
    assert not {b"server", b"access-control-allow-origin"} & set(fields)
    return int(first.split(b" ")[1]), json.loads(body)


async def ask(server: HostControlServer, method: str, target: str, body: object = None, **more: Any) -> Any:
    return parsed(await ask_raw(server, request(server, method, target, body, **more)))


def code_of(reply: bytes) -> tuple[int, str]:
    """Status and error code of a refusal."""
    status, body = parsed(reply)
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message"}
    return status, body["error"]["code"]


def limits(**changed: Any) -> HostLimits:
    return HostLimits(**changed)
