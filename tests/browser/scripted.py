"""A CDP transport whose other side is the test."""

import json
import math
from typing import Any

import trio


class ScriptedTransport:
    """Implements `Transport`: `say` what Chromium says, `heard` what it was sent."""

    def __init__(self) -> None:
        self._in, self._messages = trio.open_memory_channel[bytes | None](math.inf)
        self._out, self._heard = trio.open_memory_channel[bytes](math.inf)
        self.closed = False
        self.stuck: trio.Event | None = None

    async def receive(self) -> bytes | None:
        return await self._messages.receive()

    async def send(self, message: bytes) -> None:
        if self.stuck is not None:
            await self.stuck.wait()
        self._out.send_nowait(message)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed = True

    def say(self, **message: Any) -> None:
        self.say_raw(json.dumps(message).encode())

    def say_raw(self, message: bytes) -> None:
        self._in.send_nowait(message)

    def hang_up(self) -> None:
        self._in.send_nowait(None)

    async def heard(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self._heard.receive())
        return message

    def attach(self, session_id: str, target_id: str = "T") -> None:
        info = {"targetId": target_id, "type": "page", "title": "", "url": "", "attached": True}
        params = {
            "sessionId": session_id,
            "targetInfo": {**info, "canAccessOpener": False},
            "waitingForDebugger": False,
        }
        self.say(method="Target.attachedToTarget", params=params)

    def detach(self, session_id: str) -> None:
        self.say(method="Target.detachedFromTarget", params={"sessionId": session_id})
