"""Exactly one HTTP/1.1 request out of a stream of bytes, with bounds on all of it."""

from dataclasses import dataclass, field

import trio
from tabwarden.http_request import BoundedRequest, Fault, Fields
from tabwarden.loopback_stream import LoopbackStream

from tabwarden_adapters.host.errors import ControlError, ErrorCode
from tabwarden_adapters.host.gate import Head, check_head
from tabwarden_adapters.host.limits import HostLimits

_READ_BYTES = 65_536
_CODES = {Fault.MALFORMED: ErrorCode.MALFORMED, Fault.LARGE_HEAD: ErrorCode.HEADERS}


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request that passed the gate."""

    head: Head
    body: bytes = field(repr=False)

    def canonical(self, host: bytes) -> bytes:
        """The same request written anew: no byte of the peer's headers goes further than the gate."""
        target = self.head.route + (b"?" + self.head.query if self.head.query else b"")
        lines = [
            b"%s %s HTTP/1.1" % (self.head.method, target),
            b"host: " + host,
            b"content-length: %d" % len(self.body),
            b"connection: close",
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body


class RequestReader(BoundedRequest[Head, ControlError]):
    """Of one connection, which serves one request."""

    def __init__(self, host: bytes, token: bytes, limits: HostLimits) -> None:
        super().__init__(ControlError, max_bytes=limits.header_bytes, max_fields=limits.header_fields)
        self._host = host
        self._token = token

    def judge(self, method: bytes, target: bytes, version: str, fields: Fields) -> Head:
        """See `BoundedRequest`."""
        return check_head(method, target, version, fields, host=self._host, token=self._token)

    def refusal(self, fault: Fault) -> ControlError:
        """See `BoundedRequest`."""
        return ControlError(_CODES[fault])


async def read_request(
    stream: LoopbackStream, host: bytes, token: bytes, limits: HostLimits
) -> Request | None:
    """One request; None when the peer leaves before it is whole. Raises `ControlError`, `PeerGone`."""
    reader = RequestReader(host, token, limits)
    with trio.CancelScope(deadline=trio.current_time() + limits.head_s) as scope:
        while not reader.complete:
            data = await stream.receive(_READ_BYTES)
            if not data:
                return None
            waiting_for_head = reader.head is None
            reader.feed(data)
            if reader.fault is not None:
                raise reader.fault
            if waiting_for_head and reader.head is not None:
                scope.deadline = trio.current_time() + limits.body_s
        return Request(*reader.take())
    raise ControlError(ErrorCode.TOO_SLOW)
