"""A small OTLP/HTTP receiver on loopback: keeps every span and metric it was sent, decoded."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector:
    def __init__(self, status: int = 200) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.metric_requests: list[ExportMetricsServiceRequest] = []
        self.paths: list[str] = []
        # Set when a request has come; while `answering` is not set, none is answered.
        self.asked, self.answering = threading.Event(), threading.Event()
        self.answering.set()
        received, metrics, paths = self.requests, self.metric_requests, self.paths
        asked, answering = self.asked, self.answering

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                paths.append(self.path)
                if self.path == "/v1/metrics":
                    metrics.append(ExportMetricsServiceRequest.FromString(body))
                    answer = ExportMetricsServiceResponse().SerializeToString()
                else:
                    received.append(ExportTraceServiceRequest.FromString(body))
                    answer = ExportTraceServiceResponse().SerializeToString()
                asked.set()
                answering.wait()
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # A short poll only makes `shutdown` quick.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def spans(self) -> list:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def raw(self) -> bytes:
        return b"".join(request.SerializeToString() for request in self.requests)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answering.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def attributes_of(item) -> dict:
    """The attributes of a decoded span or resource as plain values."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in item.attributes}
