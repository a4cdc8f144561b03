"""The public face: start a broker in your own trio nursery.

async with trio.open_nursery() as nursery:
    control = await start_agent_control(nursery, authorize=..., actions=..., audit=...)
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import trio

from tabwarden.actions import ACTIONS
from tabwarden.authority.principals import IdentityMode, InstanceIdentity, PrincipalRegistry
from tabwarden.clock import SystemClock
from tabwarden.control import AgentControl
from tabwarden.errors import ConfigurationError, HostReason
from tabwarden.limits import TOKEN_BYTES, Limits
from tabwarden.ports import (
    ActionAdapter,
    AuditSink,
    Authorizer,
    Clock,
    CredentialStore,
    ErrorObserver,
    Tracer,
)
from tabwarden.protocol.primitives import Ed25519Signer, PqProvider
from tabwarden.protocol.statement import InstanceSigner
from tabwarden.providers import load_provider
from tabwarden.service.asgi_app import AsgiApp
from tabwarden.service.challenge_pool import ChallengePool
from tabwarden.service.endpoint import Endpoint
from tabwarden.service.no_trace import NullTracer
from tabwarden.service.peer_socket import PeerLookup
from tabwarden.service.pipeline import Pipeline
from tabwarden.service.refusals import RefusalCounter
from tabwarden.service.runtime import Runtime
from tabwarden.service.upkeep import keep_pool, summarize_refusals

LOOPBACK: Final = "127.0.0.1"
EXPIRY_CHECK_S: Final = 1.0  # wall time can be set, so an expiry is looked for and not waited for


async def start_agent_control(
    nursery: trio.Nursery,
    *,
    authorize: Authorizer,
    actions: Mapping[str, ActionAdapter],
    audit: AuditSink,
    persist_credential: CredentialStore | None = None,
    credential_file: object = None,
    on_error: ErrorObserver | None = None,
    timeout: float | None = None,
    max_requests_per_minute: int | None = None,
    tracer: Tracer | None = None,
    identity_mode: IdentityMode = "legacy",
    limits: Limits | None = None,
    clock: Clock | None = None,
    provider: PqProvider | None = None,
    serve_at: str | None = None,
    latest_wall_ms: int = 0,
) -> AgentControl:
    """Start a broker in `nursery` and return when it accepts connections.

    `authorize` decides each call, `actions` maps names of the action table to adapters, `audit` records.
    `timeout` (seconds, default 10) is the action deadline and `max_requests_per_minute` (default 60) each
    principal's rate; `limits` moves the rest. `serve_at="127.0.0.1:PORT"` starts no listener: serve
    `control.asgi_app` at exactly that address. `latest_wall_ms` is the latest wall time known from before: a
    clock that was set back meanwhile revives no expiry. Raises `ConfigurationError`. A fault in the broker
    never cancels `nursery`.
    """
    if credential_file is not None:
        raise ConfigurationError(
            "a plaintext credential file is never written: pass persist_credential, with protected storage"
        )
    unknown = sorted(set(actions) - set(ACTIONS))
    if unknown:
        raise ConfigurationError(f"no action is called {unknown[0]!r}: see the action table")
    limits = _limits(limits or Limits(), timeout, max_requests_per_minute)
    clock = clock or SystemClock()
    provider = provider or load_provider()
    ed, pq = Ed25519Signer(), await trio.to_thread.run_sync(provider.signer)
    listener: trio.SocketListener | None = None
    if serve_at is None:
        listener = (await trio.open_tcp_listeners(0, host=LOOPBACK))[0]
        serve_at = "{}:{}".format(*listener.socket.getsockname())
    identity = InstanceIdentity(serve_at, ed.public, pq.public)
    pool = ChallengePool(identity.instance, ed, pq, provider, limits, clock)
    runtime = Runtime(
        identity=identity,
        registry=PrincipalRegistry(identity, identity_mode, limits, decoy=os.urandom(TOKEN_BYTES)),
        pool=pool,
        limits=limits,
        clock=clock,
        authorize=authorize,
        adapters=dict(actions),
        audit=audit,
        statements=InstanceSigner(ed, pq),
        tracer=tracer or NullTracer(),
        refusals=RefusalCounter(audit, clock),
        on_error=on_error,
        host=serve_at.encode(),
        highest_wall_ms=latest_wall_ms,
    )
    control: AgentControl = await nursery.start(_run, runtime, listener, persist_credential)
    try:
        await control.begin()
    except BaseException:
        await control.close()
        raise
    return control


def _limits(limits: Limits, timeout: float | None, requests: int | None) -> Limits:
    if timeout is not None:
        limits = replace(limits, action_deadline_s=timeout)
    if requests is not None:
        limits = replace(limits, requests_per_minute=requests)
    return limits


async def _run(
    runtime: Runtime,
    listener: trio.SocketListener | None,
    persist: CredentialStore | None,
    *,
    task_status: trio.TaskStatus[AgentControl],
) -> None:
    """The broker's one task in the host's nursery; everything else hangs below it."""
    pipeline = Pipeline(runtime)
    peers = PeerLookup()
    try:
        async with trio.open_nursery() as nursery:
            endpoint = None if listener is None else Endpoint(runtime, pipeline, nursery, listener, peers)
            asgi = AsgiApp(runtime, pipeline, nursery, peers)
            nursery.start_soon(keep_pool, runtime)
            nursery.start_soon(summarize_refusals, runtime)
            if endpoint is not None:
                nursery.start_soon(endpoint.serve)
                nursery.start_soon(endpoint.watch)
            control = AgentControl(runtime, nursery, endpoint, asgi, persist)
            nursery.start_soon(_end_expired, control)
            task_status.started(control)
    except* Exception:
        # Ours, and not the host's: the broker is gone, which its callers see as a closed connection.
        runtime.report(HostReason.INTERNAL_FAULT)
    finally:
        peers.close()
        runtime.closing = True
        runtime.stopped.set()


async def _end_expired(control: AgentControl) -> None:
    while True:
        await trio.sleep(EXPIRY_CHECK_S)
        await control.end_expired()
