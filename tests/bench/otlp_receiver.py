"""A live receiver of traces: takes everything at once, and counts it when it is asked."""

from collections.abc import Mapping

import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.bench.control import serve_control
from tests.bench.http_server import listen, serve_connection

ACCEPTED = ExportTraceServiceResponse().SerializeToString()


async def main() -> None:
    """Receive until end of input."""
    bodies: list[bytes] = []
    received = 0

    def handle(path: bytes, headers: Mapping[bytes, bytes], body: bytes) -> tuple[int, bytes]:
        bodies.append(body)
        return 200, ACCEPTED

    def counters() -> Mapping[str, int]:
        nonlocal received
        for body in bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                received += sum(len(scope.spans) for scope in resource.scope_spans)
        bodies.clear()
        return {"spans": received}

    async def connection(stream: trio.SocketStream) -> None:
        await serve_connection(stream, handle)

    listener, address = await listen()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, connection, [listener])
        await serve_control({"address": address}, counters)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
