"""OpenTelemetry log records to a collector, by OTLP over HTTP, for a caller that must know if they arrived.

The SDK's own pipeline drops what it cannot send. Here the caller keeps its records until `LogSender.send` has
returned, and tries again otherwise.

A door of its own, apart from the package's: only a shipper needs what is imported here.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import requests
from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from tabwarden.errors import ConfigurationError, TabwardenError

from tabwarden_observability.attributes import RESOURCE_ATTRIBUTES, clean
from tabwarden_observability.environment import (
    disabled,
    exporters_named,
    own_resource,
    require_http,
    variable,
)
from tabwarden_observability.mute import muted

Severity = Literal["INFO", "WARN", "ERROR"]

_LOGGERS: Final = (
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    "opentelemetry.exporter.otlp.common.http",
)
_FILES: Final = ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
_SEVERITIES: Final[dict[Severity, SeverityNumber]] = {
    "INFO": SeverityNumber.INFO,
    "WARN": SeverityNumber.WARN,
    "ERROR": SeverityNumber.ERROR,
}


class LogsRefused(TabwardenError):
    """The collector did not take the batch: nothing of it counts as delivered."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One log record. `written_ns` since the Unix epoch; ids are 0 when there is no trace."""

    event_name: str
    body: str
    severity: Severity
    written_ns: int | None
    trace_id: int
    span_id: int
    attributes: Mapping[str, str | int | bool]


class LogSender:
    """Sends batches, one at a time. `clock` gives nanoseconds since the epoch, for when a record was
    seen here."""

    def __init__(self, scope: str, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._scope = InstrumentationScope(scope)
        self._clock = clock
        self._resource = Resource(clean(own_resource().attributes, RESOURCE_ATTRIBUTES))
        self._session = _StrictSession()
        self._exporter = OTLPLogExporter(session=self._session)

    def send(self, entries: Sequence[LogEntry]) -> None:
        """Blocking, at most `OTEL_EXPORTER_OTLP_LOGS_TIMEOUT` (10 s). Raises `LogsRefused` unless the
        collector said that it took all of them. Never logs."""
        self._session.trouble = ""
        batch = [self._record(entry) for entry in entries]
        try:
            with muted(*_LOGGERS):
                taken = self._exporter.export(batch) is LogRecordExportResult.SUCCESS
        except Exception:
            taken = False
        if not taken:
            raise LogsRefused(self._session.trouble or "the collector cannot be reached or took too long")

    def close(self) -> None:
        """From any thread, once: a `send` that waits for its next try gives up."""
        with muted(*_LOGGERS):
            self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _record(self, entry: LogEntry) -> ReadableLogRecord:
        span = trace.NonRecordingSpan(trace.SpanContext(entry.trace_id, entry.span_id, is_remote=False))
        record = LogRecord(
            timestamp=entry.written_ns,
            observed_timestamp=self._clock(),
            context=trace.set_span_in_context(span),
            severity_text=entry.severity,
            severity_number=_SEVERITIES[entry.severity],
            body=entry.body,
            attributes=dict(entry.attributes),
            event_name=entry.event_name,
        )
        return ReadableLogRecord(record, self._resource, self._scope)


def log_sender(scope: str) -> LogSender:
    """From the standard environment (`OTEL_EXPORTER_OTLP_ENDPOINT`, `…_LOGS_ENDPOINT`, `…_HEADERS`,
    `…_CERTIFICATE` and so on). `scope` names who made the records.

    Raises `ConfigurationError` for what cannot be used, or when the environment switches logs off.
    """
    if disabled():
        raise ConfigurationError("OTEL_SDK_DISABLED is true: unset it to ship by OTLP")
    if variable("OTEL_LOGS_EXPORTER") and exporters_named("LOGS") != ["otlp"]:
        raise ConfigurationError("OTEL_LOGS_EXPORTER must be otlp, or not set, to ship by OTLP")
    require_http("LOGS")
    for name in _FILES:
        for variable_name in (f"OTEL_EXPORTER_OTLP_LOGS_{name}", f"OTEL_EXPORTER_OTLP_{name}"):
            if variable(variable_name) and not os.path.isfile(variable(variable_name)):
                raise ConfigurationError(f"{variable_name} names no file")
    try:
        return LogSender(scope)
    except ConfigurationError:
        raise
    except Exception as error:
        # The text of such an exception may hold what stands in the environment.
        raise ConfigurationError(
            f"the OTEL_EXPORTER_OTLP_* environment cannot be used ({type(error).__name__})"
        ) from None


class _StrictSession(requests.Session):
    """Takes nothing for a yes but a yes: the exporter would count a redirect, and a batch of which the
    collector rejected a part, as delivered. Of what is answered, only the status is ever told."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble = ""
        self.hooks["response"].append(self._judge)

    def _judge(self, response: requests.Response, *_: object, **__: object) -> None:
        self.trouble = _why_not(response)
        if self.trouble and response.status_code < 400:  # from there on, the exporter itself sees it
            response.close()
            raise requests.RequestException(self.trouble)


def _why_not(response: requests.Response) -> str:
    """Empty for a yes."""
    if response.status_code != 200:
        return f"the collector answered with status {response.status_code}"
    try:
        answer = ExportLogsServiceResponse.FromString(response.content)
    except Exception:  # of protobuf, which has no types for them; or the answer broke off
        return "what answered is no OpenTelemetry collector"
    rejected = answer.partial_success.rejected_log_records
    return f"the collector rejected {rejected} records" if rejected else ""
