"""What stands around a gateway in these tests. Everything denies until it is told otherwise."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.ai import ApiKey, ModelGateway, create_model_gateway

from tests.ai.server import Server
from tests.browser.agent import Call

KEY = "sk-CANARY-key-5f1c0123456789"
WORDS = "CANARY of the gateway"
MODEL = "test-model"


class Operation(Call):
    """Implements `Operation`. `here` is what `current` says."""

    def __init__(self) -> None:
        super().__init__("ai")
        self.here = True

    def current(self) -> bool:
        return self.here


class Looker:
    """Implements `Inspector`: lets pass what goes in one of `directions` and holds none of `secrets`."""

    def __init__(self, *directions: str, secrets: tuple[str, ...] = ()) -> None:
        self.directions = directions
        self.secrets = secrets
        self.seen: list[tuple[str, str]] = []
        self.halt: str | None = None
        self.halted = trio.Event()

    async def inspect(self, text: str, *, direction: str, caller: object = None) -> str | None:
        self.seen.append((direction, text))
        if direction == self.halt:
            self.halted.set()
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        if direction not in self.directions or any(secret in text for secret in self.secrets):
            raise ActionError(Code.CONTENT_DENIED, rule="dlp.test")
        return None


class Masker(Looker):
    """Implements `MaskingInspector`: `masks` become `[x]`."""

    masks: tuple[str, ...] = ()

    async def mask(
        self, text: str, *, direction: str, caller: object = None, start: int = 0, end: int | None = None
    ) -> str:
        await self.inspect(text, direction=direction, caller=caller)
        part = text[start:end]
        for one in self.masks:
            part = part.replace(one, "[x]")
        return part


@dataclass(frozen=True)
class Page:
    """Implements `PageText`."""

    origin: str = "https://page.test"
    title: str = "Title"
    text: str = "what shows"
    following: str = ""
    cut: bool = False


class OneKey:
    """Implements `KeySource`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, origin: str, /) -> ApiKey:
        await trio.lowlevel.checkpoint()
        self.asked.append(origin)
        return ApiKey(KEY)


def open_looker(*secrets: str) -> Looker:
    return Looker("from-page", "to-model", "from-model", secrets=secrets)


def gateway(server: Server, **changes: Any) -> ModelGateway:
    given: dict[str, Any] = {"inspect": open_looker(), "key": OneKey(), **changes}
    return create_model_gateway(given.pop("url", server.url), given.pop("model", MODEL), **given)


async def fails(asked: ModelGateway, operation: Operation | None = None) -> ActionError:
    """The typed end of a call that fails. Whatever hangs on it must be free of others' text."""
    with pytest.raises(ActionError) as caught:
        await asked("a question", object(), operation or Operation())
    error = caught.value
    assert list(chain(error)) == [error]
    assert "CANARY" not in repr(error) + str(error) + str(error.rule)
    return error


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def sent(server: Server) -> dict[str, Any]:
    """The body of the last request."""
    body: dict[str, Any] = json.loads(server.requests[-1].partition(b"\r\n\r\n")[2])
    return body
