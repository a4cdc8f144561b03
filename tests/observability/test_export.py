"""What leaves the process, and what happens when it cannot."""

import logging
import socket
import threading
import time

import pytest
import trio
from opentelemetry import trace as otel
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Sampler
from tabwarden.model import Phase, TraceOutcome
from tabwarden_observability import attached_to, current_span_context, setup_tracing
from tabwarden_observability.otlp_outlet import OtlpOutlet

from tests.observability.collector import Collector, attributes_of

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


def one_call(tracing, outcome: TraceOutcome = TraceOutcome.OK) -> None:
    trace = tracing.tracer.start_request()
    with trace.phase(Phase.DISPATCH), trace.child("adapter.work"):
        pass
    trace.end(outcome)


async def test_otlp_receiver_sees_the_tree(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    tracing = setup_tracing()
    before = time.time_ns()
    trace = tracing.tracer.start_request()
    trace.adopt(f"00-{TRACE}-{PARENT}-01")
    trace.annotate(action="navigate")
    for phase in Phase:
        with trace.phase(phase):
            if phase is Phase.DISPATCH:
                with trace.child("cdp.navigate"), trace.child("cdp.send"):
                    pass
    trace.end(TraceOutcome.OK)
    after = time.time_ns()
    assert await tracing.flush()
    assert collector.paths == ["/v1/traces"]
    spans = {span.name: span for span in collector.spans}
    assert len(spans) == len(collector.spans) == len({span.span_id for span in collector.spans}) == 10
    root = spans["agent.request"]
    assert root.kind == Span.SPAN_KIND_SERVER
    assert (root.span_id.hex(), root.parent_span_id.hex()) == (trace.span_id, PARENT)
    # One wall clock reading anchors them all, so the margin is what the clock is steered by meanwhile.
    assert before <= root.start_time_unix_nano <= root.end_time_unix_nano <= after + 1_000_000
    parents = {phase.value: root for phase in Phase}
    parents |= {"cdp.navigate": spans["dispatch"], "cdp.send": spans["cdp.navigate"]}
    for name, parent in parents.items():
        span = spans[name]
        assert span.kind == Span.SPAN_KIND_INTERNAL
        assert span.trace_id.hex() == TRACE
        assert span.parent_span_id == parent.span_id
        assert parent.start_time_unix_nano <= span.start_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano <= parent.end_time_unix_nano
        assert attributes_of(span) == {"tabwarden.phase.outcome": "ok"}
        assert span.status.code == Status.STATUS_CODE_UNSET
    (resource,) = {
        r.resource.SerializeToString(): r for q in collector.requests for r in q.resource_spans
    }.values()
    assert attributes_of(resource.resource)["service.name"] == "tabwarden"
    assert resource.scope_spans[0].scope.name == "tabwarden"
    (recent,) = tracing.recent()
    assert [span.span_id for span in recent.phases] == [spans[phase].span_id.hex() for phase in Phase]
    assert await tracing.shutdown() == 0


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (TraceOutcome.OK, Status.STATUS_CODE_UNSET),
        (TraceOutcome.DENIED, Status.STATUS_CODE_UNSET),
        (TraceOutcome.FAILED, Status.STATUS_CODE_ERROR),
        (TraceOutcome.DEADLINE, Status.STATUS_CODE_ERROR),
        (TraceOutcome.REVOKED, Status.STATUS_CODE_UNSET),
        (TraceOutcome.DISCONNECTED, Status.STATUS_CODE_UNSET),
        (TraceOutcome.CLOSED, Status.STATUS_CODE_UNSET),
    ],
)
async def test_status_and_cause_of_a_cancelled_request(collector, monkeypatch, outcome, status):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    tracing = setup_tracing()
    trace = tracing.tracer.start_request()
    with trio.CancelScope() as scope, trace.phase(Phase.DISPATCH):
        scope.cancel()
        await trio.lowlevel.checkpoint()
    trace.end(outcome)
    await tracing.shutdown()
    spans = {span.name: span for span in collector.spans}
    root, phase = spans["agent.request"], spans["dispatch"]
    assert (root.status.code, root.status.message) == (status, "")
    assert attributes_of(root)["tabwarden.outcome"] == outcome.value
    by_scope = outcome not in (TraceOutcome.OK, TraceOutcome.DENIED, TraceOutcome.FAILED)
    assert attributes_of(phase)["tabwarden.cause"] == (outcome.value if by_scope else "cancelled")
    assert attributes_of(root).get("tabwarden.cause") == (
        outcome.value if by_scope else "cancelled" if outcome is TraceOutcome.FAILED else None
    )


async def test_unsampled_callers_are_not_exported(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    tracing = setup_tracing()
    trace = tracing.tracer.start_request()
    trace.adopt(f"00-{TRACE}-{PARENT}-00")
    trace.end(TraceOutcome.OK)
    assert await tracing.shutdown() == 0
    assert not collector.spans
    assert len(tracing.recent()) == 1


async def test_the_environment_names_sampler_and_service(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.endpoint}/mine")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "desk-7")
    tracing = setup_tracing()
    one_call(tracing)
    await tracing.shutdown()
    assert collector.paths == ["/mine"]
    assert attributes_of(collector.requests[0].resource_spans[0].resource)["service.name"] == "desk-7"
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    tracing = setup_tracing()
    one_call(tracing)
    assert await tracing.shutdown() == 0
    assert collector.paths == ["/mine"]


async def test_half_full_ring_is_emptied_without_waiting():
    exported = threading.Event()

    class Telling(InMemorySpanExporter):
        def export(self, spans):
            result = super().export(spans)
            exported.set()
            return result

    memory = Telling()
    tracing = setup_tracing(exporters=[memory], ring=8, interval_s=3600)
    for _ in range(4):
        one_call(tracing)
    assert await trio.to_thread.run_sync(exported.wait, 30)
    assert len(memory.get_finished_spans()) == 12
    assert await tracing.shutdown() == 0


class Blocked(SpanExporter):
    """Holds the export thread until told, or until shut down if `obeys`."""

    def __init__(self, *, obeys: bool) -> None:
        self.entered = threading.Event()
        self.go = threading.Event()
        self._obeys = obeys

    def export(self, spans):
        self.entered.set()
        self.go.wait()
        return SpanExportResult.FAILURE

    def shutdown(self):
        if self._obeys:
            self.go.set()


async def test_overflow_is_counted_while_the_collector_is_slow():
    exporter = Blocked(obeys=True)
    tracing = setup_tracing(exporters=[exporter], ring=4, interval_s=0.001)
    one_call(tracing)
    await trio.to_thread.run_sync(exporter.entered.wait)
    for _ in range(10):
        one_call(tracing)
    assert tracing.dropped == 6 * 3
    exporter.go.set()
    assert await tracing.shutdown() == 11 * 3
    assert len(tracing.recent()) == 11


@pytest.mark.parametrize("obeys", [True, False])
async def test_shutdown_is_bounded_whatever_the_exporter_does(obeys):
    exporter = Blocked(obeys=obeys)
    tracing = setup_tracing(exporters=[exporter], interval_s=0.001)
    one_call(tracing)
    await trio.to_thread.run_sync(exporter.entered.wait)
    one_call(tracing)
    before = time.monotonic()
    dropped = None
    with trio.CancelScope() as scope:
        scope.cancel()  # its own bound is the only one
        dropped = await tracing.shutdown(timeout=0.2)
    assert dropped == 6
    assert time.monotonic() - before < 30  # not its bound, only a bound: the exporter never ends
    assert await tracing.shutdown(timeout=0.2) == 6
    one_call(tracing)
    assert tracing.dropped == 9
    exporter.go.set()


def hang_up(listener: socket.socket) -> None:
    """Takes part of what comes over each connection, and closes it."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(64)


@pytest.mark.parametrize("kind", ["refuses", "hangs", "hangs-up", "fails"])
async def test_dead_collector(kind, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as listener, Collector(status=400) as failing:
        port = listener.getsockname()[1]
        if kind == "refuses":
            listener.close()
        closer = threading.Thread(target=hang_up, args=(listener,))
        if kind == "hangs-up":
            closer.start()
        endpoint = failing.endpoint if kind == "fails" else f"http://127.0.0.1:{port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        tracing = setup_tracing(interval_s=0.001)
        one_call(tracing)
        with trio.fail_after(30):  # the exporter itself would go on trying for longer
            assert await tracing.shutdown(timeout=0.4) == 3
        if kind == "hangs-up":
            listener.shutdown(socket.SHUT_RDWR)
            closer.join()
    for record in caplog.records:
        assert record.exc_info is None
        if not record.name.startswith("urllib3"):  # at DEBUG it tells host and port, not exceptions
            assert record.name == "tabwarden.observability"
            assert record.getMessage() == "traces cannot be exported; 3 spans dropped so far"


async def test_each_span_is_delivered_or_counted_while_a_collector_is_slow(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    collector.answering.clear()
    tracing = setup_tracing(ring=4, interval_s=0.001)
    one_call(tracing)
    assert await trio.to_thread.run_sync(collector.asked.wait, 30)
    for _ in range(10):
        one_call(tracing)
    assert tracing.dropped == 6 * 3
    collector.answering.set()
    assert await tracing.flush(timeout=30)
    assert await tracing.shutdown() == 6 * 3
    assert len({span.span_id for span in collector.spans}) == len(collector.spans) == 5 * 3


async def test_what_waits_for_a_batch_to_be_answered_is_given_up_with_it(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    collector.answering.clear()
    tracing = setup_tracing(interval_s=0.001)
    one_call(tracing)
    assert await trio.to_thread.run_sync(collector.asked.wait, 30)
    one_call(tracing)
    with trio.fail_after(30):  # the exporter itself would wait for 10 s
        assert await tracing.shutdown(timeout=0.2) == 2 * 3


async def test_a_span_leaves_without_being_asked_for(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    tracing = setup_tracing()
    one_call(tracing)
    assert await trio.to_thread.run_sync(collector.asked.wait, 30)
    assert len(collector.spans) == 3
    assert await tracing.shutdown() == 0


async def test_only_our_own_export_is_silenced(caplog):
    logger = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    of_others = list(logger.filters)
    exporter = Blocked(obeys=True)
    tracing = setup_tracing(exporters=[exporter], interval_s=0.001)
    one_call(tracing)
    await trio.to_thread.run_sync(exporter.entered.wait)
    assert logger.filters != of_others
    logger.error("of the host")
    await tracing.shutdown()
    assert "of the host" in caplog.text
    assert logger.filters == of_others


class Picky(SimpleSpanProcessor):
    def on_end(self, span):
        if span.name == "adapter.work":
            raise RuntimeError("CANARY")
        super().on_end(span)


async def test_a_host_provider_is_used_and_left_alone(caplog):
    memory = InMemorySpanExporter()
    resource = Resource({"service.name": "host"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(Picky(memory))
    was_global = otel.get_tracer_provider()
    tracing = setup_tracing(provider=provider)
    assert tracing.provider is provider
    one_call(tracing)
    assert await tracing.shutdown() == 1  # the processor refused one
    assert otel.get_tracer_provider() is was_global
    spans = memory.get_finished_spans()
    assert [span.name for span in spans] == ["dispatch", "agent.request"]
    assert all(span.resource is resource for span in spans)
    assert "CANARY" not in caplog.text
    with provider.get_tracer("host").start_as_current_span("later"):
        pass
    assert memory.get_finished_spans()[-1].name == "later"
    provider.shutdown()


async def test_a_host_sampler_decides():
    memory = InMemorySpanExporter()
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracing = setup_tracing(provider=provider)
    one_call(tracing)
    assert await tracing.shutdown() == 0
    assert not memory.get_finished_spans()
    provider.shutdown()


class BrokenSampler(Sampler):
    def should_sample(self, *args, **kwargs):
        raise RuntimeError("CANARY")

    def get_description(self):
        return "broken"


async def test_a_broken_host_sampler_costs_spans_and_nothing_else(caplog):
    memory = InMemorySpanExporter()
    provider = TracerProvider(sampler=BrokenSampler(), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracing = setup_tracing(provider=provider)
    one_call(tracing)
    assert await tracing.flush()
    assert tracing.dropped == 3
    assert await tracing.shutdown() == 3
    assert not memory.get_finished_spans()
    assert not caplog.records
    provider.shutdown()


async def test_many_requests_go_out_in_several_batches(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    tracing = setup_tracing(interval_s=3600)
    calls = OtlpOutlet.batch_spans // 3 + 20
    for _ in range(calls):
        one_call(tracing)
    assert await tracing.flush(timeout=30)
    assert len(collector.requests) == 2
    assert len({span.span_id for span in collector.spans}) == len(collector.spans) == 3 * calls
    assert await tracing.shutdown() == 0


async def test_spans_of_an_adapter_nest_below_the_running_child():
    memory = InMemorySpanExporter()
    tracing = setup_tracing(exporters=[memory])
    tracer = tracing.provider.get_tracer("adapter")
    trace = tracing.tracer.start_request()

    async def in_another_task() -> None:
        tracer.start_span("elsewhere").end()

    with trace.phase(Phase.AUDIT):
        pass
    with trace.phase(Phase.DISPATCH):
        with attached_to(trace), tracer.start_as_current_span("below.phase"):
            pass
        with trace.child("cdp.send"), attached_to(trace):
            tracer.start_span("below.child").end()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(in_another_task)
    with attached_to(trace):
        tracer.start_span("below.request").end()
    trace.end(TraceOutcome.OK)
    tracer.start_span("outside").end()
    assert await tracing.shutdown() == 0
    spans = {span.name: span for span in memory.get_finished_spans()}
    parents = {
        "below.phase": "dispatch",
        "below.child": "cdp.send",
        "elsewhere": "cdp.send",
        "below.request": "agent.request",
    }
    for name, parent in parents.items():
        assert spans[name].parent.span_id == spans[parent].context.span_id
        assert spans[name].context.trace_id == spans["agent.request"].context.trace_id
    assert spans["outside"].parent is None


async def test_attaching_in_one_task_and_leaving_in_another_harms_neither(caplog):
    tracing = setup_tracing()
    trace = tracing.tracer.start_request()
    block, child = attached_to(trace), trace.child("cdp.send")

    async def enter() -> None:
        child.__enter__()
        block.__enter__()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(enter)
    block.__exit__(None, None, None)
    child.__exit__(None, None, None)
    assert not caplog.records
    assert not otel.get_current_span().get_span_context().is_valid
    trace.end(TraceOutcome.OK)
    assert [span.name for span in tracing.recent()[0].phases] == ["cdp.send"]


def test_a_trace_that_is_not_ours_gives_no_parent():
    class NoTrace:
        pass

    assert not current_span_context(NoTrace()).is_valid
    with attached_to(NoTrace()):
        assert not otel.get_current_span().get_span_context().is_valid
