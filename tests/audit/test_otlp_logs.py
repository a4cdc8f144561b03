"""Records as OpenTelemetry log records, to a collector that says whether it took them."""

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio
from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.audit.shipping import Backoff, CursorFile, OtlpDestination, Shipper, open_cursor
from tabwarden_observability.logs import LogEntry, LogsRefused, log_sender

from tests.audit.log_collector import PARTLY, SILENCE, YES, LogCollector
from tests.audit.records_of_all_types import TRACE, all_members
from tests.audit.records_of_all_types import records as records_of_all_types
from tests.audit.support import fill
from tests.observability.collector import attributes_of

ENTRY = LogEntry("tabwarden.audit.agent", "agent", "INFO", 1, 0, 0, {})


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the developer's own OTEL_* variables or proxies."""
    for name in list(os.environ):
        if name.startswith("OTEL_") or name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@asynccontextmanager
async def shipping(log: Path, told: list[dict[str, object]]):
    with ExitStack() as stack:
        cursor: CursorFile = stack.enter_context(open_cursor(log.parent / "shipping" / "otlp", "otlp"))
        where = OtlpDestination(lambda: log_sender("tabwarden.audit"), "tabwarden")
        backoff = Backoff(lambda: 0, first_s=0.01)
        shipper = Shipper(log, where, cursor, tell=told.append, backoff=backoff, poll_s=0.01)
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(shipper.run)
                yield cursor
                nursery.cancel_scope.cancel()


def write(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    path = folder / "audit-0000000000000001.jsonl"
    path.write_bytes(b"".join(one.line for one in records_of_all_types()))
    path.chmod(0o600)


async def on_thread(wait: Callable[[int], None], count: int) -> None:
    await trio.to_thread.run_sync(wait, count)


async def test_all_types_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "log")
    count = len(all_members())
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,host.name=secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x")
    with LogCollector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        async with shipping(tmp_path / "log", []):
            await on_thread(collector.until, count)
    assert collector.paths == ["/v1/logs"]
    assert {name.lower(): value for name, value in collector.headers[0].items()}[
        "authorization"
    ] == "Bearer x"
    assert collector.sequences == list(range(1, count + 1))
    (resource,) = collector.resources
    assert resource["service.name"] == "tabwarden"
    assert resource["deployment.environment.name"] == "test"
    assert "host.name" not in resource
    denied = collector.records[5]
    assert denied.trace_id.hex() == TRACE["trace_id"]
    assert denied.span_id.hex() == TRACE["span_id"]
    assert denied.event_name == "tabwarden.audit.agent"
    assert denied.severity_number == SeverityNumber.SEVERITY_NUMBER_WARN
    assert denied.time_unix_nano == 1_800_000_005_005 * 1_000_000
    assert denied.observed_time_unix_nano
    attributes = attributes_of(denied)
    assert attributes["tabwarden.agent.principal_id"] == "crawler"
    assert attributes["tabwarden.agent.generation"] == 3
    assert collector.records[0].trace_id == b""
    assert b"secret" not in b"".join(one.SerializeToString() for one in collector.records)


REDIRECT = (302, b"")
REFUSALS = [
    ((500, b"x"), "the collector answered with status 500"),
    ((400, b"\x1b[2J"), "the collector answered with status 400"),
    ((204, b""), "the collector answered with status 204"),
    (REDIRECT, "the collector answered with status 302"),
    (PARTLY, "the collector rejected 3 records"),
    ((200, b"<html>hello</html>"), "what answered is no OpenTelemetry collector"),
]


async def test_what_is_no_yes_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(tmp_path / "log", 5)
    told: list[dict[str, object]] = []
    with LogCollector(*(answer for answer, _ in REFUSALS)) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", collector.endpoint + "/v1/logs")
        async with shipping(tmp_path / "log", told):
            await on_thread(collector.until, 5)
    assert [one["why"] for one in told if "why" in one] == [why for _, why in REFUSALS]
    assert collector.sequences == [1, 2, 3, 4, 5]
    assert set(collector.paths) == {"/v1/logs"}


async def test_a_silent_collector_cannot_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path / "log", 5)
    with LogCollector(SILENCE) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        async with shipping(tmp_path / "log", []):
            await on_thread(collector.until_asked, 1)
    assert not (tmp_path / "shipping" / "otlp").exists()
    with LogCollector(YES) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        async with shipping(tmp_path / "log", []):
            await on_thread(collector.until, 5)
    assert collector.sequences == [1, 2, 3, 4, 5]


def test_nobody_there(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with LogCollector() as collector:
        gone = collector.endpoint
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gone)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.3")
    sender = log_sender("tabwarden.audit")
    with caplog.at_level(logging.DEBUG, "opentelemetry"):
        with pytest.raises(LogsRefused, match="cannot be reached"):
            sender.send([ENTRY])
        sender.close()
        with pytest.raises(LogsRefused):
            sender.send([ENTRY])
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OTEL_SDK_DISABLED", "true", "OTEL_SDK_DISABLED"),
        ("OTEL_LOGS_EXPORTER", "none", "OTEL_LOGS_EXPORTER"),
        ("OTEL_LOGS_EXPORTER", "console", "OTEL_LOGS_EXPORTER"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/json", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/absent", "OTEL_EXPORTER_OTLP_CERTIFICATE names no file"),
        ("OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY", "/", "CLIENT_KEY names no file"),
    ],
)
def test_an_environment_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=words):
        log_sender("tabwarden.audit")
