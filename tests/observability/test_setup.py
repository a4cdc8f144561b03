"""Which exporter the environment asks for."""

import io
import json
import threading

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tabwarden.errors import ConfigurationError
from tabwarden.model import Phase, TraceOutcome
from tabwarden_observability import setup_tracing


def one_call(tracing) -> None:
    trace = tracing.tracer.start_request()
    with trace.phase(Phase.AUDIT):
        pass
    trace.end(TraceOutcome.OK)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
        {"OTEL_TRACES_EXPORTER": "  "},
        {"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "console"},
    ],
)
async def test_a_fresh_install_exports_nothing_but_remembers(environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    threads = threading.active_count()
    tracing = setup_tracing()
    assert threading.active_count() == threads
    one_call(tracing)
    assert not tracing.exporting
    assert await tracing.flush()
    assert await tracing.shutdown() == tracing.dropped == 0
    (request,) = tracing.recent()
    assert [span.name for span in request.phases] == ["audit"]


async def test_disabled_sdk_leaves_a_host_provider_alone(monkeypatch):
    from opentelemetry.sdk.trace import TracerProvider

    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    provider = TracerProvider(shutdown_on_exit=False)
    tracing = setup_tracing(provider=provider)
    assert tracing.provider is provider
    assert not tracing.exporting


async def test_console_and_otlp_together(collector, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console, otlp,none,console")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    console = io.StringIO()
    tracing = setup_tracing(console=console)
    one_call(tracing)
    assert await tracing.shutdown() == 0
    assert {span.name for span in collector.spans} == {"agent.request", "audit"}
    decoder, text, names = json.JSONDecoder(), console.getvalue().strip(), []
    while text:
        span, end = decoder.raw_decode(text)
        names.append(span["name"])
        text = text[end:].strip()
    assert names == ["audit", "agent.request"]


async def test_console_keeps_off_standard_output(monkeypatch, capsys):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    tracing = setup_tracing()
    one_call(tracing)
    assert await tracing.shutdown() == 0
    written = capsys.readouterr()
    assert written.out == ""
    assert '"agent.request"' in written.err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_EXPORTER", "jaeger"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ],
)
def test_what_cannot_be_is_said_at_once(name, value, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match="must be"):
        setup_tracing()


def test_a_provider_must_be_one_of_the_sdk():
    with pytest.raises(ConfigurationError, match="TracerProvider"):
        setup_tracing(provider=object())


def test_a_provider_has_its_own_exporters():
    from opentelemetry.sdk.trace import TracerProvider

    with pytest.raises(ConfigurationError, match="or exporters"):
        setup_tracing(provider=TracerProvider(shutdown_on_exit=False), exporters=[InMemorySpanExporter()])
