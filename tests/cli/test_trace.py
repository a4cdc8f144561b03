"""`tabwarden trace`: what a person sees of recent requests, and what a wrong broker cannot make them see."""

import json
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.model import Phase, TraceOutcome
from tabwarden_adapters.administration import AdministrationFailed, ListTraces, Request, administration
from tabwarden_adapters.administration.messages import read_request
from tabwarden_adapters.cli import trace_work
from tabwarden_observability import Listing, RingTracer, Tracing, setup_tracing
from tabwarden_observability import metric_table as table

from tests.cli.no_browser import without_tabs
from tests.cli.running import LIMIT_S, environment, here, serving, tabwarden
from tests.observability.collector import Collector, attributes_of


def ended(tracer: RingTracer, action: str, *, at: int = 0) -> None:
    trace = tracer.start_request()
    trace.annotate(action=action)
    trace._start -= at  # as if it had begun earlier
    with trace.phase(Phase.DISPATCH):
        pass
    trace.end(TraceOutcome.OK)


class Desk:
    """An administrator with traces, or with whatever else it is told to say."""

    def __init__(self, tracing: Tracing, answer: object = None) -> None:
        self.tracing = tracing
        self.answer = answer

    async def __call__(self, request: Request, /) -> Any:
        assert isinstance(request, ListTraces)
        return self.answer or await self.tracing.listed(request.limit, request.after)


@asynccontextmanager
async def desk(tmp_path: Path, answer: object = None) -> AsyncIterator[tuple[RingTracer, trace_work.Look]]:
    path = tmp_path / "run" / "admin.sock"
    tracing = setup_tracing()
    async with administration(path, Desk(tracing, answer)):
        yield tracing.tracer, trace_work.looking_at(path)


def off_loop(look: trace_work.Look) -> Callable[..., Awaitable[Listing]]:
    async def asked(limit: int, after: str | None = None) -> Listing:
        return await trio.to_thread.run_sync(look, limit, after)

    return asked


async def test_the_newest_the_slowest_and_those_since(tmp_path: Path) -> None:
    async with desk(tmp_path) as (tracer, look):
        asked = off_loop(look)
        assert await asked(10) == Listing((), False)
        for number, action in enumerate(("read", "navigate", "click")):
            ended(tracer, action, at=(7, 9, 8)[number] * 10**9)
        listed = await asked(2)
        assert [one.action for one in listed.requests] == ["navigate", "click"]
        every = (await asked(256)).requests
        assert [one.action for one in trace_work.slowest(every, 2)] == ["navigate", "click"]
        assert [one.action for one in (await asked(256, every[0].span_id)).requests] == ["navigate", "click"]


async def test_following_shows_each_request_once(tmp_path: Path) -> None:
    async with desk(tmp_path) as (tracer, look):
        for action in ("back", "forward", "read"):
            ended(tracer, action)
        coming = iter([["navigate"], [], ["click", "type"], ["read"] * 300, ["reload"]])

        def pause() -> None:
            for action in next(coming):
                ended(tracer, action)

        def follow() -> list[tuple[list[str | None], bool]]:
            seen = []
            for listed in trace_work.follow(look, 2, pause):
                seen.append(([one.action for one in listed.requests], listed.missed))
                if seen[-1][0] == ["reload"]:
                    break
            return seen

        assert await trio.to_thread.run_sync(follow) == [
            (["forward", "read"], False),
            (["navigate"], False),
            (["click", "type"], False),
            (["read"] * 256, True),
            (["reload"], False),
        ]


@pytest.mark.parametrize(
    "asked",
    [{"limit": 0}, {"limit": 257}, {"limit": True}, {"after": "A" * 16}, {"after": "0" * 17}, {"x": 1}],
)
def test_what_may_be_asked_is_bounded(asked: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        read_request(json.dumps({"do": "traces.list", **asked}).encode())
    assert read_request(b'{"do":"traces.list"}') == ListTraces(20, None)


@pytest.mark.parametrize("answer", [{"requests": [{}], "missed": False}, ["\x1b[2J"], "text"])
async def test_what_is_no_list_of_traces_is_not_shown(tmp_path: Path, answer: object) -> None:
    async with desk(tmp_path, answer) as (_, look):
        with pytest.raises(AdministrationFailed) as failed:
            await off_loop(look)(1)
        assert failed.value.code == "no-answer"
        assert "\x1b" not in str(failed.value)


def test_a_page_is_for_its_user_only_and_replaces_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    page = tmp_path / "page.html"
    page.symlink_to(elsewhere)
    trace_work.write_page(page, (), 0)
    assert elsewhere.read_text() == "kept"
    assert stat.S_ISREG(page.lstat().st_mode)
    assert stat.S_IMODE(page.lstat().st_mode) == 0o600
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["elsewhere", "page.html"]
    for nowhere in (tmp_path / "absent" / "page.html", tmp_path):
        with pytest.raises(ConfigurationError, match="cannot write"):
            trace_work.write_page(nowhere, (), 0)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["elsewhere", "page.html"]
    for nameless in (Path(), Path("/")):
        with pytest.raises(ConfigurationError, match="--html"):
            trace_work.write_page(nameless, (), 0)


@pytest.mark.parametrize(
    "flags", [["-n", "0"], ["-n", "257"], ["--follow", "--slowest"], ["--follow", "--html", "x"], []]
)
def test_flags_that_cannot_be_and_no_broker(
    tmp_path: Path, flags: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tabwarden_adapters.cli.app import app

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        app(["trace", *flags, "--admin", str(tmp_path / "admin.sock")])
    assert left.value.code == 1
    written = capsys.readouterr()
    assert written.out == ""
    assert json.loads(written.err)["error"]["code"] == "configuration"
    assert list(tmp_path.iterdir()) == []


def test_a_served_brokers_calls_are_seen(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tabwarden_adapters.cli", "trace", "--follow"]
    with Collector() as collector:
        variables = {
            **without_tabs(tmp_path),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_METRIC_EXPORT_INTERVAL": "300",
            "NO_PROXY": "127.0.0.1",
        }
        with serving(tmp_path, "--scope", "settings:get", variables=variables) as (ready, _):
            seen_by_commands(tmp_path, ready, command)
    metrics = {
        metric.name: metric
        for resource in collector.metric_requests[-1].resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    unseen = {table.CDP_DURATION, table.REFUSALS, table.EGRESS_CONNECTIONS}
    assert set(metrics) == {row.name for row in set(table.METRICS) - unseen}
    phases = metrics[table.PHASE_DURATION.name].histogram.data_points
    assert {attributes_of(point)["tabwarden.phase"]: point.count for point in phases}["authorization"] == 1
    assert {span.name for span in collector.spans} >= {"agent.request", "authorization", "encryption"}


def hear_interrupts() -> None:
    """As at a terminal: what a shell starts in the background, these tests for instance, ignores them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def seen_by_commands(tmp_path: Path, ready: dict[str, Any], command: list[str]) -> None:
    assert tabwarden(tmp_path, "call", "read").failure["code"] == "policy-denied"
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
        preexec_fn=hear_interrupts,  # noqa: PLW1509
    ) as following:
        assert following.stdout is not None
        request = json.loads(following.stdout.readline())
        assert (request["attributes"]["tabwarden.action"], request["code"]) == ("read", "policy-denied")
        assert [phase["name"] for phase in request["phases"]][:3] == [
            "challenge",
            "decryption",
            "authorization",
        ]
        following.send_signal(signal.SIGINT)
        assert following.communicate(timeout=LIMIT_S) == ("", "")
        assert following.returncode == 0
    page = tmp_path / "page.html"
    assert here(tmp_path, "trace", "--html", str(page), "--admin", ready["admin"]).result["requests"] == 1
    assert "policy-denied" in page.read_text()
