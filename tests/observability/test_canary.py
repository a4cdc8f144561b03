"""Marked secrets go through every action, error and log path of a broker; none comes out where people or
collectors look: spans, metrics, scrapes, log lines, audit records, the local store and the page about it."""

import base64
import json
import logging
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden.actions import ACTIONS
from tabwarden.errors import ActionError, Code
from tabwarden.model import Authorization
from tabwarden.ports import CallContext, PersonWait
from tabwarden_adapters.audit import durable_audit_log
from tabwarden_observability import (
    AuditFigures,
    Metrics,
    broker_metrics,
    setup_metrics,
    setup_tracing,
    trace_page,
)

from tests.attacks.serving import Broker, serve
from tests.attacks.toolkit import answer, connect, envelope, peer_of
from tests.browser.host_contract.fake_host import ACTIONS as OF_THE_HOST
from tests.browser.host_contract.fake_host import (
    CONTROL,
    CONTROLS,
    ONE,
    READ,
    TWO,
    FakeHost,
    FakeTab,
)
from tests.observability.collector import Collector
from tests.support.fakes import AllowOnly

CANARY = "CANARY-5f1c-of-a-secret"
HOST = "canary-5f1c-of-a-secret.test"
KEY = "CANARY-5f1c-of-a-key"
# As it is, and as it would look after what programs do with text.
FORMS = {
    form
    for text in (CANARY, "5f1c-of-a")
    for form in (
        text,
        text.lower(),
        text.upper(),
        text[::-1],
        text.encode().hex(),
        text.encode().hex().upper(),
        *(base64.b64encode(text.encode()[start:])[:12].decode() for start in range(3)),
    )
}

# Arguments that are valid, with the secret wherever a text may be.
BOOKMARK = {"title": CANARY, "url": f"https://{HOST}/{CANARY}", "folder": CANARY}
SECRET_ARGUMENTS: dict[str, dict[str, Any]] = {
    "navigate": {"url": f"https://user:{CANARY}@{HOST}/{CANARY}?{CANARY}#{CANARY}"},
    "click": {"selector": f"#{CANARY}"},
    "type": {"selector": f"#{CANARY}", "text": CANARY},
    "select": {"selector": f"#{CANARY}", "value": CANARY},
    "check": {"selector": f"#{CANARY}", "checked": True},
    "ai": {"prompt": CANARY},
    "handoff": {"reason": CANARY},
    "settings:update": {"appearance": {"mode": "dark"}},
    "bookmarks:mutate": {"action": "add", "expectedRevision": 1, "policyVersion": 1, "bookmark": BOOKMARK},
    "tabs:create": {"url": f"https://{HOST}/{CANARY}", "group": CANARY},
    "tabs:activate": {"sessionId": ONE},
    "tabs:group": {"sessionId": ONE, "group": CANARY},
}


def arguments(action: str) -> dict[str, Any]:
    return SECRET_ARGUMENTS.get(action) or OF_THE_HOST.get(action, ({}, []))[0]


class SecretError(Exception):
    """Says it in every way that an exception has."""

    def __init__(self) -> None:
        super().__init__(CANARY, {CANARY: CANARY})
        self.add_note(CANARY)
        self.__cause__ = ValueError(CANARY)

    def __repr__(self) -> str:
        return CANARY


def faults() -> Iterator[Any]:
    """What adapters raise or give back that they should not."""
    yield SecretError()
    yield BaseExceptionGroup(CANARY, [SecretError(), ActionError(Code.STALE)])
    yield ActionError(Code.NAVIGATION_FAILED)
    yield {"text": [CANARY], CANARY: CANARY}
    yield CANARY


@dataclass
class Rough:
    """Adapters that know nothing of the contract: `gives` is raised, or given back."""

    gives: Any = None
    halt: bool = False
    halted: trio.Event = field(default_factory=trio.Event)

    def adapter(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def act(given: object, context: CallContext) -> Any:
            with context.trace.child(f"cdp.{CANARY}"), context.trace.child(name):
                context.trace.annotate(url=CANARY, action=CANARY, code=CANARY, session_id=CANARY)
                logging.getLogger("tabwarden.test").debug("an adapter at work")
                context.effects_begin()
                if self.halt:
                    self.halted.set()
                    await trio.sleep_forever()
                if isinstance(self.gives, BaseException):
                    raise self.gives
                return self.gives

        return act


class Rulings:
    """Implements `Authorizer`: allows, denies or fails."""

    def __init__(self) -> None:
        self.allow = AllowOnly(*ACTIONS)
        self.instead: Authorization | BaseException | None = None

    async def __call__(self, *given: Any, waiting_for_person: PersonWait, **more: Any) -> Authorization:
        if isinstance(self.instead, BaseException):
            raise self.instead
        if self.instead is not None:
            return self.instead
        return await self.allow(*given, waiting_for_person=waiting_for_person, **more)


def secret_host() -> FakeHost:
    """A browser full of secrets, which agents may see."""
    tabs = {one: FakeTab(one, f"https://{HOST}/{CANARY}", CANARY) for one in (ONE, TWO)}
    host = FakeHost(tabs=tabs, allowed_hosts={HOST, f"user:{CANARY}@{HOST}"})
    controls = [{**CONTROL, "name": CANARY, "selector": f"#{CANARY}", "value": CANARY}]
    # Either answer is wrong for the other action, and a wrong answer is a way for a text to come out as well.
    host.instead = {"ai": CANARY, "run": {**READ, **CONTROLS, "text": CANARY, "controls": controls}}
    return host


async def each_call(broker: Broker, host: FakeHost, rough: Rough, rulings: Rulings) -> list[Any]:
    """Every action with a good end, with each fault, denied, not decided, and given the wrong arguments."""
    peer = peer_of(broker)
    ends: list[Any] = []

    async def call(action: str, args: dict[str, Any], **more: Any) -> None:
        ends.append(await peer.call(broker, envelope(action, args=args, **more)))

    every = list(faults())
    for number, action in enumerate(ACTIONS):
        host.tabs.update(secret_host().tabs)
        rough.gives = {"text": CANARY, "completed": True, CANARY: CANARY}
        await call(action, arguments(action), idempotencyKey=f"{KEY}-{number}")
        # Each action meets some of the faults, and each fault some actions of either kind.
        for fault in (every[number % len(every)], every[(number + 2) % len(every)]):
            host.tabs.update(secret_host().tabs)
            rough.gives = fault
            kept = dict(host.instead)
            points = OF_THE_HOST.get(action, ({}, []))[1]
            host.instead[points[number % len(points)] if points else ""] = fault
            await call(action, arguments(action))
            host.instead = kept
        ruling: Any = (Authorization(allowed=False, rule="test.rule"), SecretError())[number % 2]
        rulings.instead = ruling
        await call(action, arguments(action))
        rulings.instead = None
        await call(action, {**arguments(action), CANARY: CANARY})
    await call(CANARY, {})
    for plaintext in (CANARY.encode(), json.dumps({"type": CANARY}).encode(), envelope(more=CANARY)):
        ends.append(await peer.call(broker, plaintext))
    return ends


async def strangers(broker: Broker) -> None:
    """What comes from those who prove nothing."""
    host, secret = broker.control.address.encode(), CANARY.encode()
    for raw in (
        b"GET /%s HTTP/1.1\r\nhost: %s\r\n%s: %s\r\n\r\n" % (secret, host, secret, secret),
        b"POST /v1/agent HTTP/1.1\r\nhost: %s\r\ntraceparent: %s\r\ncontent-length: 3\r\n\r\nabc"
        % (host, secret),
        secret * 100 + b"\r\n\r\n",
    ):
        assert await answer(broker, raw) == broker.refusal


async def revoked_meanwhile(broker: Broker, rough: Rough) -> None:
    """A call that is at work when its right is taken."""
    peer = peer_of(broker)
    rough.halt = True

    async def call() -> None:
        async with connect(broker.control.address) as wire:
            action = peer.m3(
                await peer.challenge_on(wire), envelope("tabs:create", args=arguments("tabs:create"))
            )
            assert (await wire.ask(action.request.raw(peer.host))).status == 403

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await rough.halted.wait()
        await broker.control.revoke()


def scrape(metrics: Metrics) -> bytes:
    """What a Prometheus would get now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.scrape_port}/metrics", timeout=30) as answer:
        figures: bytes = answer.read()
    assert b"tabwarden_phase_duration_seconds_bucket" in figures
    return figures


async def test_no_secret_comes_out(
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    caplog.set_level(0)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "otlp,prometheus")
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", "0")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"host.name={CANARY},process.command_args={CANARY}")
    tracing, metrics = setup_tracing(), setup_metrics()
    host, rough, rulings = secret_host(), Rough(), Rulings()
    adapters = {name: rough.adapter("adapter.work") for name in ACTIONS} | dict(host.adapters())
    async with (
        durable_audit_log(tmp_path / "audit") as log,
        serve(
            actions=adapters,
            authorize=rulings,
            audit=log,  # type: ignore[arg-type]
            tracer=tracing.tracer,
            max_requests_per_minute=10_000,
        ) as broker,
    ):
        figures = AuditFigures(records=1, syncs=1, sync_s=0.1, lag=0, trouble=False)
        with broker_metrics(
            metrics,
            tracing=tracing,
            statistics=broker.control.statistics,
            audit=lambda: figures,
            sessions=lambda: 2,
        ):
            ends = await each_call(broker, host, rough, rulings)
            await strangers(broker)
            await revoked_meanwhile(broker, rough)
            assert await tracing.flush(timeout=30)
            scraped = await trio.to_thread.run_sync(scrape, metrics)
        told = [*broker.reasons.told, broker.control.statistics()]
    assert await tracing.shutdown() == 0
    await metrics.shutdown(timeout=30)

    statuses = {status for status, _ in ends}
    assert {200, 400, 403, 500} <= statuses
    assert CANARY in repr(ends)  # agents are told what a page says
    assert len(ends) > 5 * len(ACTIONS)

    kept = tracing.recent(1000)
    assert {request.action for request in kept} >= set(ACTIONS)
    written = capfd.readouterr()
    places = {
        "spans": collector.raw,
        "metrics": b"".join(request.SerializeToString() for request in collector.metric_requests),
        "scrape": scraped,
        "audit": b"".join(path.read_bytes() for path in (tmp_path / "audit").iterdir()),
        "log": "\n".join(repr(record.__dict__) for record in caplog.records).encode(),
        "streams": (written.out + written.err).encode(),
        "store": repr(kept).encode(),
        "listing": json.dumps(await tracing.listed(256)).encode(),
        "page": trace_page(kept, made_ns=0).encode(),
        "reasons": repr(told).encode(),
    }
    for name in ("spans", "metrics", "scrape", "audit", "log", "store", "listing", "page"):
        assert places[name], f"nothing came to {name}"
    found = [(place, form) for place, data in places.items() for form in FORMS if form.encode() in data]
    assert found == []
