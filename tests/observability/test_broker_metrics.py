"""What a running broker's metrics say, and that they cost a call nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tabwarden.errors import Refusal
from tabwarden.model import Phase, TraceOutcome
from tabwarden_observability import (
    AuditFigures,
    RingTracer,
    Tracing,
    broker_metrics,
    setup_metrics,
    setup_tracing,
)
from tabwarden_observability import metric_table as table
from tabwarden_observability.broker_metrics import Shared
from tabwarden_observability.loop_watch import LoopWatch, watching_loop
from tabwarden_observability.request_histograms import RequestHistograms

from tests.attacks.serving import Broker, serve
from tests.attacks.toolkit import peer_of
from tests.observability.collector import Collector, attributes_of

FIGURES = AuditFigures(records=7, syncs=3, sync_s=0.5, lag=2, trouble=True)


class Read:
    """What a host's provider would export now."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider(
            [self.reader], shutdown_on_exit=False, exemplar_filter=AlwaysOffExemplarFilter()
        )

    def metrics(self) -> dict[str, Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def points(self, metric: table.Metric) -> dict[tuple[Any, ...], Any]:
        """By the attributes of the table, in their order; a histogram's point is how many there were."""
        points = {}
        for point in self.metrics()[metric.name].data.data_points:
            assert set(point.attributes) <= set(metric.attributes)
            values = tuple(point.attributes.get(name) for name in metric.attributes)
            points[values] = getattr(point, "count", None) or getattr(point, "value", None)
        return points


@asynccontextmanager
async def watched(read: Read, tracing: Tracing, **options: Any) -> AsyncIterator[Broker]:
    metrics = setup_metrics(provider=read.provider)
    async with serve(tracer=tracing.tracer, **options) as broker:
        with broker_metrics(
            metrics,
            tracing=tracing,
            statistics=broker.control.statistics,
            audit=lambda: FIGURES,
            sessions=lambda: 4,
        ):
            yield broker
    await tracing.shutdown()
    read.provider.shutdown()


async def test_every_row_of_the_table_is_there_as_it_says() -> None:
    read, tracing = Read(), setup_tracing()
    async with watched(read, tracing) as broker:
        peer = peer_of(broker)
        assert await peer.call(broker) == (200, [])
        assert (await peer.call(broker, b"junk"))[0] == 400
        assert await tracing.flush()
        found = read.metrics()
        # The others are of the browser, or of what has not happened.
        assert set(found) == {row.name for row in table.METRICS} - {
            table.EGRESS_CONNECTIONS.name,
            table.CDP_DURATION.name,
            table.REFUSALS.name,
        }
        for row in table.METRICS:
            if row.name in found:
                metric = found[row.name]
                assert (metric.unit, metric.description) == (row.unit, row.description)
        assert read.points(table.CALLS) == {
            ("sessions", "ok", "ok"): 1,
            ("(none)", "denied", "bad-request"): 1,
        }
        method = ("POST",)
        assert read.points(table.HTTP_DURATION) == {
            (*method, "/v1/challenge", 200, "http", None): 2,
            (*method, "/v1/agent", 200, "http", None): 2,
        }
        phases = read.points(table.PHASE_DURATION)
        assert phases[("challenge",)] == phases[("decryption",)] == phases[("encryption",)] == 2
        assert phases[("dispatch",)] == 1
        assert set(phases) <= {(phase.value,) for phase in Phase}
        assert read.points(table.HTTP_ACTIVE) == {("POST", "http"): 0}
        assert read.points(table.LIMITED) == {("calls",): 0, ("challenges",): 0, ("outstanding",): 0}
        assert read.points(table.BATCHES) == {(): broker.control.statistics().signatures}
        assert read.points(table.BATCHED) == {(): broker.control.statistics().challenges_signed}
        assert read.points(table.BATCHED)[()] == 8 * read.points(table.BATCHES)[()]
        assert read.points(table.PRINCIPALS) == {(): 1}
        assert read.points(table.SESSIONS) == {(): 4}
        assert 0 < read.points(table.NONCES)[()] < 1
        assert [
            read.points(row)[()]
            for row in (
                table.AUDIT_RECORDS,
                table.AUDIT_SYNCS,
                table.AUDIT_SYNC_TIME,
                table.AUDIT_LAG,
                table.AUDIT_TROUBLE,
            )
        ] == [7, 3, 0.5, 2, 1]
        assert read.points(table.TASKS)[()] > 1
        assert not tracing.exporting
        assert tracing.dropped == 0


async def test_refusals_and_limits_are_counted_by_fixed_words() -> None:
    read, tracing = Read(), setup_tracing()
    async with watched(read, tracing, max_requests_per_minute=1) as broker:
        peer = peer_of(broker)
        assert await peer.call(broker) == (200, [])
        assert (await peer.call(broker))[0] == 429
        broker.runtime.refusals.count(Refusal.PROOF)
        assert read.points(table.REFUSALS) == {("proof",): 1}
        assert read.points(table.LIMITED)[("calls",)] == 1
        assert read.points(table.CALLS)[("(none)", "denied", "rate-limited")] == 1


def finish(tracer: RingTracer, outcome: TraceOutcome, *, reply: bool, children: tuple[str, ...] = ()) -> None:
    trace = tracer.start_request()
    for phase in (Phase.CHALLENGE, Phase.DECRYPTION, Phase.DISPATCH):
        with trace.phase(phase):
            for name in children if phase is Phase.DISPATCH else ():
                with trace.child(name):
                    pass
    if reply:
        trace.annotate(reply_bytes=7)
    trace.end(outcome)


async def test_histograms_of_answers_and_of_the_browser() -> None:
    read, tracing = Read(), setup_tracing(exporters=[])
    tracing.observe(RequestHistograms(setup_metrics(provider=read.provider)))
    finish(tracing.tracer, TraceOutcome.OK, reply=True, children=("cdp.page", "cdp.page", "cdp.input"))
    finish(tracing.tracer, TraceOutcome.REVOKED, reply=False, children=("cdp.secret", "ai.exchange"))
    finish(tracing.tracer, TraceOutcome.DISCONNECTED, reply=False)
    assert await tracing.flush()
    method, agent = "POST", "/v1/agent"
    assert read.points(table.HTTP_DURATION) == {
        (method, "/v1/challenge", 200, "http", None): 3,
        (method, agent, 200, "http", None): 1,
        (method, agent, 403, "http", None): 1,
        (method, agent, None, "http", "disconnected"): 1,
    }
    assert read.points(table.CDP_DURATION) == {("page",): 2, ("input",): 1, ("other",): 1}
    bounds = read.metrics()[table.CDP_DURATION.name].data.data_points[0].explicit_bounds
    assert tuple(bounds) == table.CDP_DURATION.bounds
    assert await tracing.shutdown() == 0
    read.provider.shutdown()


async def test_our_own_exporters_get_the_same_histograms(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Point for point what OpenTelemetry's own histogram makes of the same values."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    read, own = Read(), setup_metrics()
    bounds = table.HTTP_DURATION.bounds
    both = [
        metrics.histogram(table.HTTP_DURATION) for metrics in (own, setup_metrics(provider=read.provider))
    ]
    agent: Any = ("POST", "/v1/agent", 200, "http", None)
    challenge: Any = ("POST", "/v1/challenge", 200, "http", "word")
    for histogram in both:
        for value in (0.0, *bounds, bounds[0] * 1.01, bounds[-1] * 2):
            histogram.record(value, agent)
        histogram.record(0.3, challenge)
    own.observe(table.SESSIONS, lambda: {(): 1})
    await own.shutdown(timeout=30)
    [metric] = [
        metric
        for resource in collector.metric_requests[-1].resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == table.HTTP_DURATION.name
    ]
    assert (metric.unit, metric.description) == (table.HTTP_DURATION.unit, table.HTTP_DURATION.description)
    assert metric.histogram.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    expected = read.metrics()[table.HTTP_DURATION.name].data.data_points
    for sent, point in zip(metric.histogram.data_points, expected, strict=True):
        assert attributes_of(sent) == point.attributes
        assert list(sent.bucket_counts) == list(point.bucket_counts)
        assert list(sent.explicit_bounds) == list(point.explicit_bounds)
        assert (sent.count, sent.min, sent.max) == (point.count, point.min, point.max)
        assert sent.sum == pytest.approx(point.sum)
        assert 0 < sent.start_time_unix_nano <= sent.time_unix_nano
    read.provider.shutdown()


async def test_one_push_a_call_serves_spans_and_histograms() -> None:
    memory = InMemorySpanExporter()
    tracing = setup_tracing(exporters=[memory])
    seen: list[Any] = []

    def broken(request: Any) -> None:
        raise RuntimeError("CANARY")

    before = tracing.tracer._sink
    tracing.observe(broken)
    tracing.observe(seen.append)
    assert tracing.tracer._sink is before
    finish(tracing.tracer, TraceOutcome.OK, reply=True)
    assert await tracing.shutdown() == 0
    assert [request.outcome for request in seen] == [TraceOutcome.OK]
    assert len(memory.get_finished_spans()) == 4


async def test_nothing_runs_when_nobody_asks() -> None:
    tracing, metrics = setup_tracing(), setup_metrics()

    def never() -> Any:
        raise AssertionError

    with broker_metrics(metrics, tracing=tracing, statistics=never, audit=never, sessions=never):
        assert tracing.tracer._sink is None
    await metrics.shutdown()
    assert await tracing.shutdown() == 0


async def test_a_reading_that_fails_costs_its_own_metric_and_no_word_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    read = Read()
    metrics = setup_metrics(provider=read.provider)

    def broken() -> Any:
        raise RuntimeError("CANARY")

    metrics.observe(table.SESSIONS, broken)
    metrics.observe(table.PRINCIPALS, lambda: {("one too many",): 1})
    metrics.observe(table.CONNECTIONS, lambda: {(): 3})
    assert set(read.metrics()) == {table.CONNECTIONS.name}
    assert "CANARY" not in caplog.text
    read.provider.shutdown()


def test_one_export_reads_figures_once() -> None:
    calls: list[int] = []
    shared = Shared(lambda: calls.append(1) or len(calls))
    assert [shared() for _ in range(3)] == [1, 1, 1]


async def test_the_loop_is_watched_for_as_long_as_the_block_runs() -> None:
    read = Read()
    with watching_loop(setup_metrics(provider=read.provider)) as watch:
        watch._sampled = -(10**12)  # due
        await trio.lowlevel.checkpoint()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 0)
            await trio.lowlevel.checkpoint()
        assert watch.tasks >= 1
        watch._longest = 0
        _hold_the_loop(watch)
        await trio.lowlevel.checkpoint()
        assert watch._longest >= 3_000_000_000
        assert read.points(table.LOOP_LAG)[()] >= 3
        assert read.points(table.LOOP_LAG)[()] < 3  # since the last look
        assert read.points(table.LOOP_BUSY)[()] >= 3
    busy = watch.busy
    await trio.lowlevel.checkpoint()
    assert watch.busy == busy
    read.provider.shutdown()


def _hold_the_loop(watch: LoopWatch) -> None:
    watch._since -= 3_000_000_000  # as if this pass had begun three seconds ago


def test_the_table_is_what_the_document_says() -> None:
    document = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
    assert table.as_markdown() in document


def test_names_are_unique_and_histograms_have_bounds() -> None:
    names = [row.name for row in table.METRICS]
    assert len(set(names)) == len(names)
    for row in table.METRICS:
        assert (row.kind is table.Kind.HISTOGRAM) == bool(row.bounds)
        assert list(row.bounds) == sorted(row.bounds)
