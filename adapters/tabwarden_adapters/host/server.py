"""The host's side: a control server on 127.0.0.1 in a nursery of the host's, and host.json that names it."""

import errno
import os
import secrets
import socket
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import trio
from hypercorn.config import Config
from tabwarden.errors import ConfigurationError
from tabwarden.loopback_stream import LoopbackStream

from tabwarden_adapters.host.app import control_app
from tabwarden_adapters.host.calls import Calls
from tabwarden_adapters.host.connection import Connection
from tabwarden_adapters.host.contained import App, quiet_config
from tabwarden_adapters.host.endpoints import Endpoints
from tabwarden_adapters.host.errors import ErrorCode
from tabwarden_adapters.host.host_file import LOOPBACK, HostFile, default_home, process_started
from tabwarden_adapters.host.limits import HostLimits
from tabwarden_adapters.host.peers import Peers
from tabwarden_adapters.host.ports import HostBackend, Scrubber
from tabwarden_adapters.host.publishing import publish, withdraw
from tabwarden_adapters.host.seen_log import LogCounts, SeenLog

_TOKEN_BYTES = 32  # 256 bits: it cannot be guessed
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ACCEPT_REST_S = 0.1  # when file descriptors run out: wait for some to be given back


@dataclass(frozen=True, slots=True)
class HostStatistics:
    """Counts since the start. `contained` are faults of our own inside one connection: none is expected."""

    connections: int
    waiting: int
    served: int
    too_many: int
    foreign: int
    contained: int
    refused: dict[ErrorCode, int]
    log: LogCounts


@dataclass(slots=True)
class _Counts:
    served: int = 0
    too_many: int = 0
    foreign: int = 0
    contained: int = 0
    refused: Counter[ErrorCode] = field(default_factory=Counter)


class HostControlServer:
    """`async with HostControlServer(nursery, backend, cdp_port=9222) as server:` serves while the block runs.

    Its tasks live in `nursery`, and nothing that goes wrong in them cancels it. On exit questions before the
    person are withdrawn, host.json is removed if it is still ours, and the port is closed; that takes
    `limits.close_s` at the most, also when the backend ignores cancellation.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        backend: HostBackend,
        *,
        cdp_port: int,
        home: Path | None = None,
        port: int = 0,
        scrubber: Scrubber | None = None,
        limits: HostLimits | None = None,
    ) -> None:
        """`cdp_port` is the host's Chromium's, `port` ours (0: a free one), `home` the folder of host.json.

        Without a `scrubber` no text of the log is kept or passed on. Raises `ConfigurationError`.
        """
        if not 1 <= cdp_port <= 65_535:
            raise ConfigurationError("cdp_port must be a port, 1 to 65535")
        if not 0 <= port <= 65_535:
            raise ConfigurationError("port must be 0 to 65535")
        self._nursery = nursery
        self._backend = backend
        self._cdp_port = cdp_port
        self._home = default_home() if home is None else home
        self._port = port
        self._limits = limits or HostLimits()
        self._token = secrets.token_hex(_TOKEN_BYTES)
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._drained = trio.Event()
        self._counts = _Counts()
        self._open = 0
        self._begun = False
        self._calls: Calls | None = None
        self._file: HostFile | None = None
        self._published = False
        self.log = SeenLog(scrubber, self._limits)
        """What engines said that their models were sent, for a screen of the host's."""

    def __repr__(self) -> str:
        return f"HostControlServer({self.address if self._file else 'not started'})"

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`. Raises RuntimeError before the start."""
        if self._file is None:
            raise RuntimeError("not started")
        return f"{LOOPBACK}:{self._file.control_port}"

    @property
    def token(self) -> str:
        """The bearer token, in hexadecimal."""
        return self._token

    def statistics(self) -> HostStatistics:
        """The counts now."""
        counts = self._counts
        return HostStatistics(
            connections=self._open,
            waiting=0 if self._calls is None else self._calls.waiting,
            served=counts.served,
            too_many=counts.too_many,
            foreign=counts.foreign,
            contained=counts.contained,
            refused=dict(counts.refused),
            log=self.log.counts,
        )

    async def __aenter__(self) -> Self:
        if self._begun:
            raise RuntimeError("a server starts once")
        self._begun = True
        listener = await self._listen()
        try:
            bound = listener.socket.getsockname()[1]
            pid = os.getpid()
            self._file = HostFile(self._cdp_port, bound, self._token, pid, process_started(pid))
            await self._nursery.start(self._serve, listener)
        except BaseException:
            listener.socket.close()
            raise
        try:
            # Last, so that whoever finds the file finds a server behind it.
            await publish(self._home, self._file)
            self._published = True
        except BaseException:
            withdraw(self._home, self._file)
            await self.close()  # shielded and bounded: the port is free again when the error arrives
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def revoke(self) -> None:
        """Withdraw the consent for good: questions end with `revoked`, and so does every later request."""
        self._withdraw()
        if self._calls is not None:
            self._calls.end_all(ErrorCode.REVOKED)

    async def close(self) -> None:
        """Stop serving. Idempotent; bounded also under cancellation."""
        self._withdraw()
        if self._calls is not None and not self._ended.is_set():
            self._calls.end_all(ErrorCode.CLOSING)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + self._limits.close_s):
                # What is being written gets out; a peer that does not read it holds nothing up.
                with trio.move_on_after(self._limits.close_s / 2):
                    await self._all_answered()
                self._scope.cancel()
                await self._ended.wait()
        self._scope.cancel()

    def _withdraw(self) -> None:
        if self._published and self._file is not None:
            self._published = False
            withdraw(self._home, self._file)

    async def _listen(self) -> trio.SocketListener:
        bound = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # A port in TIME_WAIT may be used again; on Linux never one that somebody listens on.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            await bound.bind((LOOPBACK, self._port))
            bound.listen(128)
        except OSError as error:
            bound.close()
            reason = os.strerror(error.errno or 0)
            raise ConfigurationError(f"cannot listen on {LOOPBACK}:{self._port}: {reason}") from None
        except BaseException:
            bound.close()
            raise
        return trio.SocketListener(bound)

    async def _serve(
        self, listener: trio.SocketListener, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        peers = Peers()
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    self._calls = Calls(nursery, self._limits)
                    app = control_app(Endpoints(self._backend, self._calls, self.log))
                    config = quiet_config()
                    task_status.started()
                    while True:
                        stream = await self._accept(listener)
                        nursery.start_soon(self._connected, stream, peers, app, config)
        except Exception:
            # The listening socket failed. The host goes on, without a control server and so with all off.
            self._counts.contained += 1
        finally:
            self._withdraw()
            listener.socket.close()
            peers.close()
            self._ended.set()

    async def _accept(self, listener: trio.SocketListener) -> LoopbackStream:
        while True:
            try:
                accepted = await listener.accept()
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                await trio.sleep(_ACCEPT_REST_S)
                continue
            return LoopbackStream(socket.socket(fileno=accepted.socket.detach()), on_trio=True)

    async def _connected(self, stream: LoopbackStream, peers: Peers, app: App, config: Config) -> None:
        counts = self._counts
        if self._open >= self._limits.connections:
            counts.too_many += 1
            stream.close()
            return
        self._open += 1
        connection = Connection(stream, peers, self._limits, self._ended_with)
        try:
            if peers.foreign(stream.socket):
                counts.foreign += 1
                return
            await connection.run(app, config, self.address.encode(), self._token.encode())
            if connection.refused is not None:
                counts.refused[connection.refused] += 1
            counts.served += connection.served
            counts.contained += not connection.sound
        except Exception:
            counts.contained += 1
        finally:
            self._open -= 1
            stream.close()
            if not self._open:
                self._drained.set()

    def _ended_with(self) -> ErrorCode | None:
        return None if self._calls is None else self._calls.ended

    async def _all_answered(self) -> None:
        while self._open:
            self._drained = trio.Event()
            await self._drained.wait()
