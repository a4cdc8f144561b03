"""What a person has agreed to at a host, for one agent at one site: until host, policy or tab end."""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tabwarden.errors import ActionError, Code
from tabwarden.limits import ApprovalLimits
from tabwarden.model import Caller

from tabwarden_adapters.host.risks import Risk
from tabwarden_adapters.host.values import Answer

TOO_MANY: Final = "host:too-many"
# A risk, and for a form the sites that it may be sent to.
AgreedRisk = tuple[Risk, frozenset[str]]
_MINUTE_S: Final = 60.0
K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class _Site:
    """`answer` is `YES`, `CONFIRM`, or None where only risks were asked about. `session_id` is the tab in
    which it was asked."""

    answer: Answer | None
    session_id: str
    risks: set[AgreedRisk] = field(default_factory=set)


class Agreements:
    """Bounded in number: the oldest give way, and are asked again."""

    def __init__(
        self,
        policy_version: Callable[[], int],
        is_open: Callable[[str], bool],
        limits: ApprovalLimits | None = None,
    ) -> None:
        """`is_open` says whether a tab is still there, by its session id."""
        self._policy_version = policy_version
        self._is_open = is_open
        self._limits = limits or ApprovalLimits()
        self._version = policy_version()
        self._sites: OrderedDict[tuple[Caller, str], _Site] = OrderedDict()
        self._visited: OrderedDict[tuple[Caller, str], None] = OrderedDict()

    def site(self, caller: Caller, origin: str) -> Answer | None:
        """What was answered about this site, while that holds."""
        site = self._found(caller, origin)
        return None if site is None else site.answer

    def agree(self, caller: Caller, origin: str, answer: Answer, session_id: str) -> None:
        """A person said yes or confirm to this site, in this tab."""
        self._current()
        self._sites[caller, origin] = _Site(answer, session_id)
        _bound(self._sites, self._limits.remembered)
        self.visit(caller, origin)

    def agree_risk(self, caller: Caller, origin: str, risk: AgreedRisk, session_id: str) -> None:
        """A person said yes to this risk at this site, in this tab."""
        site = self._found(caller, origin)
        if site is None:
            site = self._sites[caller, origin] = _Site(None, session_id)
            _bound(self._sites, self._limits.remembered)
        site.risks.add(risk)

    def risks(self, caller: Caller, origin: str) -> frozenset[AgreedRisk]:
        """The risks that were agreed to at this site."""
        site = self._found(caller, origin)
        return frozenset() if site is None else frozenset(site.risks)

    def visit(self, caller: Caller, origin: str) -> None:
        """A person agreed that this agent goes to this site."""
        self._current()
        self._visited[caller, origin] = None
        _bound(self._visited, self._limits.remembered)

    def visited(self, caller: Caller) -> frozenset[str]:
        """The sites where this agent has been with a person's agreement."""
        self._current()
        return frozenset(origin for one, origin in self._visited if one == caller)

    def _found(self, caller: Caller, origin: str) -> _Site | None:
        self._current()
        site = self._sites.get((caller, origin))
        if site is not None and not self._is_open(site.session_id):
            del self._sites[caller, origin]
            return None
        return site

    def _current(self) -> None:
        version = self._policy_version()
        if version != self._version:
            self._version = version
            self._sites.clear()
            self._visited.clear()


class Patience:
    """How much one agent, and all together, may ask of a person."""

    def __init__(self, now: Callable[[], float], limits: ApprovalLimits | None = None) -> None:
        """`now` in seconds, of a clock that only goes forward."""
        self._now = now
        self._limits = limits or ApprovalLimits()
        self._open: list[Caller] = []
        self._asked: dict[Caller, deque[float]] = {}

    def begin(self, caller: Caller) -> None:
        """A question is put. Raises `ActionError` with `rate-limited` instead when it is one too many."""
        now, limits = self._now(), self._limits
        for one in [one for one, times in self._asked.items() if times[-1] <= now - _MINUTE_S]:
            del self._asked[one]
        times = self._asked.get(caller, deque())
        while times and times[0] <= now - _MINUTE_S:
            times.popleft()
        if (
            self._open.count(caller) >= limits.pending_per_principal
            or len(self._open) >= limits.pending
            or len(times) >= limits.asks_per_minute
        ):
            raise ActionError(Code.RATE_LIMITED, rule=TOO_MANY)
        times.append(now)
        self._asked[caller] = times
        self._open.append(caller)

    def end(self, caller: Caller) -> None:
        """A question that was put is over."""
        self._open.remove(caller)


def _bound(entries: OrderedDict[K, V], most: int) -> None:
    while len(entries) > most:
        entries.popitem(last=False)
