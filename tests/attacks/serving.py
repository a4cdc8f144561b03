"""A broker to attack, on either transport, with an audit, an observer and counts to look at afterwards."""

import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from tabwarden.control import AgentControl
from tabwarden.errors import Refusal
from tabwarden.limits import Limits
from tabwarden.model import ConnectionDescriptor
from tabwarden.starting import start_agent_control

from tests.support.fakes import AllowOnly, ManualClock, MemoryAudit, Reasons

OWN, HYPERCORN = "own", "hypercorn"

_HEAD = (
    b"content-type: text/plain\r\ncontent-length: 8\r\n"
    b"cache-control: no-store\r\nconnection: close\r\n\r\nrefused\n"
)
# The one refusal, byte for byte. Hypercorn's own status line has no reason phrase.
REFUSAL = {OWN: b"HTTP/1.1 403 Forbidden\r\n" + _HEAD, HYPERCORN: b"HTTP/1.1 403 \r\n" + _HEAD}


async def no_tabs(arguments: object, context: object) -> list[object]:
    return []


class Broker:
    """A running broker and everything that it tells."""

    def __init__(self, transport: str, control: AgentControl, audit: MemoryAudit, reasons: Reasons) -> None:
        self.transport = transport
        self.control = control
        self.audit = audit
        self.reasons = reasons
        self.contained: list[BaseException] = []

    @property
    def runtime(self) -> Any:
        return self.control._runtime

    @property
    def descriptor(self) -> ConnectionDescriptor:
        assert self.control.descriptor is not None
        return self.control.descriptor

    @property
    def refusal(self) -> bytes:
        return REFUSAL[self.transport]

    def refused(self, reason: Refusal) -> int:
        return self.control.statistics().refusals.get(reason, 0)

    def kept(self) -> dict[str, object]:
        """All that a request could leave behind."""
        registry, statistics = self.runtime.registry, self.control.statistics()
        return {
            "signatures": statistics.signatures,
            "calls": statistics.calls_in_flight,
            "outcomes": sum(statistics.outcomes.values()),
            "records": len(self.audit.events),
            "accounts": {
                name: (
                    len(account.nonces),
                    len(account.nonces._order),
                    len(account.challenges),
                    len(account.requests._taken),
                    len(account.challenge_budget._taken),
                    len(account.outcomes._entries),
                )
                for name, account in registry._accounts.items()
            },
        }

    async def filled(self) -> None:
        """Return when the pool holds what an idle broker keeps."""
        limits = self.runtime.limits
        await until(lambda: self.control.statistics().ready_challenges >= limits.idle_batch_size)

    async def quiet(self) -> None:
        """Return when no call runs and no connection is open (our own endpoint's)."""
        await until(lambda: self.idle)

    @property
    def idle(self) -> bool:
        statistics = self.control.statistics()
        return statistics.calls_in_flight == 0 and statistics.connections == 0


async def until(condition: Any, *, seconds: float = 10.0) -> None:
    """Let other tasks run until `condition` holds; no time is waited for, only events of others."""
    with trio.fail_after(seconds):
        while not condition():
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def serve(
    transport: str = OWN,
    *,
    allow: tuple[str, ...] = ("sessions",),
    actions: Mapping[str, Any] | None = None,
    audit: MemoryAudit | None = None,
    clock: ManualClock | None = None,
    limits: Limits | None = None,
    leftovers: bool = False,
    filled: bool = True,
    **options: Any,
) -> AsyncIterator[Broker]:
    """Run a broker around the block; afterwards nothing of it may be left and the host must be unharmed.

    `leftovers` is for adapters that ignore cancellation: `close()` then returns before they do. Without
    `filled` the block starts while the pool is still empty.
    """
    audit = audit or MemoryAudit()
    reasons = Reasons()
    options.setdefault("authorize", AllowOnly(*allow))
    options.setdefault("on_error", reasons)
    actions = {"sessions": no_tabs} if actions is None else actions
    # Small batches: the pool then signs seldom, and not while a test compares counts. No summary either.
    limits = limits or Limits(batch_size=8, refusal_window_s=3600)
    start = partial(start_agent_control, actions=actions, audit=audit, clock=clock, limits=limits, **options)
    async with trio.open_nursery() as host:
        if transport == OWN:
            broker = Broker(transport, await start(host), audit, reasons)
            if filled:
                await broker.filled()
            yield broker
            await broker.control.close()
        else:
            listening = await trio.open_tcp_listeners(0, host="127.0.0.1")
            address = "{}:{}".format(*listening[0].socket.getsockname())
            broker = Broker(transport, await start(host, serve_at=address), audit, reasons)
            server = await host.start(_serve_hypercorn, broker, listening)
            if filled:
                await broker.filled()
            yield broker
            await broker.control.close()
            server.cancel()
        assert broker.control.statistics().calls_in_flight == 0
        assert broker.control.statistics().connections == 0
        assert not broker.contained
        assert leftovers or not [task for task in host.child_tasks if "hypercorn" not in task.name]


def quiet_config() -> Config:
    config = Config()
    config.include_server_header = False
    config.include_date_header = False
    config.errorlog = None
    config.accesslog = None
    return config


async def _serve_hypercorn(
    broker: Broker, listening: list[trio.SocketListener], *, task_status: trio.TaskStatus[trio.CancelScope]
) -> None:
    """Hypercorn's connection handler under our own listener: a fault in one connection stays there."""
    config = quiet_config()
    context = WorkerContext(None)
    app = ASGIWrapper(broker.control.asgi_app)

    async def connection(stream: trio.SocketStream) -> None:
        try:
            await TCPServer(app, config, context, ConnectionState({}), stream)
        except* (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError, OSError):
            pass  # Hypercorn's, when a peer leaves in the middle: known, and nothing of ours
        except* Exception as group:
            broker.contained.append(group)

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.serve_listeners, connection, listening, handler_nursery=nursery))
            task_status.started(scope)


def free_port() -> tuple[socket.socket, str]:
    """A bound port that nobody listens on, and its address. Close the socket to free it."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound, "{}:{}".format(*bound.getsockname())


logging.getLogger("hypercorn.error").addHandler(logging.NullHandler())
