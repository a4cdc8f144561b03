"""Puts a broker together: policy, audit, browser, credentials and tracing around `start_agent_control`."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio
from tabwarden import AgentControl, start_agent_control
from tabwarden.errors import HostReason
from tabwarden.providers import load_provider
from tabwarden_observability import Tracing, setup_metrics, setup_tracing

from tabwarden_adapters.audit import DurableAuditLog, durable_audit_log
from tabwarden_adapters.browser import GrantEnds, HostCounts, guarded_chromium
from tabwarden_adapters.cli.application import application_controls
from tabwarden_adapters.cli.settings import ServeSettings
from tabwarden_adapters.credentials import DescriptorStore, chosen_protector
from tabwarden_adapters.policy import StaticPolicy


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """Everything that one broker consists of."""

    control: AgentControl
    audit: DurableAuditLog
    tracing: Tracing
    browser: str
    protection: str


@asynccontextmanager
async def running_broker(
    settings: ServeSettings,
    on_error: Callable[[HostReason], None] | None = None,
    *,
    ask: Callable[[bool], bytes] | None = None,
) -> AsyncIterator[RunningBroker]:
    """A broker with its browser while the block runs; ends both, removes the descriptor, keeps the audit.

    `ask` gives a passphrase, for the protector of that name. Raises `ConfigurationError` saying what to do.
    """
    policy = StaticPolicy(
        {
            "scopes": settings.scopes,
            "allowed_hosts": settings.allowed_hosts,
            "resource_hosts": settings.resource_hosts,
        }
    )
    provider = load_provider(settings.provider)
    chosen = await trio.to_thread.run_sync(lambda: chosen_protector(settings.protector, ask=ask))
    store = DescriptorStore(settings.connection_path, chosen.protector)
    tracing, metrics, egress = setup_tracing(), setup_metrics(), HostCounts()
    metrics.observe_egress(egress.for_metrics)
    try:
        async with durable_audit_log(settings.audit_path) as audit, trio.open_nursery() as nursery:
            async with (
                application_controls(settings.application, settings.scopes, policy) as controls,
                guarded_chromium(
                    nursery,
                    policy,
                    lambda: policy.policy_version,
                    context=settings.browser_context,
                    headless=settings.headless,
                    counters=egress,
                    app_controls=controls,
                ) as browser,
            ):
                control = await start_agent_control(
                    nursery,
                    authorize=policy,
                    actions=browser.actions,
                    audit=GrantEnds(audit, browser.guard),
                    persist_credential=store,
                    on_error=on_error,
                    timeout=settings.timeout_s,
                    max_requests_per_minute=settings.requests_per_minute,
                    tracer=tracing.tracer,
                    provider=provider,
                )
                try:
                    browser.guard.protect(int(control.address.rpartition(":")[2]))
                    yield RunningBroker(control, audit, tracing, browser.chromium.product, chosen.reason)
                finally:
                    await control.close()
                    with trio.CancelScope(shield=True):
                        await trio.to_thread.run_sync(store.remove)
            nursery.cancel_scope.cancel()
    finally:
        await metrics.shutdown()
        await tracing.shutdown()
