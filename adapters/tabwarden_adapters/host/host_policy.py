"""The engine's side: every decision is asked of the host that wrote host.json, and fails closed.

Whatever goes wrong (`HostProblem` lists it) the answers are site mode `off`, approval `no`, no overrides,
every target excluded, nothing handed over, logged or opened. No method raises but for cancellation.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import trio
from tabwarden.errors import MalformedError
from tabwarden.protocol.codec import parse_json

from tabwarden_adapters.host.exchange import exchange
from tabwarden_adapters.host.host_file import HostFile, default_home, read_host_file
from tabwarden_adapters.host.limits import MAX_BODY, PERSON_WAIT_S
from tabwarden_adapters.host.origins import OPAQUE, web_address, web_origin
from tabwarden_adapters.host.ports import TargetFilter
from tabwarden_adapters.host.problems import HostProblem, HostUnavailable
from tabwarden_adapters.host.targets import AllTargets, TargetSet
from tabwarden_adapters.host.values import Answer, ApprovalKind, LogEntry, SiteMode

_ANSWER_S = 2.0  # loopback and no person: a host that is slower than this is stuck

T = TypeVar("T", bound=msgspec.Struct)
Observer = Callable[[HostProblem], None]


class _Mode(msgspec.Struct, frozen=True):
    mode: SiteMode


class _Hosts(msgspec.Struct, frozen=True):
    hosts: list[str]


class _Ids(msgspec.Struct, frozen=True):
    ids: list[str]


class _Answer(msgspec.Struct, frozen=True):
    answer: Answer


class _Done(msgspec.Struct, frozen=True):
    done: bool


class _Nothing(msgspec.Struct, frozen=True):
    pass


class _Opened(msgspec.Struct, frozen=True):
    ok: bool


class HostPolicy:
    """A `Policy` with all optional parts, over the host control protocol.

    host.json is read anew for each question, so its removal ends everything at once. The first host that is
    found is the one that stays attached: a file of another process or token is `CHANGED`, because the
    tabs are still those of the first. `problem` is the last thing that went wrong, None after a success;
    `observe` is told each time, and must not raise or block.
    """

    def __init__(
        self,
        home: Path | None = None,
        *,
        answer_s: float = _ANSWER_S,
        person_wait_s: float = PERSON_WAIT_S,
        observe: Observer | None = None,
    ) -> None:
        """`home` is the folder of host.json (`default_home()`). Times in seconds."""
        self._home = default_home() if home is None else home
        self._answer_s = answer_s
        self._person_wait_s = person_wait_s
        self._observe = observe
        self._attached: HostFile | None = None
        self.problem: HostProblem | None = None

    def __repr__(self) -> str:
        return f"HostPolicy(problem={self.problem})"

    def attach(self) -> HostFile:
        """The host to attach to, from now on the only one. Raises `HostUnavailable`."""
        file = read_host_file(self._home)
        if self._attached is not None and file != self._attached:
            raise HostUnavailable(HostProblem.CHANGED)
        if not file.alive:
            raise HostUnavailable(HostProblem.DEAD)
        self._attached = file
        return file

    async def site_mode(self, origin: str) -> SiteMode:
        """`OFF` also for pages without an origin, which no host is asked about."""
        asked = _origin(origin)
        if asked is None or asked == OPAQUE:
            await trio.lowlevel.checkpoint()
            return SiteMode.OFF
        answer = await self._get(b"/policy?origin=" + quote(asked, safe="").encode(), _Mode)
        return SiteMode.OFF if answer is None else answer.mode

    async def approve(self, kind: ApprovalKind, origin: str, summary: str) -> Answer:
        """Waits for the person, five minutes at the most."""
        asked = _origin(origin)
        if asked is None:
            return Answer.NO
        body = {"kind": ApprovalKind(kind), "origin": asked, "summary": summary}
        answer = await self._post(b"/approve", body, _Answer, self._person_wait_s)
        return Answer.NO if answer is None else answer.answer

    async def allowed_sensitive_hosts(self) -> frozenset[str]:
        """Empty when the host is not there."""
        answer = await self._get(b"/sensitive-overrides", _Hosts)
        return frozenset() if answer is None else frozenset(answer.hosts)

    async def excluded_targets(self) -> TargetFilter:
        """All targets when the host is not there: an empty list would show private tabs."""
        answer = await self._get(b"/excluded-targets", _Ids)
        return AllTargets() if answer is None else TargetSet(answer.ids)

    async def wait_for_user(self, reason: str, origin: str) -> bool:
        """Waits for the person, five minutes at the most."""
        asked = _origin(origin)
        if asked is None:
            return False
        body = {"reason": reason, "origin": asked}
        answer = await self._post(b"/handoff", body, _Done, self._person_wait_s)
        return answer is not None and answer.done

    async def log(self, entry: LogEntry) -> bool:
        """Whether the host has the entry. What the model is not shown to be sent should not be sent."""
        body: dict[str, Any] = {
            "type": entry.type,
            "origin": entry.origin,
            "text": entry.text or "",
            "tokens": entry.tokens,
            "at": entry.at_ms,
        }
        if entry.meta is not None:
            body["meta"] = dict(entry.meta)
        return await self._post(b"/log", body, _Nothing, self._answer_s) is not None

    async def open_tab(self, url: str, *, background: bool = False, agent: str | None = None) -> bool:
        """Whether the host opened it."""
        try:
            body: dict[str, Any] = {"url": web_address(url), "background": background}
        except ValueError:
            return False
        if agent is not None:
            body["agent"] = agent
        answer = await self._post(b"/tabs/open", body, _Opened, self._answer_s)
        return answer is not None and answer.ok

    async def _get(self, target: bytes, kind: type[T]) -> T | None:
        return await self._closed_on_failure(lambda: self._ask(b"GET", target, b"", kind, self._answer_s))

    async def _post(self, target: bytes, body: dict[str, Any], kind: type[T], timeout_s: float) -> T | None:
        try:
            encoded = msgspec.json.encode(body)
        except (TypeError, ValueError, RecursionError):
            encoded = b""
        if not encoded or len(encoded) > MAX_BODY:
            return None  # the caller's mistake, and not the host's: there is nothing to ask
        return await self._closed_on_failure(lambda: self._ask(b"POST", target, encoded, kind, timeout_s))

    async def _ask(self, method: bytes, target: bytes, body: bytes, kind: type[T], timeout_s: float) -> T:
        reply = await exchange(self.attach(), method, target, body, timeout_s=timeout_s)
        try:
            # A subclass of nothing but its fields: `true` for "yes" or 1 for true is no answer.
            return msgspec.convert(parse_json(reply), kind)
        except (MalformedError, msgspec.ValidationError):
            raise HostUnavailable(HostProblem.ANSWER) from None

    async def _closed_on_failure(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        """The answer, or None."""
        # A file that is not there is found missing without waiting: whoever asks in a loop must not hold
        # up the loop that the host may be starting in.
        await trio.lowlevel.checkpoint()
        try:
            answer = await ask()
        except HostUnavailable as error:
            self._tell(error.problem)
            return None
        except Exception:
            # Nothing that we know of: still no reason to let an agent on.
            self._tell(HostProblem.ANSWER)
            return None
        self.problem = None
        return answer

    def _tell(self, problem: HostProblem) -> None:
        self.problem = problem
        if self._observe is not None:
            self._observe(problem)


def _origin(text: str) -> str | None:
    try:
        return web_origin(text)
    except ValueError:
        return None
