"""What Arize Phoenix makes of our spans: sent over OTLP, read back over its API. `make test-backends`."""

import urllib.error
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden import CallFailed
from tabwarden.client import AgentClient
from tabwarden.errors import Code
from tabwarden.ports import CallContext
from tabwarden_observability import FinishedRequest, FinishedSpan, Tracing, setup_tracing
from tabwarden_observability.endings import status_of

from tests.attacks.serving import Broker, serve
from tests.observability.backend_programs import answered, phoenix

CALLS = 24
ASKED = 3000  # times at most: each is a round trip, and half a minute together
# Phoenix keeps microseconds, and makes them out of floating-point seconds: each end may be off by one.
RESOLUTION = timedelta(microseconds=1)
# Of the program that called: its own span went elsewhere, and Phoenix never sees it.
CALLER_SPAN = "00f067aa0ba902b7"
CALLER = f"00-4bf92f3577b34da6a3ce929d0e0e4736-{CALLER_SPAN}-01"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def busy(arguments: object, context: CallContext) -> list[object]:
    """Steps below dispatch: one within another, and two side by side."""
    with context.trace.child("cdp.page"):
        with context.trace.child("cdp.target"):
            await trio.lowlevel.checkpoint()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(step, context)
            nursery.start_soon(step, context)
    return []


async def step(context: CallContext) -> None:
    with context.trace.child("cdp.runtime"):
        await trio.lowlevel.checkpoint()


async def broken(arguments: object, context: CallContext) -> object:
    with context.trace.child("cdp.page"):
        raise RuntimeError("with a secret")


async def work(broker: Broker) -> None:
    """Calls that succeed, three at a time; one that is denied, one that fails."""
    async with AgentClient(broker.descriptor) as client:

        async def some() -> None:
            for _ in range(CALLS // 3):
                assert await client.call("sessions", traceparent=CALLER) == []

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(some)
        for action, code in (("tabs:create", Code.POLICY_DENIED), ("read", Code.FAILURE)):
            with pytest.raises(CallFailed) as failed:
                await client.call(action)
            assert failed.value.code == code


Expected = tuple[str, str | None, str, timedelta, timedelta, str]


def expected(request: FinishedRequest) -> Iterator[tuple[str, Expected]]:
    """Of each span by the local store, under its id: trace, parent, name, start and end, status."""

    def at(nanoseconds: int) -> timedelta:
        return timedelta(microseconds=(request.start_wall_ns + nanoseconds) / 1000)

    def below(span: FinishedSpan, parent: str) -> Iterator[tuple[str, Expected]]:
        start, end = at(span.offset_ns), at(span.offset_ns + span.duration_ns)
        status = status_of(span.outcome).name
        yield span.span_id, (request.trace_id, parent, span.name, start, end, status)
        for child in span.children:
            yield from below(child, span.span_id)

    status = status_of(request.outcome).name
    parent = request.parent_span_id
    whole = (request.trace_id, parent, "agent.request", at(0), at(request.duration_ns), status)
    yield request.span_id, whole
    for phase in request.phases:
        yield from below(phase, request.span_id)


def read_back(address: str, count: int) -> dict[str, dict[str, Any]]:
    """The spans that Phoenix has, by id, once there are `count`: it stores them after it has said yes."""
    url = f"{address}/v1/projects/default/spans?limit=1000"
    found: list[dict[str, Any]] = []
    for _ in range(ASKED):
        try:
            found = answered(url)["data"]
        except urllib.error.HTTPError as error:
            assert error.code == 404  # noqa: PT017 - before the first span there is no project
        if len(found) >= count:
            break
    return {span["context"]["span_id"]: span for span in found}


def of(moment: str) -> timedelta:
    return datetime.fromisoformat(moment) - EPOCH


async def traced(address: str, monkeypatch: pytest.MonkeyPatch) -> Tracing:
    """A broker at work that is set up by the environment, as any user would."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    tracing = setup_tracing()
    actions = {"sessions": busy, "read": broken}
    async with serve(tracer=tracing.tracer, actions=actions, allow=("sessions", "read")) as broker:
        await work(broker)
    assert await tracing.shutdown(timeout=60) == 0
    return tracing


@pytest.mark.timeout(600)
async def test_phoenix_has_every_span_where_and_when_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with phoenix(tmp_path) as address:
        tracing = await traced(address, monkeypatch)
        local = dict(pair for request in tracing.recent(1000) for pair in expected(request))
        found = read_back(address, len(local))
    assert len(tracing.recent(1000)) == CALLS + 2
    assert set(found) == set(local)
    roots, furthest = 0, timedelta()
    for span_id, (trace_id, parent, name, start, end, status) in local.items():
        span = found[span_id]
        assert (span["context"]["trace_id"], span["parent_id"], span["name"]) == (trace_id, parent, name)
        assert span["status_code"] == status
        assert span["events"] == []
        began, ended = of(span["start_time"]), of(span["end_time"])
        furthest = max(furthest, abs(began - start), abs(ended - end))
        assert abs((ended - began) - (end - start)) <= 2 * RESOLUTION
        if name == "agent.request":
            roots += 1
            assert parent in (None, CALLER_SPAN)
        else:
            around = found[parent]
            assert of(around["start_time"]) <= began <= ended <= of(around["end_time"])
    assert roots == CALLS + 2
    assert furthest <= RESOLUTION
    assert "secret" not in str(found)
    names = [span["name"] for span in found.values()]
    assert names.count("cdp.runtime") == 2 * CALLS
    assert names.count("dispatch") == CALLS + 1
    microseconds = furthest / RESOLUTION
    print(  # noqa: T201
        f"\nPhoenix: {len(found)} spans of {roots} requests read back, "
        f"their starts and ends {microseconds:.0f} microseconds off at most"
    )
