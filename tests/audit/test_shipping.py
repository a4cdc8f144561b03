"""Every record arrives, in order and at least once, whatever the other side does."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.audit import (
    AuditLogDamaged,
    Head,
    LogRules,
    Retention,
    durable_audit_log,
    read_records,
)
from tabwarden_adapters.audit.exports import as_jsonl
from tabwarden_adapters.audit.shipping import (
    Backoff,
    CursorFile,
    DeliveryFailed,
    Shipper,
    StreamLimits,
    SyslogAddress,
    SyslogDestination,
    open_cursor,
    parse_address,
    syslog_framing,
)
from tabwarden_adapters.audit.shipping.settling import Settling

from tests.ai.server import certificate
from tests.audit.signed import run
from tests.audit.support import denied, fill, lines, segments
from tests.audit.syslog_server import SyslogServer, syslog_server

LIMIT_S = 30
LARGE = bool(os.environ.get("TABWARDEN_LARGE"))
QUICK = StreamLimits(connect_s=20, stall_s=20, settle_s=0.05)
SLOW = StreamLimits(connect_s=20, stall_s=20, settle_s=1000)
IMPATIENT = StreamLimits(connect_s=20, stall_s=0.3, settle_s=1000)
KINDS = ["tcp", "tls", "unix"]


class Told:
    """What the shipper told."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def __call__(self, what: dict[str, Any]) -> None:
        self.all.append(what)

    def why(self) -> list[str]:
        return [one["why"] for one in self.all if "why" in one]


class Setting:
    """A log, a cursor, and a server."""

    def __init__(self, folder: Path, server: SyslogServer, ca: Path | None) -> None:
        self.log = folder / "log"
        self.cursor = folder / "shipping" / "cursor.json"
        self.server = server
        self.ca = ca
        self.told = Told()

    @contextmanager
    def shipper(self, limits: StreamLimits = QUICK) -> Iterator[tuple[Shipper, CursorFile]]:
        address = parse_address(self.server.to)
        assert isinstance(address, SyslogAddress)
        where = SyslogDestination(address, syslog_framing(as_jsonl), ca=self.ca, limits=limits)
        with open_cursor(self.cursor, self.server.to) as cursor:
            yield (
                Shipper(
                    self.log,
                    where,
                    cursor,
                    tell=self.told,
                    backoff=Backoff(lambda: 0, first_s=0.01),
                    poll_s=0.01,
                    finish_s=5,
                ),
                cursor,
            )

    @asynccontextmanager
    async def shipping(self, limits: StreamLimits = QUICK) -> AsyncIterator[CursorFile]:
        """While the block runs; then it is told to end."""
        with self.shipper(limits) as (shipper, cursor):
            with trio.fail_after(LIMIT_S):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(shipper.run)
                    yield cursor
                    nursery.cancel_scope.cancel()

    def kept(self) -> int:
        """The number in the cursor file."""
        number: int = json.loads(self.cursor.read_bytes())["sequence"]
        return number


@asynccontextmanager
async def setting(kind: str, folder: Path, server: SyslogServer | None = None) -> AsyncIterator[Setting]:
    context, ca = certificate(folder) if kind == "tls" else (None, None)
    async with syslog_server(kind, folder, server, context) as running:
        yield Setting(folder, running, ca)


@pytest.mark.parametrize("kind", KINDS)
async def test_all_that_is_there_and_all_that_comes(tmp_path: Path, kind: str) -> None:
    async with setting(kind, tmp_path) as at, durable_audit_log(at.log) as log:
        for number in range(300):
            log.note(denied(str(number)))
        await log.flush()
        async with at.shipping(SLOW):
            await at.server.until(300)
            log.note(denied("later"))
            await log.flush()
            await at.server.until(301)
            assert not at.cursor.exists()  # nothing is believed so soon
        # An end in order is an answer: what was read has been taken.
        assert at.server.sequences == list(range(1, 302))
        assert (at.kept(), at.server.ended_in_order) == (301, 1)
        assert [message.text for message in at.server.messages] == [
            as_jsonl(one) for one in read_records(at.log)
        ]
        log.note(denied("after a restart"))
        await log.flush()
        async with at.shipping():
            await at.server.until(302)
        assert at.server.sequences == list(range(1, 303))
        assert at.kept() == 302


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_crashes_now_and_then(tmp_path: Path, kind: str) -> None:
    await fill(tmp_path / "log", 300)
    server = SyslogServer(leaves_after=[1, 40, 100, 7])
    async with setting(kind, tmp_path, server) as at:
        async with at.shipping(SLOW):
            await server.until(300)
        seen = server.sequences
        assert set(seen) == set(range(1, 301))
        # Each connection goes on at or before the place where the last one broke, without a gap.
        assert all(later <= before + 1 for before, later in pairwise(seen))
        assert server.connections == 5
        assert at.kept() == 300
        assert set(at.told.why()) <= {"the connection broke", "the other side closed the connection"}


@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_a_server_that_does_not_read_gets_it_again(tmp_path: Path, kind: str) -> None:
    await fill(tmp_path / "log", 600)
    server = SyslogServer(reads_from=2)
    async with setting(kind, tmp_path, server) as at:
        async with at.shipping(IMPATIENT):
            await server.connected(2)
            assert at.told.why()[0] == "the other side took nothing for 0.3 s"
            assert not at.cursor.exists()
            server.resets.set()
            await server.until(600)
        assert set(server.sequences) == set(range(1, 601))


async def test_what_a_servers_kernel_took_and_its_process_never_read_is_sent_again(tmp_path: Path) -> None:
    await fill(tmp_path / "log", 2)  # fits into the buffers: TCP has confirmed all of it
    server = SyslogServer(reads_from=1)
    async with setting("tcp", tmp_path, server) as at:
        async with at.shipping(StreamLimits(settle_s=1000)):
            await server.unread.wait()
            server.resets.set()
            await server.until(2)
        assert server.sequences == [1, 2]
        assert server.connections == 2


async def test_an_end_that_the_other_side_does_not_answer_counts_for_nothing(tmp_path: Path) -> None:
    await fill(tmp_path / "log", 2)
    server = SyslogServer(reads_from=1)
    async with setting("unix", tmp_path, server) as at:
        with at.shipper(SLOW) as (shipper, _):
            shipper._finish_s = 0.05
            async with trio.open_nursery() as nursery:
                nursery.start_soon(shipper.run)
                await server.connected(1)
                nursery.cancel_scope.cancel()
        assert not at.cursor.exists()
        async with at.shipping():
            await server.until(2)
        assert server.sequences == [1, 2]


class CancelAt(trio.abc.Instrument):
    """Cancels `scope` after so many steps of any task."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self.scope = scope
        self.left = step

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if not self.left:
            self.scope.cancel()


@pytest.mark.parametrize(
    ("kind", "steps"), [("unix", range(1, 90, 1 if LARGE else 8)), ("tls", range(1, 150, 1 if LARGE else 21))]
)
async def test_cancelled_at_every_step(tmp_path: Path, kind: str, steps: range) -> None:
    """What the cursor says was taken had been read by then, and the next run sends the rest."""
    await fill(tmp_path / "log", 5)
    kept = set[int]()
    async with setting(kind, tmp_path) as at:
        for step in steps:
            at.cursor = tmp_path / "shipping" / str(step)
            at.server.messages.clear()
            with at.shipper() as (shipper, _), trio.CancelScope() as scope, trio.fail_after(LIMIT_S):
                instrument = CancelAt(scope, step)
                trio.lowlevel.add_instrument(instrument)
                try:
                    await shipper.run()
                finally:
                    trio.lowlevel.remove_instrument(instrument)
            await at.server.all_gone()
            taken = at.kept() if at.cursor.exists() else 0
            assert taken <= max(at.server.sequences, default=0)
            if taken < 5:
                async with at.shipping():
                    await at.server.until(5)
            kept.add(taken)
            assert set(at.server.sequences) == {1, 2, 3, 4, 5}
    assert kept == {0, 5}
    assert at.told.why() == []


async def test_a_connection_that_lives_on_settles_what_was_sent(tmp_path: Path) -> None:
    await fill(tmp_path / "log", 5)
    saved = trio.Event()
    async with setting("tcp", tmp_path) as at, at.shipping() as cursor:
        save = cursor.save

        def noticed(head: Head) -> None:
            save(head)
            trio.from_thread.run_sync(saved.set)

        cursor.save = noticed  # type: ignore[method-assign]
        await saved.wait()
        assert at.kept() == 5


async def test_tls_is_verified(tmp_path: Path) -> None:
    await fill(tmp_path / "log", 3)
    (tmp_path / "other").mkdir()
    async with setting("tls", tmp_path) as at:
        own, at.ca = at.ca, certificate(tmp_path / "other")[1]
        async with at.shipping():
            while at.server.bad_handshakes < 2:
                await at.server.connected(at.server.connections + 1)
        at.ca = None  # the system's trust
        async with at.shipping():
            while at.server.bad_handshakes < 3:
                await at.server.connected(at.server.connections + 1)
        assert all(why.startswith("the server's certificate is not accepted: ") for why in at.told.why())
        at.ca = own
        port = at.server.to.rpartition(":")[2]
        at.server.to = f"tls://localhost:{port}"  # another name than the certificate's
        at.cursor = tmp_path / "shipping" / "second.json"
        async with at.shipping():
            while at.server.bad_handshakes < 4:
                await at.server.connected(at.server.connections + 1)
        assert "localhost" in at.told.why()[-1]
        assert at.server.messages == []


class Deaf:
    """Implements `Destination`: refuses every connection."""

    settle_s = 0.0

    def __init__(self) -> None:
        self.tries: list[float] = []

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        self.tries.append(trio.current_time())
        if len(self.tries) == 12:
            raise ConfigurationError("enough")
        raise DeliveryFailed("deaf")
        yield


async def test_tries_become_rarer(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    deaf, told = Deaf(), Told()
    with open_cursor(tmp_path / "cursor" / "c", "x") as cursor:
        shipper = Shipper(tmp_path, deaf, cursor, tell=told, backoff=Backoff(lambda: 0))
        with pytest.raises(ConfigurationError, match="enough"):
            await shipper.run()
    waits = [after - before for before, after in pairwise(deaf.tries)]
    assert waits == pytest.approx([0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60])
    assert told.all[0] == {"shipping": "waiting", "why": "deaf", "seconds": 0.5}
    backoff = Backoff(lambda: 0.5)
    assert (backoff.take(), backoff.take()) == (0.375, 0.75)
    backoff.reset()
    assert backoff.take() == 0.375


def test_settling() -> None:
    heads = [Head(number, "0" * 96) for number in range(2000)]
    settling = Settling(5)
    for number, head in enumerate(heads[:1000]):
        settling.handed_over(head)
        settling.sent(head, number / 100)  # a hundred a second, for ten seconds
    assert len(settling._waiting) <= 42
    assert settling.settled(4.99) is None
    now = settling.settled(9.99)
    assert now is not None
    assert 470 <= now.sequence <= 499  # sent five seconds ago, or a quarter more
    assert settling.settled(9.99) is None
    assert settling.everything() == heads[999]
    assert settling.everything() is None
    settling.handed_over(heads[1000])
    settling.sent(heads[1000], 20)
    settling.forget()
    assert settling.everything() is None
    assert settling.settled(99) is None
    at_once = Settling(0)
    at_once.sent(heads[1], 1)
    assert at_once.settled(1) == heads[1]


async def test_records_dropped_before_they_were_shipped(tmp_path: Path) -> None:
    rules = LogRules(segment_bytes=2000, retention=Retention(segments=1))
    await run(tmp_path / "log", 30, rules=rules)
    await run(tmp_path / "log", 3, rules=rules)
    first = next(read_records(tmp_path / "log")).sequence
    assert first > 2
    async with setting("unix", tmp_path) as at:
        with open_cursor(at.cursor, at.server.to) as cursor:
            cursor.save(Head(1, "1" * 96))
        last = list(read_records(at.log))[-1].sequence
        async with at.shipping():
            await at.server.until(last)
        assert at.server.sequences == list(range(first, last + 1))
        assert [one["shipping"] for one in at.told.all].count("records-dropped") == 1
        assert f"records 2 to {first - 1} were dropped" in at.told.why()[0]
        assert at.kept() == last


async def test_what_cannot_be_believed_is_not_shipped(tmp_path: Path) -> None:
    await fill(tmp_path / "log", 9)
    path = segments(tmp_path / "log")[0]
    path.write_bytes(path.read_bytes().replace(b'"r5"', b'"r6"'))
    async with setting("unix", tmp_path) as at:
        with (
            at.shipper() as (shipper, _),
            pytest.raises(AuditLogDamaged, match="line 6"),
            trio.fail_after(LIMIT_S),
        ):
            await shipper.run()
        assert max(at.server.sequences, default=0) <= 5
        with open_cursor(at.cursor, at.server.to) as cursor:
            cursor.save(Head(3, "1" * 96))
        with at.shipper() as (shipper, _), trio.fail_after(LIMIT_S), pytest.raises(AuditLogDamaged):
            await shipper.run()


async def test_an_incomplete_line_waits(tmp_path: Path) -> None:
    await fill(tmp_path / "log", 3)
    path, whole = segments(tmp_path / "log")[0], lines(tmp_path / "log")
    path.write_bytes(b"".join(whole[:2]) + whole[2][:40])
    async with setting("unix", tmp_path) as at, at.shipping():
        await at.server.until(2)
        path.write_bytes(b"".join(whole))
        await at.server.until(3)
        assert at.server.sequences == [1, 2, 3]
