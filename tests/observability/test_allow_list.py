"""Marked secrets go in wherever they can; none comes out of the exporter."""

import io
import logging

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, StatusCode, TraceFlags, TraceState
from rich.console import Console
from tabwarden.model import Phase, TraceOutcome
from tabwarden_observability import ANNOTATIONS, SPAN_ATTRIBUTES, AllowListExporter, setup_tracing, waterfall
from tabwarden_observability.attributes import (
    MAX_MODELS,
    MAX_NAMES,
    UNLISTED,
    ConfiguredModels,
    SpanNames,
    clean,
)

from tests.observability.collector import attributes_of

CANARY = "CANARY-5f1c"
SESSION = "0b0e7a3e-1111-4222-8333-444455556666"


async def test_no_secret_reaches_the_collector(collector, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"process.command_args={CANARY},host.name={CANARY}")
    tracing = setup_tracing()
    trace = tracing.tracer.start_request()
    # A principal's id may look like anything an id may: it comes from the verified proof, not from data.
    names = [name for name in ANNOTATIONS if name != "principal_id"]
    trace.annotate(**dict.fromkeys(names, CANARY), principal_id=f"{CANARY} and space")
    trace.annotate(url=CANARY, prompt=CANARY, **{CANARY: "read"})
    with pytest.raises(ValueError, match=CANARY), trace.phase(Phase.DISPATCH), trace.child(f"read {CANARY}"):
        raise ValueError(CANARY)
    trace.end(TraceOutcome.FAILED, CANARY)

    foreign = tracing.provider.get_tracer(f"lib {CANARY}", CANARY, attributes={"a": CANARY})
    link = Link(SpanContext(1, 1, True, TraceFlags(1), TraceState([("a", CANARY)])), {"b": CANARY})
    parent = otel.NonRecordingSpan(SpanContext(2, 3, True, TraceFlags(1), TraceState([("a", CANARY)])))
    attributes = {"http.url": CANARY, "tabwarden.action": CANARY, "tabwarden.code": [CANARY]}
    around = otel.set_span_in_context(parent)
    span = foreign.start_span(f"GET /{CANARY}", around, attributes=attributes, links=[link])
    span.add_event(CANARY, {"c": CANARY})
    span.record_exception(RuntimeError(CANARY))
    span.set_status(StatusCode.ERROR, CANARY)
    span.end()
    assert await tracing.shutdown() == 0

    # The request, its phase, its child and the foreign one: even their names are clean.
    names = sorted(span.name for span in collector.spans)
    assert names == ["agent.request", "dispatch", UNLISTED, UNLISTED]
    assert b"CANARY" not in collector.raw
    assert b"5f1c" not in collector.raw
    assert "CANARY" not in caplog.text
    for span in collector.spans:
        assert not span.events
        assert not span.links
        assert not span.status.message
        assert not span.trace_state
        assert set(attributes_of(span)) <= set(SPAN_ATTRIBUTES)
    assert "CANARY" not in repr(tracing.recent())
    console = io.StringIO()
    Console(file=console, width=120).print(waterfall(tracing.recent()))
    assert "CANARY" not in console.getvalue()


async def test_what_is_on_the_list_arrives(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    tracing = setup_tracing()
    trace = tracing.tracer.start_request()
    trace.annotate(action="read", scope="browser:read", principal_id="agent-1", generation=3)
    trace.annotate(session_id=SESSION, request_bytes=512, result_bytes=0, reply_bytes=4096)
    trace.annotate(queue_us=17, wait_us=0)
    trace.end(TraceOutcome.DENIED, "policy-denied")
    await tracing.shutdown()
    (span,) = collector.spans
    assert attributes_of(span) == {
        "tabwarden.action": "read",
        "tabwarden.scope": "browser:read",
        "tabwarden.principal.id": "agent-1",
        "tabwarden.principal.generation": 3,
        "tabwarden.session.id": SESSION,
        "tabwarden.request.bytes": 512,
        "tabwarden.result.bytes": 0,
        "tabwarden.reply.bytes": 4096,
        "tabwarden.queue_us": 17,
        "tabwarden.wait_us": 0,
        "tabwarden.outcome": "denied",
        "tabwarden.code": "policy-denied",
    }
    assert tracing.recent()[0].action == "read"


class Loud(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("generation", True),
        ("generation", -1),
        ("generation", 2**53 + 1),
        ("generation", 1.0),
        ("generation", "1"),
        ("session_id", SESSION.upper()),
        ("session_id", SESSION + "\n"),
        ("session_id", Loud(SESSION)),
        ("principal_id", ""),
        ("principal_id", "a" * 65),
        ("principal_id", "ä"),
        ("principal_id", "\ud800"),
        ("action", "Read"),
        ("action", ""),
        ("action", None),
        ("code", b"failure"),
        ("cause", "because"),
        ("outcome", {}),
    ],
)
def test_values_are_checked(name, value):
    attribute = ANNOTATIONS[name]
    assert clean({attribute.name: value}, SPAN_ATTRIBUTES) == {}


def test_a_str_subclass_comes_out_plain():
    kept = clean({"tabwarden.action": Loud("read")}, SPAN_ATTRIBUTES)
    assert type(kept["tabwarden.action"]) is str


def test_names_are_bounded_in_number():
    names = SpanNames()
    letters = "abcdefghijklmnop"
    made = [f"word.{a}{b}" for a in letters for b in letters]
    assert [names.clean(name) for name in made[:MAX_NAMES]] == made[:MAX_NAMES]
    assert names.clean(made[MAX_NAMES]) == UNLISTED
    assert names.clean(made[0]) == made[0]


@pytest.mark.parametrize("name", ["", "a" * 49, "two words", "Upper", "a1", ".a", "a.", "a/b", 7, "a\n"])
def test_names_that_are_not_fixed_identifiers(name):
    assert SpanNames().clean(name) == UNLISTED


class Broken(SpanExporter):
    def export(self, spans):
        raise RuntimeError(CANARY)

    def shutdown(self):
        raise RuntimeError(CANARY)

    def force_flush(self, timeout_millis=30_000):
        raise RuntimeError(CANARY)


def test_exporter_filter_contains_exceptions(caplog):
    exporter = AllowListExporter(Broken())
    assert exporter.export([]) is SpanExportResult.FAILURE
    assert exporter.force_flush() is False
    exporter.shutdown()
    assert not caplog.records


def test_a_host_can_wrap_its_own_exporter():
    memory = InMemorySpanExporter()
    resource = Resource({"service.name": "shop", "host.name": CANARY})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(AllowListExporter(memory)))
    tracer = provider.get_tracer("shop.checkout", "1.2")
    with tracer.start_as_current_span("load", attributes={"tabwarden.action": "read", "user": CANARY}):
        pass
    (span,) = memory.get_finished_spans()
    assert (span.name, dict(span.attributes)) == ("load", {"tabwarden.action": "read"})
    assert dict(span.resource.attributes) == {"service.name": "shop"}
    assert (span.instrumentation_scope.name, span.instrumentation_scope.version) == ("shop.checkout", "1.2")
    provider.shutdown()


def test_only_models_that_were_configured_are_told():
    models = ConfiguredModels()
    assert models("house-model") is None
    models.add("house-model")
    models.add("text of a\npage")
    assert models("house-model") == "house-model"
    assert models(Loud("house-model")) is None
    assert models("text of a\npage") is None
    for number in range(MAX_MODELS):
        models.add(f"model-{number}")
    assert models(f"model-{MAX_MODELS - 1}") is None
