"""Syslog over TCP, TLS (RFC 5425) or a unix stream socket.

Syslog has no acknowledgement. A record counts as taken when the other side's kernel has confirmed its bytes
(TCP), or the other process has read them (unix), and the connection then lived on for a while; or when the
other side answered our orderly end with its own, which it cannot do before it has read everything. So a
server that crashes has records sent again; one that hangs for longer than that while bytes lie in its kernel,
and then crashes, loses those.
"""

import contextlib
import fcntl
import socket
import ssl
import struct
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import trio
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.audit.reader import AuditRecord
from tabwarden_adapters.audit.shipping.address import SyslogAddress
from tabwarden_adapters.audit.shipping.port import Delivery, DeliveryFailed

_SIOCOUTQ = 0x5411  # linux/sockios.h: bytes that the other side has not confirmed
_LOOK_S = 0.002, 0.1
_PIECE = 16 * 1024
_Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Seconds: until a connection stands, how long a peer may take nothing at all, and until what was sent
    counts as taken."""

    connect_s: float = 10.0
    stall_s: float = 30.0
    settle_s: float = 5.0


class SyslogDestination:
    """A syslog server. Implements `Destination`. `frame` makes what is sent of one record."""

    def __init__(
        self,
        address: SyslogAddress,
        frame: Callable[[AuditRecord], bytes],
        *,
        ca: Path | None = None,
        limits: StreamLimits | None = None,
    ) -> None:
        if ca is not None and address.kind != "tls":
            raise ConfigurationError("--ca is for tls:// only: nothing else is verified by certificates")
        self._address = address
        self._frame = frame
        self._limits = limits or StreamLimits()
        self._tls = tls_context(ca) if address.kind == "tls" else None

    @property
    def settle_s(self) -> float:
        return self._limits.settle_s

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Delivery]:
        stream: _Stream | None = None
        with trio.move_on_after(self._limits.connect_s):
            stream = await self._open()
        if stream is None:
            raise DeliveryFailed(f"no connection within {self._limits.connect_s:g} s")
        # Taken out now: TLS that was ended in order no longer knows it.
        plain = stream if isinstance(stream, trio.SocketStream) else stream.transport_stream
        try:
            yield _StreamDelivery(stream, plain.socket, self._frame, self._limits.stall_s)
        finally:
            await trio.aclose_forcefully(plain)

    async def _open(self) -> _Stream:
        address = self._address
        try:
            if address.kind == "unix":
                return await trio.open_unix_socket(address.path)
            plain = await trio.open_tcp_stream(address.host, address.port)
        except socket.gaierror:
            raise DeliveryFailed("the host's name is not known") from None
        except OSError as error:
            why = error.strerror if error.errno and error.strerror else "nobody answers there"
            raise DeliveryFailed(f"no connection: {why}") from None
        if self._tls is None:
            return plain
        try:
            stream = trio.SSLStream(plain, self._tls, server_hostname=address.host)
            await stream.do_handshake()
        except BaseException as error:
            await trio.aclose_forcefully(plain)
            if isinstance(error, trio.BrokenResourceError):
                raise DeliveryFailed(_tls_trouble(error.__cause__)) from None
            raise
        return stream


class _StreamDelivery:
    """Implements `Delivery`."""

    def __init__(
        self,
        stream: _Stream,
        socket_: trio.socket.SocketType,
        frame: Callable[[AuditRecord], bytes],
        stall_s: float,
    ) -> None:
        self._stream = stream
        self._socket = socket_
        self._frame = frame
        self._stall_s = stall_s

    async def send(self, records: Sequence[AuditRecord]) -> None:
        data = b"".join(map(self._frame, records))
        for begin in range(0, len(data), _PIECE):
            with self._not_stalled(), _typed():
                await self._stream.send_all(data[begin : begin + _PIECE])

    async def confirmed(self) -> None:
        wait, longest = _LOOK_S
        left = _unconfirmed(self._socket)
        while left:
            before = left
            with self._not_stalled():
                while left and left >= before:
                    await trio.sleep(wait)
                    wait = min(longest, wait * 2)
                    left = _unconfirmed(self._socket)

    async def broken(self) -> None:
        with _typed():
            # A syslog server has nothing to say; what it says all the same is thrown away.
            while await self._stream.receive_some(4096):
                pass
        raise DeliveryFailed("the other side closed the connection")

    @contextlib.contextmanager
    def _not_stalled(self) -> Iterator[None]:
        """Of one step: a slow peer is waited for as long as it takes a little."""
        with trio.move_on_after(self._stall_s) as limit:
            yield
        if limit.cancelled_caught:
            raise DeliveryFailed(f"the other side took nothing for {self._stall_s:g} s")

    async def finish(self) -> bool:
        try:
            if isinstance(self._stream, trio.SocketStream):
                await self._stream.send_eof()
                while await self._stream.receive_some(4096):
                    pass
            else:
                await self._stream.unwrap()
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            return False
        return True


def tls_context(ca: Path | None) -> ssl.SSLContext:
    """Verifies the server against the certificates in `ca` and nothing else, or against the system's.

    Raises `ConfigurationError` when `ca` holds none.
    """
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except ssl.SSLError:
        raise ConfigurationError(f"--ca: {str(ca)!a} holds no certificates in PEM form") from None
    except OSError as error:
        raise ConfigurationError(f"--ca: cannot read {str(ca)!a}: {error.strerror}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@contextlib.contextmanager
def _typed() -> Iterator[None]:
    try:
        yield
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        raise DeliveryFailed("the connection broke") from None


def _tls_trouble(cause: BaseException | None) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the server's certificate is not accepted: {cause.verify_message}"
    return "the TLS handshake failed"


def _unconfirmed(of: trio.socket.SocketType) -> int:
    """Bytes that were given to our kernel and not confirmed by the other side. 0 where nobody can say."""
    if sys.platform != "linux":
        return 0
    (count,) = struct.unpack("i", fcntl.ioctl(of.fileno(), _SIOCOUTQ, b"\0" * 4))
    return int(count)
