"""`tabwarden load`, as its user runs it, against a broker in this process."""

import csv
import io
import json
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from PIL import Image
from tabwarden import Grant, Limits, start_agent_control
from tabwarden.errors import Code, ConfigurationError, DescriptorError
from tabwarden.model import AgentEvent, AuditEvent, AuditOutcome, TraceOutcome
from tabwarden.ports import ActionAdapter
from tabwarden_adapters.administration import ListTraces, Request, administration
from tabwarden_adapters.cli import load_work
from tabwarden_adapters.cli.load_broker import BrokerPhases
from tabwarden_adapters.credentials import (
    DescriptorStore,
    KeyFileProtector,
    PrincipalStore,
    descriptor_file_name,
)
from tabwarden_adapters.load import report_of
from tabwarden_observability import Tracing, setup_tracing

from tests.cli.running import LIMIT_S, Finished, environment, here, tabwarden
from tests.cli.test_trace import hear_interrupts
from tests.credentials.test_store import DESCRIPTOR
from tests.load.support import no_tabs, run_of, sample
from tests.load.test_driving import Held
from tests.load.test_plan import elsewhere
from tests.support.fakes import AllowOnly, MemoryAudit

COMMAND = [sys.executable, "-m", "tabwarden_adapters.cli", "load"]
UNLIMITED = ["--limit", "100000"]  # as the broker of these tests, unless they say otherwise


@dataclass(frozen=True)
class Desk:
    """An administrator with traces."""

    tracing: Tracing

    async def __call__(self, request: Request, /) -> Any:
        assert isinstance(request, ListTraces)
        return await self.tracing.listed(request.limit, request.after)


class Watching(MemoryAudit):
    """Says when so many principals have had a call that ended with `code`: a test that waits for it does not
    depend on how much a busy machine does in a second."""

    def __init__(self, code: Code | None, principals: int = 1) -> None:
        super().__init__()
        self._code, self._principals = code, principals
        self._seen: set[str | None] = set()
        self.enough = trio.Event()

    def note(self, event: AuditEvent) -> None:
        super().note(event)
        if isinstance(event, AgentEvent) and event.outcome is not AuditOutcome.AUTHORIZED:
            if event.code is self._code:
                self._seen.add(event.principal_id)
            if len(self._seen) == self._principals:
                self.enough.set()


async def until(home: Path, enough: trio.Event, *arguments: str) -> Finished:
    """`tabwarden load` in a closed loop of an hour, which SIGINT ends once there is `enough`."""
    done: list[subprocess.CompletedProcess[bytes]] = []
    command = [*COMMAND, "--closed", "--seconds", "3600", *arguments]

    async def run(*, task_status: trio.TaskStatus[trio.Process]) -> None:
        with (home / "out").open("wb") as out, (home / "err").open("wb") as err:
            async with trio.open_nursery() as inner:
                start = partial(
                    trio.run_process,
                    command,
                    stdout=out,
                    stderr=err,
                    check=False,
                    env=environment(home),
                    preexec_fn=hear_interrupts,
                )
                process = await inner.start(start)
                task_status.started(process)
            done.append(subprocess.CompletedProcess(command, process.returncode))

    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(run)
            await enough.wait()
            process.send_signal(signal.SIGINT)
    out, err = ((home / name).read_text() for name in ("out", "err"))
    return Finished(subprocess.CompletedProcess(command, done[0].returncode, out, err))


def protector(home: Path) -> KeyFileProtector:
    """With its key where the command looks for it in this home."""
    return KeyFileProtector(home / ".local" / "state" / "tabwarden")


@asynccontextmanager
async def served(
    home: Path,
    *principals: str,
    adapter: ActionAdapter = no_tabs,
    requests: int = 100_000,
    audit: MemoryAudit | None = None,
) -> AsyncIterator[list[str]]:
    """The flags that name its credentials and its administrator, sealed in `home` as `serve` would."""
    tracing, state = setup_tracing(), home / "run"
    store: PrincipalStore | DescriptorStore
    if principals:
        store = PrincipalStore(state / "principals", protector(home))
        flags = ["--principals", str(store.folder)]
    else:
        store = DescriptorStore(state / "agent-connection.json", protector(home))
        flags = ["--connection", str(store.path)]
    async with trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=AllowOnly("sessions"),
            actions={"sessions": adapter},
            audit=audit or MemoryAudit(),
            identity_mode="individual" if principals else "legacy",
            limits=Limits(requests_per_minute=requests),
            persist_credential=store,
            tracer=tracing.tracer,
        )
        if principals:
            await control.reconcile_principals([Grant(name, 1) for name in principals])
            for name in principals:
                await control.issue_principal(name, 1)
        async with administration(state / "admin.sock", Desk(tracing)):
            yield [*flags, "--admin", str(state / "admin.sock")]
        await control.close()


async def test_a_run_and_all_its_files(tmp_path: Path) -> None:
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "csv", "html")}
    places = [text for kind, path in files.items() for text in (f"--{kind}", str(path))]
    audit = Watching(Code.RATE_LIMITED, principals=3)
    async with served(tmp_path, "alice", "bob", "carol", requests=3, audit=audit) as flags:
        done = await until(tmp_path, audit.enough, *flags, "--agents", "4", "--limit", "3", *places)
    assert done.status == 0, done.err
    assert done.err == ""
    assert done.result["limiter"] == "right"
    assert done.result["accepted"] == 9
    report = json.loads(files["json"].read_bytes())
    assert [(one["id"], one["agents"], one["accepted"]) for one in report["principals"]] == [
        ("alice", 2, 3),
        ("bob", 1, 3),
        ("carol", 1, 3),
    ]
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    assert len(rows) == report["calls"] == done.result["calls"]
    assert sum(row["outcome"] == "accepted" for row in rows) == 9
    assert {row["principal"] for row in rows} == {"alice", "bob", "carol"}
    assert "exactly what it should" in files["html"].read_text()
    # What the broker itself measured, of at least the requests that it still kept.
    assert {"challenge", "decryption", "audit", "encryption", "whole call"} <= set(report["broker_phases"])
    assert 9 <= report["broker_requests"] <= report["calls"]
    for path in files.values():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_nothing_secret_is_written(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("report.json", "report.csv", "report.html")]
    audit = Watching(None)
    places = [text for path in files for text in (f"--{path.suffix[1:]}", str(path))]
    async with served(tmp_path, audit=audit) as flags:
        done = await until(tmp_path, audit.enough, *flags, "--agents", "1", *UNLIMITED, *places)
        sealed = json.loads((tmp_path / "run" / "agent-connection.json").read_bytes())["sealed"]
    assert done.status == 0, done.err
    for path in files:
        text = path.read_text()
        assert "legacy" in text
        assert "127.0.0.1" not in text
        assert str(tmp_path) not in text
        assert sealed not in text


async def test_nothing_accepted_is_status_1_with_its_report(tmp_path: Path) -> None:
    report, audit = tmp_path / "report.json", Watching(Code.POLICY_DENIED)
    run = ["--agents", "1", "--action", "read", *UNLIMITED, "--json", str(report)]
    async with served(tmp_path, audit=audit) as flags:
        done = await until(tmp_path, audit.enough, *flags, *run)
    assert done.status == 1
    assert (done.result["accepted"], done.err) == (0, "")
    assert set(json.loads(report.read_bytes())["counts"]["codes"]) == {"policy-denied"}


async def test_an_interrupt_ends_it_early_with_a_report(tmp_path: Path) -> None:
    held, report = Held(), tmp_path / "report.json"
    held.release.set()
    async with served(tmp_path, adapter=held) as flags:
        run = ["--agents", "2", *UNLIMITED, "--json", str(report)]
        done = await until(tmp_path, held.inside, *flags, *run)
    assert done.status == 0, done.err
    printed = done.result
    assert printed["ended_by"] == "interrupt"
    assert json.loads(report.read_bytes())["counts"]["accepted"] == printed["accepted"] > 0


async def test_a_descriptor_for_elsewhere_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "run" / "agent-connection.json"
    with trio.socket.socket() as listener:
        await listener.bind(("127.0.0.2", 0))
        listener.listen()
        address = "{}:{}".format(*listener.getsockname())
        DescriptorStore(path, protector(tmp_path)).write(elsewhere(address))
        run = ["--agents", "1", "--closed", "--seconds", "1", "--connection", str(path)]
        done = await trio.to_thread.run_sync(lambda: tabwarden(tmp_path, "load", *run))
        assert (done.status, done.out) == (1, "")
        assert done.failure["code"] == "descriptor"
        with trio.move_on_after(0) as nobody:
            await listener.accept()
        assert nobody.cancelled_caught


def asking(**flags: Any) -> load_work.Asked:
    """The flags of a good command, but for these."""
    places = dict.fromkeys(("connection", "principals", "json", "csv", "html", "png", "admin"))
    return load_work.Asked(
        **{
            "agents": 1,
            "seconds": 1.0,
            "rate": 1.0,
            "closed": False,
            "action": "sessions",
            "pairs": (),
            "limit": 60,
            **places,
            **flags,
        }
    )


GOOD = ["--agents", "1", "--rate", "1", "--seconds", "1"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--agents", "1", "--seconds", "1"], "--rate"),
        ([*GOOD, "--closed"], "--rate"),
        ([*GOOD, "--connection", "a", "--principals", "b"], "--connection or --principals"),
        (["--agents", "1001", "--closed", "--seconds", "1"], "--agents"),
        (["--agents", "1", "--closed", "--seconds", "3601"], "--seconds"),
        ([*GOOD, "--limit", "0"], "--limit"),
        ([*GOOD, "--arg", "x=1"], "sessions"),
        ([*GOOD, "--json", "absent/report.json"], "cannot write"),
        ([*GOOD, "--json", "a", "--csv", "a"], "same name"),
    ],
)
def test_flags_that_cannot_be(
    tmp_path: Path, flags: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = here(tmp_path, "load", *flags)
    assert (done.status, done.out) == (1, "")
    assert done.failure["code"] == "configuration"
    assert says in done.failure["message"]
    assert os.listdir(tmp_path) == []


def test_more_agents_than_files_may_be_open_is_said_before_the_run(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        done = here(tmp_path, "load", "--agents", "500", "--closed", "--seconds", "1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (done.status, done.failure["code"]) == (1, "configuration")
    assert "ulimit -n 564" in done.failure["message"]


@pytest.mark.parametrize(
    ("place", "error", "says"),
    [
        ({"connection": "absent"}, DescriptorError, "start the broker"),
        ({"principals": "absent"}, ConfigurationError, "no folder"),
        ({"principals": "."}, ConfigurationError, "have one issued"),
    ],
)
def test_without_a_credential_it_says_what_to_do(
    tmp_path: Path, place: dict[str, str], error: type[Exception], says: str
) -> None:
    asked = asking(**{name: tmp_path / path for name, path in place.items()})
    with pytest.raises(error, match=says):
        load_work.credentials(asked, lambda new: b"")


def test_of_one_principal_the_newest_credential_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    for name, generation in (("bob", 3), ("bob", 12), ("alice", 3)):
        path = tmp_path / "principals" / descriptor_file_name(name, generation)
        one = replace(DESCRIPTOR, principal_id=name, generation=generation)
        DescriptorStore(path, protector(tmp_path)).write(one)
    opened = load_work.credentials(asking(principals=tmp_path / "principals"), lambda new: b"")
    assert [(one.principal_id, one.generation) for one in opened] == [("alice", 3), ("bob", 12)]


def test_a_passphrase_is_asked_for_once() -> None:
    times: list[bool] = []

    def ask(new: bool) -> bytes:
        times.append(new)
        return b"given"

    asked = load_work.once(ask)
    assert [asked(False), asked(False)] == [b"given", b"given"]
    assert times == [False]


def test_the_picture_is_put_where_it_was_asked_for(tmp_path: Path) -> None:
    asked, run = asking(png=tmp_path / "load.png"), run_of([sample(0), sample(1)])
    asked.check_places()
    load_work.write(asked, report_of(run), run)
    with Image.open(tmp_path / "load.png") as image:
        assert image.format == "PNG"
    assert [path.name for path in tmp_path.iterdir()] == ["load.png"]


async def test_a_broker_that_cannot_be_looked_at_does_not_end_a_run(tmp_path: Path) -> None:
    tracing = setup_tracing()
    async with administration(tmp_path / "run" / "admin.sock", Desk(tracing)):
        phases = BrokerPhases(tmp_path / "run" / "admin.sock", 3600)
        tracing.tracer.start_request().end(TraceOutcome.OK)
        await phases.begin()
        assert await phases.look()
        # What was there before the run is not counted.
        assert phases.durations == {}
        tracing.tracer.start_request().end(TraceOutcome.OK)
        assert await phases.look()
        assert len(phases.durations["whole call"]) == 1
    assert not await phases.look()
    await phases.watch()
