"""A signed policy as the broker uses it: the current one, or none."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec
import trio
from tabwarden.actions import ACTIONS
from tabwarden.authority.principals import Grant, IdentityMode
from tabwarden.errors import Code, ConfigurationError
from tabwarden.model import Authorization, Caller
from tabwarden.ports import Clock, PersonWait

from tabwarden_adapters.policy.admission import admit
from tabwarden_adapters.policy.decisions import Verdict, may_act, may_be_at, network_rights, standing
from tabwarden_adapters.policy.denials import note_denial
from tabwarden_adapters.policy.destination import Destination, DestinationRefused, parse_destination
from tabwarden_adapters.policy.document import PolicyDocument
from tabwarden_adapters.policy.files import read_public_file
from tabwarden_adapters.policy.layers import CompiledPolicy
from tabwarden_adapters.policy.signing import MAX_ENVELOPE_BYTES
from tabwarden_adapters.policy.state import StateFile
from tabwarden_adapters.policy.urls import urls_among

SAVE_TIME_MS = 60_000  # the latest time seen goes to disk once a minute: what a crash can take back


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """What became of a policy file. `version` is the one in force afterwards, 0 for none.

    `taken`: a policy is in force that was not before. `unchanged`: it is the one in force already. `refused`:
    the file was not taken, for the reason in `message`; the one before stays in force until its own expiry.
    `expired`: nothing is allowed any more.
    """

    kind: Literal["taken", "unchanged", "refused", "expired"]
    version: int
    message: str


class SignedPolicy:
    """Implements `tabwarden.ports.Authorizer` and the network guard's predicates, for each grant its rights.

    Without a current policy (none taken, or expired by a clock that never goes back) everything is denied.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        state: StateFile,
        clock: Clock,
        *,
        report: Callable[[PolicyReport], None],
        on_change: Callable[[], Awaitable[None]] | None = None,
        adapter_scopes: frozenset[str] | None = None,
    ) -> None:
        """`path` is the signed file. `report` is told of everything; it must not block or raise. `on_change`
        is awaited after each change of what is in force: reconcile the principals there, with `grants`. What
        it raises comes out of `reload`, `look` and `watch`.

        Nothing is read before `load` or `reload`.
        """
        self.path = Path(path)
        self._state = state
        self._clock = clock
        self._report = report
        self._on_change = on_change
        self._adapter_scopes = adapter_scopes
        self._policy: CompiledPolicy | None = None
        self._latest_ms = 0
        self._saved_ms = 0
        self._seen: tuple[int, ...] | None = None
        self._one_at_a_time = trio.Lock()

    def load(self) -> PolicyReport:
        """Take the file as it is now; blocking. For the start, before anything asks.

        Raises `ConfigurationError` when the device is not enrolled or its state cannot be used: that does not
        mend itself. A policy that cannot be taken is reported, and nothing is allowed until one can.
        """
        self._latest_ms = max(self._latest_ms, self._state.load().wall_ms)
        return self._publish(*self._take())

    async def reload(self) -> PolicyReport:
        """Take the file as it is now, if it is to be taken; else the one before stays in force."""
        async with self._one_at_a_time:
            before = self._policy
            report = self._publish(*await trio.to_thread.run_sync(self._take))
            if self._policy is not before and self._on_change is not None:
                await self._on_change()
            return report

    async def watch(self, every_s: float = 1.0) -> None:
        """Look at the file for as long as this runs, and notice the policy's end. Never returns."""
        while True:
            await trio.sleep(every_s)
            await self.look()

    async def look(self) -> None:
        """One look of `watch`: reload when the file is another one than the last time."""
        if await trio.to_thread.run_sync(self._signature) != self._seen:
            await self.reload()
        await self._end_expired()
        if self._now() - self._saved_ms >= SAVE_TIME_MS:
            await trio.to_thread.run_sync(self._save_time)

    @property
    def policy_version(self) -> int:
        """The version in force, 0 for none. It changes with each change of what is allowed."""
        return 0 if (policy := self._current()) is None else policy.document.version

    @property
    def latest_wall_ms(self) -> int:
        """The latest wall time that this device has seen, for `start_agent_control`."""
        return self._now()

    @property
    def document(self) -> PolicyDocument | None:
        """The whole document in force."""
        return None if (policy := self._current()) is None else policy.document

    @property
    def identity_mode(self) -> IdentityMode:
        """As the policy in force says; individual without one."""
        return "individual" if (document := self.document) is None else document.agents.identity_mode

    def grants(self) -> list[Grant]:
        """For `AgentControl.reconcile_principals`; none without a policy, or in legacy mode.

        What has expired by the latest time that this device has seen is disabled: a broker that was started
        with a clock set back knows nothing of that time.
        """
        if (policy := self._current()) is None:
            return []
        now = self._now()
        return [
            replace(grant, enabled=False)
            if grant.expires_at_ms is not None and grant.expires_at_ms <= now
            else grant
            for grant in policy.approved()
        ]

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
        """Decide one call. Never waits, never raises for what an agent sent."""
        spec = ACTIONS.get(action)
        if spec is None:
            return Authorization(False, rule="actions.unknown")
        if scope != spec.policy_scope:
            return Authorization(False, rule="scopes.mismatch")
        policy = self._policy
        verdict = may_act(policy, caller, scope, urls_among(args), self._now())
        if not verdict.allowed:
            return Authorization(False, code=verdict.code or Code.POLICY_DENIED, rule=verdict.rule)

        def still_holds() -> bool:
            # The very same policy: what another one allows is for a call of its own.
            return self._policy is policy and standing(policy, caller, self._now()) is None

        return Authorization(
            True,
            role="agent",
            scopes=frozenset({spec.internal_scope}),
            rule=verdict.rule,
            ask=verdict.ask,
            still_holds=still_holds,
        )

    def destination_allowed(self, caller: Caller, href: str) -> bool:
        """Whether a tab of this caller may be at this absolute URL."""
        verdict = self.judge(caller, href)
        if not verdict.allowed:
            note_denial(verdict.rule)
        return verdict.allowed

    def judge(self, caller: Caller, href: str) -> Verdict:
        """As `destination_allowed`, with the rule."""
        return may_be_at(self._policy, caller, href, self._now())

    def resource_allowed(self, caller: Caller, href: str) -> bool:
        """Whether a page of this caller's tab may load this absolute URL, in a frame too."""
        try:
            place = parse_destination(href)
        except DestinationRefused:
            return False
        return self._may_load(caller, place)

    def endpoint_allowed(self, caller: Caller, host: str, port: int) -> bool:
        """Whether anything of this caller's pages may connect to this host, given in normal form."""
        return self._may_load(caller, _endpoint(host, port))

    def endpoint_named(self, caller: Caller, host: str, port: int) -> bool:
        """Whether every list that limits hosts names this very host, so that it may be a private one."""
        rights = network_rights(self._policy, caller, self._now())
        return rights is not None and rights.named(_endpoint(host, port))

    def sensitive_read_allowed(self, caller: Caller) -> bool:
        """Whether known deterministic classes of findings may be read by this caller."""
        policy, now = self._policy, self._now()
        if policy is None or standing(policy, caller, now) is not None:
            return False
        return policy.rights(caller.principal_id).sensitive_read().allowed

    def _may_load(self, caller: Caller, place: Destination) -> bool:
        rights = network_rights(self._policy, caller, self._now())
        return rights is not None and rights.resource(place).allowed

    def _now(self) -> int:
        """Wall time that never goes back, so that setting the clock back revives nothing."""
        self._latest_ms = max(self._latest_ms, self._clock.wall_ms())
        return self._latest_ms

    def _current(self) -> CompiledPolicy | None:
        policy = self._policy
        return None if policy is None or self._now() >= policy.expires_ms else policy

    def _signature(self) -> tuple[int, ...]:
        """What changes when the file does; empty when there is none."""
        try:
            state = os.stat(self.path)
        except OSError:
            return ()
        return (state.st_mtime_ns, state.st_ino, state.st_size, state.st_ctime_ns)

    def _take(self) -> tuple[CompiledPolicy | None, str]:
        """The policy in the file, remembered before it is used; or None and why not. In a thread."""
        # Looked at before it is read: a change in between is then noticed at the next look.
        self._seen = self._signature()
        try:
            data = read_public_file(self.path, MAX_ENVELOPE_BYTES)
            with self._state.changing() as change:
                latest = replace(change.state, wall_ms=max(change.state.wall_ms, self._now()))
                after, policy = admit(latest, data, self._clock.wall_ms(), self._adapter_scopes)
                change.save(after)
        except ConfigurationError as error:
            return None, f"{self.path}: {error}"
        self._saved_ms = after.wall_ms
        return policy, ""

    def _publish(self, policy: CompiledPolicy | None, problem: str) -> PolicyReport:
        if policy is None:
            stays = self.policy_version
            ending = f"version {stays} stays in force until it expires" if stays else "nothing is allowed"
            report = PolicyReport("refused", stays, f"{problem}; {ending}")
        else:
            version = policy.document.version
            if self._policy is None or self._policy.document != policy.document:
                self._policy = policy
                report = PolicyReport("taken", version, f"version {version} is in force")
            else:
                report = PolicyReport("unchanged", version, f"version {version} is in force already")
        self._report(report)
        return report

    async def _end_expired(self) -> None:
        if self._policy is None or self._current() is not None:
            return
        version, self._policy = self._policy.document.version, None
        self._report(PolicyReport("expired", 0, f"version {version} has expired; nothing is allowed"))
        if self._on_change is not None:
            await self._on_change()

    def _save_time(self) -> None:
        try:
            with self._state.changing() as change:
                now = max(change.state.wall_ms, self._now())
                change.save(replace(change.state, wall_ms=now))
        except ConfigurationError as error:
            self._report(PolicyReport("refused", self.policy_version, str(error)))
            return
        self._saved_ms = now


def _endpoint(host: str, port: int) -> Destination:
    """A connection says nothing of its scheme, so either's usual port counts as usual."""
    return Destination(host, port, port in (80, 443))
