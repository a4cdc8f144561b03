"""What each of the seven endpoints does with a request that passed the gate. No HTTP library here."""

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from tabwarden.errors import MalformedError
from tabwarden.protocol.codec import parse_json

from tabwarden_adapters.host.calls import Calls
from tabwarden_adapters.host.errors import ControlError, ErrorCode
from tabwarden_adapters.host.limits import MAX_ORIGIN, MAX_REPLY
from tabwarden_adapters.host.origins import OPAQUE, web_address, web_origin
from tabwarden_adapters.host.ports import HostBackend
from tabwarden_adapters.host.seen_log import SeenLog
from tabwarden_adapters.host.values import (
    Answer,
    ApprovalRequest,
    ApproveBody,
    HandoffBody,
    HandoffRequest,
    LogBody,
    OpenTabBody,
    OpenTabRequest,
    SiteMode,
    milliseconds,
    readable,
)

_MAX_PARAMETERS = 16
T = TypeVar("T")


class Endpoints:
    """Turns requests into calls of a backend, and its answers into the reference's JSON."""

    def __init__(self, backend: HostBackend, calls: Calls, log: SeenLog) -> None:
        self._backend = backend
        self._calls = calls
        self._log = log
        self._table: dict[str, Callable[[bytes, bytes], Awaitable[dict[str, Any]]]] = {
            "/policy": self._policy,
            "/sensitive-overrides": self._sensitive_overrides,
            "/excluded-targets": self._excluded_targets,
            "/approve": self._approve,
            "/handoff": self._handoff,
            "/log": self._take_log,
            "/tabs/open": self._open_tab,
        }

    async def answer(self, route: str, query: bytes, body: bytes) -> bytes:
        """The JSON of a result. Raises `ControlError`."""
        reply = msgspec.json.encode(await self._table[route](query, body))
        if len(reply) > MAX_REPLY:
            # Half a list of private tabs would show the other half.
            raise ControlError(ErrorCode.FAILURE)
        return reply

    async def _policy(self, query: bytes, body: bytes) -> dict[str, Any]:
        origin = _origin(_parameter(query, "origin"))
        if origin == OPAQUE:
            return {"mode": SiteMode.OFF}  # no person can have chosen a mode for a page without a site
        mode = await self._calls.run(partial(self._backend.site_mode, origin))
        return {"mode": _one_of(mode, SiteMode)}

    async def _sensitive_overrides(self, query: bytes, body: bytes) -> dict[str, Any]:
        return {"hosts": _strings(await self._calls.run(self._backend.sensitive_overrides))}

    async def _excluded_targets(self, query: bytes, body: bytes) -> dict[str, Any]:
        return {"ids": _strings(await self._calls.run(self._backend.excluded_targets))}

    async def _approve(self, query: bytes, body: bytes) -> dict[str, Any]:
        asked = _parse(body, ApproveBody)
        request = ApprovalRequest(asked.kind, _origin(asked.origin), readable(asked.summary))
        answer = await self._calls.run(partial(self._backend.approve, request), asks_person=True)
        return {"answer": _one_of(answer, Answer)}

    async def _handoff(self, query: bytes, body: bytes) -> dict[str, Any]:
        asked = _parse(body, HandoffBody)
        request = HandoffRequest(readable(asked.reason), _origin(asked.origin))
        return {
            "done": _truth(await self._calls.run(partial(self._backend.handoff, request), asks_person=True))
        }

    async def _take_log(self, query: bytes, body: bytes) -> dict[str, Any]:
        said = _parse(body, LogBody)
        try:
            at_ms = milliseconds(said.at)
        except ValueError:
            raise ControlError(ErrorCode.FIELDS) from None
        await self._calls.run(partial(self._record, said, _origin(said.origin), at_ms))
        return {}

    async def _record(self, said: LogBody, origin: str, at_ms: int) -> None:
        await self._backend.log(await self._log.take(said, origin, at_ms))

    async def _open_tab(self, query: bytes, body: bytes) -> dict[str, Any]:
        asked = _parse(body, OpenTabBody)
        try:
            url = web_address(asked.url)
        except ValueError:
            return {"ok": False}
        agent = None if asked.agent is None else readable(asked.agent)
        request = OpenTabRequest(url, bool(asked.background), agent)
        return {"ok": _truth(await self._calls.run(partial(self._backend.open_tab, request)))}


def _parse(body: bytes, kind: type[T]) -> T:
    try:
        value = parse_json(body)
    except MalformedError:
        raise ControlError(ErrorCode.JSON) from None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise ControlError(ErrorCode.FIELDS) from None


def _parameter(query: bytes, name: str) -> str:
    """The one value of `name`; others are ignored, as unknown fields of a body are."""
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS
        )
    except ValueError:
        raise ControlError(ErrorCode.FIELDS) from None
    values = [value for key, value in pairs if key == name]
    if len(values) != 1 or len(values[0]) > MAX_ORIGIN:
        raise ControlError(ErrorCode.FIELDS)
    return values[0]


def _origin(text: str) -> str:
    try:
        return web_origin(text)
    except ValueError:
        raise ControlError(ErrorCode.ORIGIN) from None


def _one_of(value: object, kind: type[SiteMode] | type[Answer]) -> str:
    """A backend may answer with the word itself; nothing else is taken for one."""
    if not isinstance(value, str) or value not in list(kind):
        raise ControlError(ErrorCode.FAILURE)
    return str(value)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ControlError(ErrorCode.FAILURE)
    return value


def _strings(value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Collection):
        raise ControlError(ErrorCode.FAILURE)
    strings = list(value)
    if not all(isinstance(one, str) for one in strings):
        raise ControlError(ErrorCode.FAILURE)
    return strings
