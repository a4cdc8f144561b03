"""A small OTLP/HTTP collector of logs on loopback, that can also misbehave."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

YES = (200, ExportLogsServiceResponse().SerializeToString())
PARTLY = (
    200,
    ExportLogsServiceResponse(
        partial_success=ExportLogsPartialSuccess(rejected_log_records=3, error_message="\x1b[2Jno")
    ).SerializeToString(),
)
SILENCE = (0, b"")


class LogCollector:
    """Answers with what is in `answers`, one each, then with yes; of `SILENCE` with nothing, until it ends.
    Keeps what it was sent with a yes in `records`; `asked` counts, and `paths` are, all requests."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.records: list[LogRecord] = []
        self.resources: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.changed = threading.Condition()
        self._answers = list(answers)
        self._over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.took(self.path, dict(self.headers.items()), body, self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def sequences(self) -> list[int]:
        return [
            pair.value.int_value
            for record in self.records
            for pair in record.attributes
            if pair.key.endswith(".audit.sequence")
        ]

    def until(self, count: int) -> None:
        """Until so many records were taken. Blocking."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.records) >= count, 30)

    def until_asked(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.paths) >= count, 30)

    def took(self, path: str, headers: dict[str, str], body: bytes, handler: BaseHTTPRequestHandler) -> None:
        status, answer = self._answers.pop(0) if self._answers else YES
        with self.changed:
            self.paths.append(path)
            self.headers.append(headers)
            if (status, answer) == YES:
                for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                    attributes = resource.resource.attributes
                    self.resources.append({pair.key: pair.value.string_value for pair in attributes})
                    for scope in resource.scope_logs:
                        self.records += scope.log_records
            self.changed.notify_all()
        if not status:
            self._over.wait(30)
            return
        handler.send_response(status)
        if status in (301, 302, 307):
            handler.send_header("location", self.endpoint + "/elsewhere")
        handler.send_header("content-length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
