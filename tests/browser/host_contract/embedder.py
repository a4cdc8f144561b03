"""The smallest program that brings a Chromium of its own: a debugging pipe, and a CDP session for each tab.

Nothing here is Tabwarden's but what docs/embedding.md tells an embedder to use.
"""

import json
import math
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trio
from tabwarden.model import Caller
from tabwarden.ports import ActionAdapter
from tabwarden_adapters.browser import (
    CapturedContext,
    CdpTab,
    Operation,
    SessionInfo,
    create_agent_adapters,
)

FLAGS = [
    *("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--disable-background-networking", "about:blank"),
    *(["--no-sandbox"] if os.geteuid() == 0 else []),  # Chromium refuses to run as root with it
]


class Chromium:
    """CDP over a pipe: each message ends in NUL."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read = trio.lowlevel.FdStream(read_fd)
        self._write = trio.lowlevel.FdStream(write_fd)
        self._writing = trio.Lock()
        self._answers: dict[int, trio.MemorySendChannel[dict[str, Any]]] = {}
        self._channels: dict[str, PageChannel] = {}

    async def pump(self) -> None:
        buffer = b""
        while chunk := await self._read.receive_some():
            *messages, buffer = (buffer + chunk).split(b"\0")
            for message in map(json.loads, messages):
                self._route(message)

    def _route(self, message: dict[str, Any]) -> None:
        channel = self._channels.get(message.pop("sessionId", ""))
        if channel is not None:
            channel.arrived.send_nowait(json.dumps(message).encode())
        elif "id" in message:
            self._answers.pop(message["id"]).send_nowait(message)
        elif message["method"] == "Target.detachedFromTarget":
            self._channels.pop(message["params"]["sessionId"]).arrived.send_nowait(None)

    async def send(self, message: dict[str, Any]) -> None:
        async with self._writing:
            await self._write.send_all(json.dumps(message).encode() + b"\0")

    async def call(self, method: str, **params: Any) -> Any:
        send, receive = trio.open_memory_channel[dict[str, Any]](1)
        number = 1 + max(self._answers, default=0)
        self._answers[number] = send
        await self.send({"id": number, "method": method, "params": params})
        return (await receive.receive())["result"]

    async def open_tab(self) -> "PageChannel":
        target = await self.call("Target.createTarget", url="about:blank")
        return await self.channel(target["targetId"])

    async def channel(self, target_id: str) -> "PageChannel":
        session = await self.call("Target.attachToTarget", targetId=target_id, flatten=True)
        return self._channels.setdefault(
            session["sessionId"], PageChannel(self, session["sessionId"], target_id)
        )


class PageChannel:
    """What `CdpTab.attach` takes: the messages of one tab's CDP session."""

    def __init__(self, chromium: Chromium, session_id: str, target_id: str) -> None:
        self._chromium = chromium
        self._session_id = session_id
        self.target_id = target_id
        self.arrived, self._messages = trio.open_memory_channel[bytes | None](math.inf)

    async def receive(self) -> bytes | None:
        return await self._messages.receive()

    async def send(self, message: bytes) -> None:
        await self._chromium.send({**json.loads(message), "sessionId": self._session_id})

    async def aclose(self) -> None:
        self.arrived.close()


class SmallBrowser:
    """The contract's callbacks over some tabs."""

    def __init__(self, tabs: Sequence[CdpTab], allowed_hosts: set[str]) -> None:
        self.tabs = {tab.session_id: tab for tab in tabs}
        self.allowed_hosts = allowed_hosts
        self.policy_version = 1
        self.interactive = True

    def get_context(self, session_id: str | None, /) -> CapturedContext | None:
        in_front = (tab for tab in self.tabs.values() if tab.in_front)
        tab = next(in_front, None) if session_id is None else self.tabs.get(session_id)
        return tab and tab.context(
            destination_allowed=self.destination_allowed,
            policy_version=self.policy_version,
            interactive=self.interactive,
        )

    async def get_sessions(self) -> list[SessionInfo]:
        return [await tab.info() for tab in self.tabs.values()]

    def context_current(self, token: Any, /) -> bool:
        return any(tab.current(token) for tab in self.tabs.values())

    def destination_allowed(self, caller: Caller, href: str, /) -> bool:
        return urlsplit(href).hostname in self.allowed_hosts

    async def navigate(self, url: str, captured: CapturedContext, operation: Operation, /) -> CapturedContext:
        return await self.tabs[captured.session_id].navigate(url, captured, operation)

    async def history(self, by: int, captured: CapturedContext, operation: Operation, /) -> CapturedContext:
        return await self.tabs[captured.session_id].history(by, captured, operation)

    async def reload(self, captured: CapturedContext, operation: Operation, /) -> CapturedContext:
        return await self.tabs[captured.session_id].reload(captured, operation)

    def adapters(self) -> dict[str, ActionAdapter]:
        return dict(
            create_agent_adapters(
                get_context=self.get_context,
                get_sessions=self.get_sessions,
                context_current=self.context_current,
                navigate=self.navigate,
                history=self.history,
                reload=self.reload,
                inspect=None,
                policy_version=lambda: self.policy_version,
            )
        )


@asynccontextmanager
async def own_chromium(profile: Path) -> AsyncIterator[Chromium]:
    """A real one, on descriptors 3 and 4, killed at the end with all its children."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program is not None
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    shell = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
    process = subprocess.Popen(
        ["bash", "-c", shell, program, f"--user-data-dir={profile}", *FLAGS],
        pass_fds=(theirs_in, theirs_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    chromium = Chromium(ours_in, ours_out)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(chromium.pump)
            yield chromium
            nursery.cancel_scope.cancel()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with trio.CancelScope(shield=True):
            await chromium._read.aclose()
            await chromium._write.aclose()
