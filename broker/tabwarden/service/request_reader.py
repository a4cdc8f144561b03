"""The broker's own requests out of a stream of bytes."""

from tabwarden.errors import PeerRefused, Refusal
from tabwarden.http_request import BoundedRequest, Fault, Fields
from tabwarden.service.http_gate import RequestHead, check_head
from tabwarden.service.runtime import Runtime

_REFUSALS = {Fault.MALFORMED: Refusal.HTTP, Fault.LARGE_HEAD: Refusal.HEADERS}


class RequestReader(BoundedRequest[RequestHead, PeerRefused]):
    """Of one connection."""

    __slots__ = ("_runtime",)

    def __init__(self, runtime: Runtime) -> None:
        limits = runtime.limits
        super().__init__(PeerRefused, max_bytes=limits.header_bytes, max_fields=limits.header_fields)
        self._runtime = runtime

    def judge(self, method: bytes, target: bytes, version: str, fields: Fields) -> RequestHead:
        """See `BoundedRequest`."""
        runtime = self._runtime
        return check_head(method, target, version, fields, host=runtime.host, limits=runtime.limits)

    def refusal(self, fault: Fault) -> PeerRefused:
        """See `BoundedRequest`."""
        return PeerRefused(_REFUSALS[fault])
