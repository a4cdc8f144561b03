"""The authorizer that asks the host: both the policy inside it and the person at the host must permit.

docs/host-control.md has the table of what is asked when. Nothing here ever reaches an agent's channel, and
whatever is not known, not answered or changed meanwhile is a no.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec
import trio
from tabwarden.actions import ACTIONS, ActionSpec
from tabwarden.errors import ActionError, Code
from tabwarden.limits import ApprovalLimits
from tabwarden.model import Authorization, Caller
from tabwarden.ports import Authorizer, PersonWait

from tabwarden_adapters.host.agreements import AgreedRisk, Agreements, Patience
from tabwarden_adapters.host.foreseeing import Foreseen, foresee, origin_of
from tabwarden_adapters.host.link import HostLink
from tabwarden_adapters.host.origins import OPAQUE, host_of
from tabwarden_adapters.host.ports import Policy
from tabwarden_adapters.host.problems import HostProblem
from tabwarden_adapters.host.risks import RISKS, Risk
from tabwarden_adapters.host.sensitive_hosts import sensitive_class
from tabwarden_adapters.host.sight import SeenTab, SeenTabs
from tabwarden_adapters.host.values import Answer, ApprovalKind, SiteMode
from tabwarden_adapters.host.wording import site_summary, summary

GONE: Final = "host:gone"
SITE_OFF: Final = "host:site-off"
SENSITIVE: Final = "host:sensitive-page"
NO_SUCH_TAB: Final = "host:no-such-tab"
CHANGED: Final = "host:changed"
ASKED: Final = "host:approved"
# Filling in one form after a `confirm` asks about each field; more than that is no work, but pestering.
_PATIENCE: Final = ApprovalLimits(asks_per_minute=20)
_WAIT_S: Final = 298.0  # before the five minutes of the protocol and of the broker are over
# A page without a site (a new tab) is nobody's: an agent may leave it, show it or close it.
_OF_BLANK: Final = frozenset({"navigate", "tabs:activate", "tabs:close", "tabs:group"})
# What may be done where a person signs in: go away, or hand it over to her.
_OF_SENSITIVE: Final = frozenset({*_OF_BLANK, "back", "forward", "handoff"})


class HostAuthorizer:
    """Implements `tabwarden.ports.Authorizer` around `inner`, whose no is final and asks nobody here."""

    def __init__(
        self,
        inner: Authorizer,
        host: Policy,
        link: HostLink,
        tabs: SeenTabs,
        agreements: Agreements,
        *,
        policy_version: Callable[[], int],
        wait_s: float = _WAIT_S,
    ) -> None:
        """`policy_version` changes with each change of the inner authorizer's policy."""
        self._inner = inner
        self._host = host
        self._link = link
        self._tabs = tabs
        self._agreements = agreements
        self._policy_version = policy_version
        self._wait_s = wait_s
        self._patience = Patience(trio.current_time, _PATIENCE)

    async def __call__(
        self,
        action: str,
        args: msgspec.Struct,
        scope: str,
        session_id: str | None,
        *,
        caller: Caller,
        waiting_for_person: PersonWait,
    ) -> Authorization:
        """Decide one call."""
        version = self._policy_version()
        answer = await self._inner(
            action, args, scope, session_id, caller=caller, waiting_for_person=waiting_for_person
        )
        if not isinstance(answer, Authorization) or answer.allowed is not True or answer.ask is not None:
            return answer
        call = _Call(ACTIONS[action], args, caller, waiting_for_person, answer, version)
        try:
            self._require(call)
            await self._tabs.refresh()
            self._require(call)
            if call.spec.needs_session:
                call.tab = self._tabs.tab(session_id)
                if call.tab is None:
                    raise ActionError(Code.UNKNOWN_SESSION, rule=NO_SUCH_TAB)
                await self._decide(call, call.tab)
            else:
                await self._lead(call, OPAQUE, await foresee(call.spec, args, None))
        except ActionError as error:
            return Authorization(False, code=error.code, rule=error.rule)
        rule = f"{ASKED} {answer.rule}" if call.asked else answer.rule
        return replace(answer, rule=rule, still_holds=lambda: self._holds(call))

    # ---- the steps ----------------------------------------------------------------------------------

    async def _decide(self, call: "_Call", tab: SeenTab) -> None:
        origin = origin_of(tab.url)
        if origin == OPAQUE:
            if call.spec.name not in _OF_BLANK:
                raise ActionError(Code.POLICY_DENIED, rule=SITE_OFF)
        else:
            await self._site(call, tab, origin)
            if call.spec.name not in _OF_SENSITIVE:
                await self._not_sensitive(call, tab, origin)
        await self._lead(call, origin, await foresee(call.spec, call.args, tab))

    async def _site(self, call: "_Call", tab: SeenTab, origin: str) -> None:
        mode = await self._host.site_mode(origin)
        self._require(call)
        if mode is SiteMode.ALLOWED:
            return
        if mode is not SiteMode.ASK:
            raise ActionError(Code.POLICY_DENIED, rule=SITE_OFF)
        if self._agreements.site(call.caller, origin) is not None:
            return
        given = await self._ask(call, ApprovalKind.SITE, origin, site_summary(call.caller, origin))
        self._agreements.agree(call.caller, origin, given, tab.session_id)

    async def _not_sensitive(self, call: "_Call", tab: SeenTab, origin: str) -> None:
        host = host_of(origin)
        pauses = sensitive_class(host) is not None
        # Also when it cannot be told.
        if not pauses and await tab.secrets() is False:
            self._require(call)
            return
        allowed = host in await self._host.allowed_sensitive_hosts()
        self._require(call)
        if not allowed:
            raise ActionError(Code.TARGET_DENIED, rule=SENSITIVE)

    async def _lead(self, call: "_Call", origin: str, seen: Foreseen) -> None:
        """Where the call leads, and what else of it is risky."""
        if seen.missing is not None:
            raise ActionError(seen.missing, rule="host:no-such-element")  # nobody need be asked
        for led in sorted(seen.goes_to - {origin}):
            # Where it goes a mode holds as well; that of a page without a site is off.
            if await self._host.site_mode(led) is SiteMode.OFF:
                raise ActionError(Code.POLICY_DENIED, rule=SITE_OFF)
            self._require(call)
        risks = seen.risks(origin, self._agreements.visited(call.caller))
        agreed = self._agreed(call.caller, origin)
        asked = [row for row in RISKS if row.risk in risks and seen.remembered_as(row.risk) not in agreed]
        if not asked:
            return
        for kind in dict.fromkeys(row.kind for row in asked):
            of_kind = [row.risk for row in asked if row.kind is kind]
            where = min(seen.goes_to, default=origin) if kind is ApprovalKind.NAVIGATE else origin
            words = summary(call.caller, call.spec, call.args, where, of_kind, seen.called)
            given = await self._ask(call, kind, where, words)
            if given is Answer.YES:
                self._remember(call, origin, seen, of_kind)
        again = await foresee(call.spec, call.args, call.tab)
        self._require(call)
        if again != seen:
            raise ActionError(Code.STALE, rule=CHANGED)  # not what the person was asked about

    def _agreed(self, caller: Caller, origin: str) -> frozenset[AgreedRisk]:
        """What need not be asked again. After `confirm`, nothing."""
        if self._agreements.site(caller, origin) is Answer.CONFIRM:
            return frozenset()
        return self._agreements.risks(caller, origin)

    def _remember(self, call: "_Call", origin: str, seen: Foreseen, risks: list[Risk]) -> None:
        for risk in risks:
            if risk is Risk.NEW_SITE:
                for led in seen.goes_to - {OPAQUE}:
                    self._agreements.visit(call.caller, led)
            elif call.tab is not None and (agreed := seen.remembered_as(risk)) is not None:
                self._agreements.agree_risk(call.caller, origin, agreed, call.tab.session_id)

    # ---- the person ---------------------------------------------------------------------------------

    async def _ask(self, call: "_Call", kind: ApprovalKind, origin: str, words: str) -> Answer:
        """`YES` or `CONFIRM`. Raises `ActionError`."""
        self._patience.begin(call.caller)
        answer: object = None
        try:
            with call.waiting(), trio.CancelScope(deadline=self._deadline()) as limit:
                answer = await self._host.approve(kind, origin, words)
        finally:
            self._patience.end(call.caller)
        if limit.cancelled_caught:
            raise ActionError(Code.APPROVAL_TIMEOUT, rule=f"host:{kind}")
        if answer is Answer.NO:
            # Of an answer that never came the host's side says why, and nothing ran in between.
            problem: HostProblem | None = getattr(self._host, "problem", None)
            code = Code.USER_DENIED if problem is None else Code.NO_APPROVER
            if problem is HostProblem.TIMEOUT:
                code = Code.APPROVAL_TIMEOUT
            raise ActionError(code, rule=f"host:{kind}")
        if answer is not Answer.YES and answer is not Answer.CONFIRM:
            raise ActionError(Code.FAILURE, rule=f"host:{kind}")
        call.asked = True
        self._require(call)
        return answer

    def _deadline(self) -> float:
        now, around = trio.current_time(), trio.current_effective_deadline()
        return min(now + self._wait_s, around if around == math.inf else around - 1.0)

    # ---- what must still be so ----------------------------------------------------------------------

    def _require(self, call: "_Call") -> None:
        """After each wait. Raises `ActionError`."""
        if not self._link.alive:
            raise ActionError(Code.POLICY_DENIED, rule=GONE)
        if not self._holds(call):
            raise ActionError(Code.STALE, rule=CHANGED)

    def _holds(self, call: "_Call") -> bool:
        still = call.answer.still_holds
        return (
            self._link.alive
            and self._policy_version() == call.version
            and (still is None or still() is True)
            and (call.tab is None or call.tab.current() is True)
        )


class _Call:
    """One call on its way through the questions."""

    __slots__ = ("answer", "args", "asked", "caller", "spec", "tab", "version", "waiting")

    def __init__(
        self,
        spec: ActionSpec,
        args: msgspec.Struct,
        caller: Caller,
        waiting: PersonWait,
        answer: Authorization,
        version: int,
    ) -> None:
        self.spec = spec
        self.args = args
        self.caller = caller
        self.waiting = waiting
        self.answer = answer
        self.version = version
        self.tab: SeenTab | None = None
        self.asked = False
