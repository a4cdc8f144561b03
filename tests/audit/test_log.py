"""The running log: order, durability, tickets, cancellation, how often it syncs."""

import stat
import threading
from pathlib import Path

import pytest
import trio
import trio.testing
from tabwarden.errors import AuditUnavailable, ConfigurationError
from tabwarden.model import AgentEvent, LifecycleEvent
from tabwarden.ports import AuditSink
from tabwarden_adapters.audit import (
    DurableAuditLog,
    LogRules,
    PosixFiles,
    durable_audit_log,
    open_audit_log,
    read_records,
    verify_log,
)
from tabwarden_adapters.audit.log import INLINE_SYNC_S
from tabwarden_adapters.audit.statistics import Meter

from tests.audit.support import FaultyFiles, authorized, completed, denied, lines, segments


async def call(log: AuditSink, request_id: str) -> None:
    ticket = log.admit(authorized(request_id))
    await ticket.durable()
    ticket.settle(completed(request_id))


def requests(directory: Path) -> list[tuple[str, str]]:
    found = []
    for record in read_records(directory):
        assert isinstance(record.event, AgentEvent)
        found.append((record.event.request_id, record.event.outcome.value))
    return found


async def test_records_stand_in_the_order_of_the_calls(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path / "log") as log:
        first = log.admit(authorized("a"))
        log.note(denied("b"))
        second = log.admit(authorized("c"))
        await second.durable()
        second.settle(completed("c"))
        first.settle(completed("a"))
        log.note(LifecycleEvent(event="closed", wall_ms=1, boot_ms=1))
    records = list(read_records(tmp_path / "log"))
    assert [record.sequence for record in records] == [1, 2, 3, 4, 5, 6]
    assert [record.event for record in records] == [
        authorized("a"),
        denied("b"),
        authorized("c"),
        completed("c"),
        completed("a"),
        LifecycleEvent(event="closed", wall_ms=1, boot_ms=1),
    ]
    verification = verify_log(tmp_path / "log")
    assert verification.ok
    assert verification.head == log.head


async def test_files_are_ours_alone(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path / "new" / "log") as log:
        await call(log, "r")
    for path in (tmp_path / "new", tmp_path / "new" / "log"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (tmp_path / "new" / "log").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_durable_means_written_and_synced(tmp_path: Path) -> None:
    files = FaultyFiles()
    async with durable_audit_log(tmp_path, files=files) as log:
        before = files.syncs
        ticket = log.admit(authorized())
        assert lines(tmp_path) == []
        await ticket.durable()
        assert files.syncs == before + 1
        assert log.durable_sequence == 1
        assert len(lines(tmp_path)) == 1
        await ticket.durable()
        assert files.syncs == before + 1


async def test_a_ticket_is_settled_exactly_once(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path) as log:
        ticket = log.admit(authorized("a"))
        with pytest.raises(ValueError, match="not a terminal outcome"):
            ticket.settle(authorized("a"))
        with pytest.raises(ValueError, match="another request"):
            ticket.settle(completed("b"))
        ticket.settle(completed("a"))
        with pytest.raises(RuntimeError, match="settled before"):
            ticket.settle(completed("a"))
    assert requests(tmp_path) == [("a", "authorized"), ("a", "completed")]


async def test_admit_and_note_take_their_own_kind_only(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path) as log:
        with pytest.raises(ValueError, match="only an authorization"):
            log.admit(denied())
        with pytest.raises(ValueError, match="needs a ticket"):
            log.note(authorized())
    assert lines(tmp_path) == []


async def test_continues_after_reopening(tmp_path: Path) -> None:
    for turn in range(3):
        async with durable_audit_log(tmp_path) as log:
            assert log.head.sequence == 2 * turn
            await call(log, str(turn))
    assert len(requests(tmp_path)) == 6
    assert verify_log(tmp_path).ok


async def test_what_nobody_waits_for_is_committed_soon(tmp_path: Path) -> None:
    synced = trio.Event()
    token = trio.lowlevel.current_trio_token()
    files = FaultyFiles()
    async with durable_audit_log(tmp_path, files=files) as log:
        files.before_sync = lambda: token.run_sync_soon(synced.set)
        ticket = log.admit(authorized())
        ticket.settle(completed())
        log.note(denied())
        with trio.fail_after(10):
            await synced.wait()
        assert len(lines(tmp_path)) == 3


async def test_flush_waits_for_everything_so_far(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path, rules=LogRules(commit_delay_s=1000)) as log:
        await log.flush()
        for _ in range(3):
            log.note(denied())
        await log.flush()
        assert log.durable_sequence == 3
        assert len(lines(tmp_path)) == 3


async def test_closing_writes_everything_and_ends_the_log(tmp_path: Path, nursery: trio.Nursery) -> None:
    log = await open_audit_log(nursery, tmp_path, rules=LogRules(commit_delay_s=1000))
    ticket = log.admit(authorized())
    log.note(denied())
    await log.aclose()
    await log.aclose()
    assert len(lines(tmp_path)) == 2
    for use in (
        lambda: log.admit(authorized()),
        lambda: log.note(denied()),
        lambda: ticket.settle(completed()),
    ):
        with pytest.raises(AuditUnavailable, match="closed"):
            use()
    # The lock and the room are given back.
    again = await open_audit_log(nursery, tmp_path)
    await again.aclose()
    size = segments(tmp_path)[0].stat()
    assert size.st_blocks * 512 < size.st_size + 65536


async def test_closing_under_cancellation_still_writes(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with durable_audit_log(tmp_path, rules=LogRules(commit_delay_s=1000)) as log:
            log.note(denied())
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert len(lines(tmp_path)) == 1


async def test_an_error_in_the_block_leaves_it_bare(tmp_path: Path) -> None:
    async def block() -> None:
        async with durable_audit_log(tmp_path) as log:
            log.note(denied())
            raise KeyError

    with pytest.raises(KeyError):
        await block()
    assert len(lines(tmp_path)) == 1


async def test_outcomes_settled_while_the_nursery_unwinds_are_kept(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        log = await open_audit_log(nursery, tmp_path)
        ticket = log.admit(authorized())
        await ticket.durable()
        nursery.cancel_scope.cancel()
    ticket.settle(completed())
    log.note(denied())
    assert len(lines(tmp_path)) == 3
    assert log.durable_sequence == 3
    await log.aclose()
    assert verify_log(tmp_path).records == 3


async def test_two_brokers_never_write_one_log(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path) as log:
        with pytest.raises(ConfigurationError, match="in use by another broker"):
            async with durable_audit_log(tmp_path):
                pass
        await call(log, "r")
    async with durable_audit_log(tmp_path):
        pass


async def test_segments_are_rotated_and_stay_one_chain(tmp_path: Path) -> None:
    files = FaultyFiles()
    async with durable_audit_log(tmp_path, rules=LogRules(segment_bytes=3000), files=files) as log:
        for number in range(40):
            await call(log, str(number))
    paths = segments(tmp_path)
    assert len(paths) > 5
    assert files.directory_syncs == len(paths)  # each name is durable before its first record is said to be
    assert all(path.stat().st_size <= 3000 for path in paths)
    verification = verify_log(tmp_path)
    assert verification.ok
    assert verification.records == 80
    async with durable_audit_log(tmp_path, rules=LogRules(segment_bytes=3000)) as log:
        await call(log, "last")
    assert requests(tmp_path)[-1] == ("last", "completed")
    assert verify_log(tmp_path).records == 82


async def test_a_reader_follows_a_log_that_is_written(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path) as log:
        for number in range(3):
            await call(log, str(number))
            assert len(list(read_records(tmp_path))) == 2 * number + 1
            assert verify_log(tmp_path).ok


class TestBatches:
    async def test_one_caller_is_served_without_a_thread(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        async with durable_audit_log(tmp_path, files=files, rules=LogRules(commit_delay_s=1000)) as log:
            files.sync_threads.clear()
            before = log.statistics.fdatasyncs
            log._meter.average_sync_s = 0.0  # as on a quick disk, whatever this one is
            for number in range(10):
                await call(log, str(number))
                log._meter.average_sync_s = 0.0
            statistics = log.statistics
            assert statistics.fdatasyncs - before == 10
            assert statistics.inline_batches == 10
            assert statistics.records == 20
            assert files.sync_threads == {threading.current_thread().name}

    async def test_a_slow_disk_never_holds_up_the_loop(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        async with durable_audit_log(tmp_path, files=files, rules=LogRules(commit_delay_s=1000)) as log:
            files.sync_threads.clear()
            for number in range(10):
                log._meter.average_sync_s = 0.0011
                await call(log, str(number))
            assert log.statistics.inline_batches == 0
            assert threading.current_thread().name not in files.sync_threads

    async def test_sixty_four_callers_share_syncs(self, tmp_path: Path) -> None:
        callers, turns = 64, 10

        async def caller(log: DurableAuditLog, name: int) -> None:
            for turn in range(turns):
                await call(log, f"{name}-{turn}")

        async with durable_audit_log(tmp_path) as log:
            async with trio.open_nursery() as nursery:
                for name in range(callers):
                    nursery.start_soon(caller, log, name)
            statistics = log.statistics
        assert statistics.fdatasyncs <= 0.35 * callers * turns
        found = requests(tmp_path)
        assert len(found) == len(set(found)) == 2 * callers * turns
        for name in range(callers):
            mine = [item for item in found if item[0].startswith(f"{name}-")]
            assert mine == [
                (f"{name}-{turn}", outcome)
                for turn in range(turns)
                for outcome in ("authorized", "completed")
            ]

    async def test_the_next_batch_gathers_while_one_is_written(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        entered, go_on = trio.Event(), threading.Event()
        token = trio.lowlevel.current_trio_token()

        def hold() -> None:
            token.run_sync_soon(entered.set)
            go_on.wait(10)

        async with durable_audit_log(tmp_path, files=files, rules=LogRules(commit_delay_s=1000)) as log:
            log._meter.average_sync_s = 1.0
            files.before_sync = hold
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call, log, "first")
                await entered.wait()
                files.before_sync = lambda: None
                for number in range(20):
                    nursery.start_soon(call, log, str(number))
                await trio.testing.wait_all_tasks_blocked()
                assert log.durable_sequence == 0
                assert log.head.sequence == 21
                before = log.statistics.batches
                go_on.set()
            assert log.statistics.batches == before + 1

    async def test_cancelling_durable_hurts_nobody(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        entered, go_on = trio.Event(), threading.Event()
        token = trio.lowlevel.current_trio_token()

        def hold() -> None:
            token.run_sync_soon(entered.set)
            go_on.wait(10)

        async with durable_audit_log(tmp_path, files=files) as log:
            log._meter.average_sync_s = 1.0
            files.before_sync = hold
            scopes = [trio.CancelScope() for _ in range(4)]
            ended: list[str] = []

            async def caller(name: int) -> None:
                ticket = log.admit(authorized(str(name)))
                with scopes[name]:
                    await ticket.durable()
                ended.append(f"{name} {'cancelled' if scopes[name].cancelled_caught else 'durable'}")
                ticket.settle(completed(str(name)))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(caller, 0)  # it starts the batch that is held
                await entered.wait()
                for name in (1, 2, 3):
                    nursery.start_soon(caller, name)
                await trio.testing.wait_all_tasks_blocked()
                scopes[0].cancel()
                scopes[2].cancel()
                await trio.testing.wait_all_tasks_blocked()
                assert sorted(ended) == ["0 cancelled", "2 cancelled"]
                files.before_sync = lambda: None
                go_on.set()
            assert sorted(ended) == ["0 cancelled", "1 durable", "2 cancelled", "3 durable"]
        assert len(requests(tmp_path)) == 8
        assert verify_log(tmp_path).ok

    async def test_cancelled_before_it_waits(self, tmp_path: Path) -> None:
        async with durable_audit_log(tmp_path, rules=LogRules(commit_delay_s=1000)) as log:
            ticket = log.admit(authorized())
            with trio.CancelScope() as scope:
                scope.cancel()
                await ticket.durable()
            assert scope.cancelled_caught
            await call(log, "next")
            assert log.durable_sequence >= 2
            ticket.settle(completed())
        assert verify_log(tmp_path).records == 4


async def test_no_thread_to_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    async with durable_audit_log(tmp_path, files=PosixFiles()) as log:
        log._meter.average_sync_s = 1.0
        monkeypatch.setattr(trio.lowlevel, "start_thread_soon", no_thread)
        await call(log, "r")
        assert log.durable_sequence == 1
        monkeypatch.undo()


def test_one_slow_sync_changes_nothing_several_do() -> None:
    meter = Meter()
    for _ in range(20):
        meter.synced(0.0001)
    meter.synced(5.0)
    assert meter.last_sync_s == 5.0
    assert meter.average_sync_s < INLINE_SYNC_S
    meter.synced(5.0)
    meter.synced(5.0)
    assert meter.average_sync_s > INLINE_SYNC_S


def test_the_first_slow_sync_is_believed() -> None:
    meter = Meter()
    meter.synced(0.05)
    assert meter.average_sync_s > INLINE_SYNC_S
