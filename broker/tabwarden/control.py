"""A running broker as its host holds it: say who may do what, take it away again, close."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import trio

from tabwarden.authority.principals import Capability, Grant
from tabwarden.errors import AuditUnavailable, HostReason
from tabwarden.limits import TOKEN_BYTES
from tabwarden.model import ConnectionDescriptor, LifecycleEvent
from tabwarden.ports import CredentialStore, StatementSigner
from tabwarden.protocol.codec import SUITE
from tabwarden.protocol.proof import LEGACY_ID
from tabwarden.service.asgi_app import AsgiApp
from tabwarden.service.call import Call
from tabwarden.service.collector_pause import collector_paused
from tabwarden.service.endpoint import Endpoint
from tabwarden.service.request_scope import Cause
from tabwarden.service.runtime import Runtime
from tabwarden.service.statistics import Statistics, statistics_of


@dataclass(frozen=True, slots=True)
class IssuedPrincipal:
    """A credential that is good. `expires_at_ms` is wall time since the Unix epoch; None: with its grant."""

    principal_id: str
    generation: int
    expires_at_ms: int | None


class AgentControl:
    """A running broker. Made by `start_agent_control`."""

    def __init__(
        self,
        runtime: Runtime,
        nursery: trio.Nursery,
        endpoint: Endpoint | None,
        asgi: AsgiApp,
        persist: CredentialStore | None,
    ) -> None:
        self._runtime = runtime
        self._nursery = nursery
        self._endpoint = endpoint
        self._persist = persist
        self._legacy: ConnectionDescriptor | None = None
        self.asgi_app: Final = asgi

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`."""
        return self._runtime.identity.address

    @property
    def token(self) -> bytes | None:
        """The 32-byte pairing token of legacy mode; individual mode has no shared credential."""
        return None if self._legacy is None else self._legacy.token

    @property
    def ed_public(self) -> bytes:
        """32 bytes (RFC 8032)."""
        return self._runtime.identity.ed_public

    @property
    def pq_public(self) -> bytes:
        """2,592 bytes (FIPS 204, ML-DSA-87)."""
        return self._runtime.identity.pq_public

    @property
    def statement_signer(self) -> StatementSigner:
        """Signs with this instance's two keys, for an audit log's checkpoints: `audit.sign_with(…)`."""
        return self._runtime.statements

    @property
    def protocol(self) -> str:
        """The suite string; there is only one."""
        return SUITE

    @property
    def descriptor(self) -> ConnectionDescriptor | None:
        """What a legacy agent pairs with."""
        return self._legacy

    def statistics(self) -> Statistics:
        """A snapshot for metrics. May be called from another thread."""
        return statistics_of(self._runtime, 0 if self._endpoint is None else self._endpoint.connections)

    async def reconcile_principals(self, grants: Iterable[Grant]) -> None:
        """Take over the approved grants. Principals that lose theirs lose their running work at once."""
        with collector_paused():
            await self._settle(self._reconcile(grants))

    def _reconcile(self, grants: Iterable[Grant]) -> list[Call]:
        lost = self._runtime.registry.reconcile(grants, self._runtime.wall_ms())
        calls = [
            call
            for capability in lost
            for call in self._runtime.end_calls(Cause.REVOKED, capability.principal_id)
        ]
        for capability in lost:
            self._note("principal-revoked", capability)
        return calls

    async def issue_principal(
        self, principal_id: str, generation: int, expires_at_ms: int | None = None
    ) -> ConnectionDescriptor:
        """A fresh credential for an approved grant; the one issued before for this id stops working.

        `expires_at_ms` is wall time since the Unix epoch. Raises `ConfigurationError` without a matching,
        enabled, unexpired grant.
        """
        token = os.urandom(TOKEN_BYTES)
        capability = self._runtime.registry.issue(
            token, principal_id, generation, expires_at_ms, self._runtime.wall_ms()
        )
        replaced = self._runtime.end_calls(Cause.REVOKED, principal_id)
        descriptor = self._describe(capability, token)
        try:
            if self._persist is not None:
                await self._persist(descriptor)
        except BaseException:
            # A credential that could not be stored must not exist.
            if self._runtime.registry.is_current(capability, 0):
                self._runtime.registry.remove(principal_id)
            raise
        self._note("principal-issued", capability)
        await self._settle(replaced)
        return descriptor

    async def revoke_principal(self, principal_id: str) -> None:
        """Take one principal's credential. Its work is cancelled and its results are not released."""
        with collector_paused():
            capability = self._runtime.registry.remove(principal_id)
            calls = self._runtime.end_calls(Cause.REVOKED, principal_id)
            if capability is not None:
                self._note("principal-revoked", capability)
            await self._settle(calls)

    async def end_expired(self) -> None:
        """End the principals whose time is over, as a revocation does. The broker does so by itself, once a
        second; nothing that has expired works until then either."""
        registry, now = self._runtime.registry, self._runtime.wall_ms()
        over = [capability for capability in registry if not registry.is_current(capability, now)]
        calls = []
        for capability in over:
            registry.remove(capability.principal_id)
            calls += self._runtime.end_calls(Cause.REVOKED, capability.principal_id)
            self._note("principal-expired", capability)
        await self._settle(calls)

    def principals(self) -> tuple[IssuedPrincipal, ...]:
        """Whose credentials are good now, in the order of their ids; none in legacy mode."""
        registry, now = self._runtime.registry, self._runtime.wall_ms()
        if registry.mode == "legacy":
            return ()
        current = [one for one in registry if registry.is_current(one, now)]
        return tuple(
            IssuedPrincipal(one.principal_id, one.generation, one.expires_at_ms)
            for one in sorted(current, key=lambda one: one.principal_id)
        )

    async def policy_changed(self, grants: Iterable[Grant] | None = None) -> None:
        """End what was begun under another policy: all calls in flight, and waits for a person with them.

        Their results are not released even when something was done already: the caller is told `stale`, with
        what is known of effects. Credentials stay good, but with `grants`, those of the new policy in
        individual mode, the ones that have no grant any more end as in `reconcile_principals`. Call it when
        policy has changed and already decides anew, with no await in between: all calls have ended before
        this one waits for anything.
        """
        with collector_paused():
            calls = [] if grants is None else self._reconcile(grants)
            calls += self._runtime.end_calls(Cause.POLICY_CHANGED)
            await self._settle(calls)

    async def revoke(self) -> None:
        """Disable this instance for good: nothing that it ever issued works again. Idempotent.

        Running work is cancelled and its results are not released. The endpoint stays, refusing everything,
        until `close()`.
        """
        first = not self._runtime.registry.revoked
        with collector_paused():
            self._runtime.registry.revoke_all()
            calls = self._runtime.end_calls(Cause.REVOKED)
            if first:
                self._note("revoked", None)
            await self._settle(calls)

    async def close(self) -> None:
        """Shut down: running calls are cancelled and recorded, then the endpoint goes. Idempotent.

        Returns when no owned work is left, or after `Limits.close_s` if an adapter refuses to stop.
        """
        runtime = self._runtime
        if not runtime.closing:
            runtime.closing = True
            with trio.CancelScope(shield=True, deadline=trio.current_time() + runtime.limits.close_s):
                await self._settle(runtime.end_calls(Cause.CLOSED))
                if self._endpoint is not None:
                    await self._endpoint.drain()
                runtime.refusals.summarize()
                self._note("closed", None)
                try:
                    await runtime.audit.flush()
                except AuditUnavailable:
                    runtime.report(HostReason.AUDIT_UNAVAILABLE)
            self._nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + runtime.limits.close_s):
            await runtime.stopped.wait()

    async def _settle(self, calls: list[Call]) -> None:
        """Wait for cancelled calls to end; those that do not are ended without their adapter."""
        with trio.move_on_after(self._runtime.limits.cancel_grace_s):
            for call in calls:
                await call.done.wait()
        for call in calls:
            if not call.done.is_set():
                call.abandon()

    def _note(self, event: Any, capability: Capability | None) -> None:
        runtime = self._runtime
        try:
            runtime.audit.note(
                LifecycleEvent(
                    event=event,
                    wall_ms=runtime.clock.wall_ms(),
                    boot_ms=runtime.clock.boottime_ms(),
                    principal_id=None if capability is None else capability.caller.principal_id,
                    generation=None if capability is None else capability.caller.generation,
                )
            )
        except AuditUnavailable:
            runtime.report(HostReason.AUDIT_UNAVAILABLE)

    def _describe(self, capability: Capability, token: bytes) -> ConnectionDescriptor:
        identity = self._runtime.identity
        return ConnectionDescriptor(
            address=identity.address,
            token=token,
            ed_public=identity.ed_public,
            pq_public=identity.pq_public,
            instance=identity.instance,
            principal_id=capability.principal_id,
            generation=capability.generation,
            protocol=SUITE,
            expires_at_ms=capability.expires_at_ms,
        )

    async def begin(self) -> None:
        """Pair, in legacy mode, and put the start on record. Called once, by `start_agent_control`."""
        if self._runtime.registry.mode == "legacy":
            await self._pair_legacy()
        self._note("started", None)

    async def _pair_legacy(self) -> None:
        """Make and persist the one legacy credential."""
        token = os.urandom(TOKEN_BYTES)
        descriptor = self._describe(self._runtime.registry.pair_legacy(token), token)
        try:
            if self._persist is not None:
                await self._persist(descriptor)
        except BaseException:
            self._runtime.registry.remove(LEGACY_ID)
            raise
        self._legacy = descriptor
