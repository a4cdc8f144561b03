"""Puts a broker together: policy, audit, browser, credentials and tracing around `start_agent_control`."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio
from tabwarden import AgentControl, start_agent_control
from tabwarden.errors import HostReason
from tabwarden.ports import CredentialStore
from tabwarden.providers import load_provider
from tabwarden_observability import AuditFigures, Tracing, broker_metrics, setup_metrics, setup_tracing

from tabwarden_adapters.administration import administration
from tabwarden_adapters.audit import DurableAuditLog, Pin, durable_audit_log
from tabwarden_adapters.browser import GrantEnds, Guard, HostCounts
from tabwarden_adapters.cli.application import application_controls
from tabwarden_adapters.cli.browsing import browsing
from tabwarden_adapters.cli.consent import Consent
from tabwarden_adapters.cli.governing import Ruling, signed_ruling, static_ruling
from tabwarden_adapters.cli.inspection import PolicyInspector
from tabwarden_adapters.cli.model import model_gateway
from tabwarden_adapters.cli.office import Office
from tabwarden_adapters.cli.principals import Principals
from tabwarden_adapters.cli.settings import ServeSettings
from tabwarden_adapters.credentials import ChosenProtector, DescriptorStore, PrincipalStore, chosen_protector
from tabwarden_adapters.policy import PolicyReport, naming_denials


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBroker:
    """Everything that one broker consists of. `principals` is None in legacy mode."""

    control: AgentControl
    audit: DurableAuditLog
    tracing: Tracing
    ruling: Ruling
    approver: str
    inspector: PolicyInspector
    browser: str
    protection: str
    principals: Principals | None
    pin: Pin


@asynccontextmanager
async def running_broker(
    settings: ServeSettings,
    on_error: Callable[[HostReason], None] | None = None,
    *,
    on_policy: Callable[[PolicyReport], None] = lambda report: None,
    on_host_gone: Callable[[], None] = lambda: None,
    ask: Callable[[bool], bytes] | None = None,
) -> AsyncIterator[RunningBroker]:
    """A broker with its browser while the block runs; ends both, removes the descriptors, keeps the audit.

    `on_policy` is told what becomes of a signed policy, `on_host_gone` that a host has ended. `ask` gives a
    passphrase, for the protector of that name. Raises `ConfigurationError` saying what to do.
    """
    change: _PolicyChange | None = None

    async def on_change() -> None:
        if change is not None:
            await change.act()

    if settings.policy is None:
        ruling = static_ruling(settings)
    else:
        ruling = await signed_ruling(settings, Path(settings.policy), on_policy, on_change)
    provider = load_provider(settings.provider)
    inspector = PolicyInspector(ruling, settings.timeout_s)
    await inspector.follow()
    chosen = await trio.to_thread.run_sync(lambda: chosen_protector(settings.protector, ask=ask))
    tracing, metrics, egress = setup_tracing(), setup_metrics(), HostCounts()
    metrics.observe_egress(egress.for_metrics)
    try:
        model = await trio.to_thread.run_sync(
            model_gateway,
            settings.ai,
            ruling.signed,
            inspector,
            tracing.provider.get_tracer("tabwarden.ai"),
        )
        async with (
            durable_audit_log(
                settings.audit_path, rules=settings.audit_files.rules(), on_failure=on_error
            ) as audit,
            trio.open_nursery() as nursery,
        ):
            inspector.start(nursery)
            async with (
                _stored(ruling, settings, chosen) as store,
                application_controls(
                    settings.application,
                    wanted=ruling.application_scopes,
                    policy=ruling.application,
                    destination_allowed=ruling.network.destination_allowed,
                    inspect=inspector,
                ) as controls,
                browsing(
                    nursery,
                    settings,
                    ruling,
                    counters=egress,
                    controls=controls,
                    inspect=inspector,
                    ai=model,
                ) as here,
            ):
                browser = here.browser
                consent = Consent(ruling.authorize, ruling.version, browser.where, settings.approver)
                control = await start_agent_control(
                    nursery,
                    authorize=here.authorize(consent.authorize),
                    actions=naming_denials(here.actions),
                    audit=GrantEnds(consent.audit(audit), browser.guard),
                    persist_credential=store,
                    on_error=on_error,
                    timeout=settings.timeout_s,
                    max_requests_per_minute=settings.requests_per_minute,
                    tracer=tracing.tracer,
                    provider=provider,
                    identity_mode=ruling.identity_mode,
                    latest_wall_ms=0 if ruling.signed is None else ruling.signed.latest_wall_ms,
                )
                principals = Principals(control, store) if isinstance(store, PrincipalStore) else None
                async with AsyncExitStack() as ending:
                    ending.push_async_callback(control.close)
                    browser.guard.protect(int(control.address.rpartition(":")[2]))
                    if metrics.scrape_port is not None:
                        browser.guard.protect(metrics.scrape_port)
                    pin = await audit.sign_with(control.statement_signer)
                    change = _PolicyChange(ruling, consent, inspector, control, browser.guard, principals)
                    await change.act()
                    nursery.start_soon(here.watch, partial(_host_gone, control, browser.guard, on_host_gone))
                    if principals is not None:
                        nursery.start_soon(principals.keep_tidy)
                    if ruling.signed is not None:
                        nursery.start_soon(ruling.signed.watch)
                    await ending.enter_async_context(consent.attended())
                    watched = broker_metrics(
                        metrics,
                        tracing=tracing,
                        statistics=control.statistics,
                        audit=partial(_audit_figures, audit),
                        sessions=browser.guard.tabs,
                    )
                    ending.enter_context(watched)
                    office = Office(ruling, consent, principals, tracing)
                    await ending.enter_async_context(administration(settings.admin_path, office, on_error))
                    yield RunningBroker(
                        inspector=inspector,
                        control=control,
                        audit=audit,
                        tracing=tracing,
                        ruling=ruling,
                        approver=consent.approver,
                        browser=browser.chromium.product,
                        protection=chosen.reason,
                        principals=principals,
                        pin=pin,
                    )
            nursery.cancel_scope.cancel()
    finally:
        await tracing.shutdown()  # first: the last durations come out of it
        await metrics.shutdown()


async def _host_gone(control: AgentControl, guard: Guard, tell: Callable[[], None]) -> None:
    """Whatever was begun ends now; nothing new begins, since whoever asks the host knows it is gone."""
    guard.end_all()
    tell()
    await control.policy_changed()


def _audit_figures(audit: DurableAuditLog) -> AuditFigures:
    now = audit.statistics
    return AuditFigures(
        records=now.records,
        syncs=now.fdatasyncs,
        sync_s=now.total_sync_s,
        lag=max(audit.head.sequence - audit.durable_sequence, 0),
        trouble=audit.trouble is not None,
    )


@dataclass(frozen=True, slots=True)
class _PolicyChange:
    """What a change of policy has to reach: questions, connections, grants, calls in flight, text rules."""

    ruling: Ruling
    consent: Consent
    inspector: PolicyInspector
    control: AgentControl
    guard: Guard
    principals: Principals | None

    async def act(self) -> None:
        self.consent.authorize.policy_changed()
        self.guard.recheck()
        if self.principals is not None and self.ruling.signed is not None:
            await self.principals.policy_changed(self.ruling.signed.grants())
        else:
            await self.control.policy_changed()
        await self.inspector.follow()  # last: what it takes time for waits for it anyway


@asynccontextmanager
async def _stored(
    ruling: Ruling, settings: ServeSettings, chosen: ChosenProtector
) -> AsyncIterator[CredentialStore]:
    """Where descriptors go; what was written there is removed at the end."""
    store: DescriptorStore | PrincipalStore
    if ruling.identity_mode == "legacy":
        store = DescriptorStore(settings.connection_path, chosen.protector)
        end: Callable[[], object] = store.remove
    else:
        folder = settings.principals_path
        store = await trio.to_thread.run_sync(PrincipalStore, folder, chosen.protector)
        end = store.close
    try:
        yield store
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(end)
