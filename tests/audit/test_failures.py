"""Disks that are full, refuse, or do not answer; programs that meddle with the files."""

import contextlib
import errno
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio
import trio.testing
from tabwarden.errors import AuditUnavailable, HostReason
from tabwarden_adapters.audit import (
    AuditTicket,
    DurableAuditLog,
    LogRules,
    durable_audit_log,
    open_audit_log,
    verify_log,
)
from tabwarden_adapters.audit import log as log_module

from tests.audit.signed import new_signer
from tests.audit.support import FaultyFiles, authorized, completed, denied, fill, lines, segments


def fail_with(code: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(code, os.strerror(code))

    return fail


async def break_by(log: DurableAuditLog) -> None:
    with pytest.raises(AuditUnavailable):
        await log.flush()


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("stage", ["before_write", "before_sync"])
async def test_a_failed_write_or_sync_breaks_the_log_for_good(
    tmp_path: Path, stage: str, inline: bool
) -> None:
    files, told = FaultyFiles(), list[HostReason]()
    await fill(tmp_path, 2)
    async with durable_audit_log(tmp_path, files=files, on_failure=told.append) as log:
        log._meter.average_sync_s = 0.0 if inline else 1.0
        early = log.admit(authorized("early"))
        await early.durable()
        setattr(files, stage, fail_with(errno.EIO))
        late = log.admit(authorized("late"))
        with pytest.raises(AuditUnavailable, match=r"failed \(EIO\)"):
            await late.durable()
        setattr(files, stage, lambda: None)  # the disk works again; we do not believe it
        await early.durable()
        for use in (
            lambda: log.admit(authorized()),
            lambda: log.note(denied()),
            lambda: early.settle(completed("early")),
            lambda: late.settle(completed("late")),
        ):
            with pytest.raises(AuditUnavailable, match="until it is opened anew"):
                use()
        with pytest.raises(AuditUnavailable):
            await late.durable()
        await break_by(log)
        assert told == [HostReason.AUDIT_UNAVAILABLE]
        assert log.failure is not None
    assert told == [HostReason.AUDIT_UNAVAILABLE]
    # What was acknowledged is there; what was not may be, when only the sync failed.
    async with durable_audit_log(tmp_path) as log:
        assert log.head.sequence == (3 if stage == "before_write" else 4)
        ticket = log.admit(authorized("again"))
        await ticket.durable()
        ticket.settle(completed("again"))
    assert verify_log(tmp_path).ok


async def test_everybody_who_waits_is_told(tmp_path: Path) -> None:
    files = FaultyFiles()
    failures = 0
    async with durable_audit_log(tmp_path, files=files) as log:
        files.before_sync = fail_with(errno.EIO)

        async def caller(name: int) -> None:
            nonlocal failures
            with pytest.raises(AuditUnavailable):
                await log.admit(authorized(str(name))).durable()
            failures += 1

        async with trio.open_nursery() as nursery:
            for name in range(10):
                nursery.start_soon(caller, name)
    assert failures == 10


async def test_those_who_gather_behind_a_batch_that_fails_are_told(tmp_path: Path) -> None:
    files = FaultyFiles()
    entered, go_on = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def hold_and_fail() -> None:
        token.run_sync_soon(entered.set)
        go_on.wait(10)
        raise OSError(errno.EIO, "Input/output error")

    async def caller(log: DurableAuditLog, name: str) -> None:
        with pytest.raises(AuditUnavailable):
            await log.admit(authorized(name)).durable()

    async with durable_audit_log(tmp_path, files=files) as log:
        log._meter.average_sync_s = 1.0
        files.before_sync = hold_and_fail
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(caller, log, "first")
                await entered.wait()
                nursery.start_soon(caller, log, "second")
                await trio.testing.wait_all_tasks_blocked()
                go_on.set()


async def test_an_observer_that_raises_harms_nothing(tmp_path: Path) -> None:
    def observer(reason: HostReason) -> None:
        raise RuntimeError(reason)

    files = FaultyFiles()
    async with durable_audit_log(tmp_path, files=files, on_failure=observer) as log:
        files.before_write = fail_with(errno.EROFS)
        log.note(denied())
        await break_by(log)


async def test_short_writes_are_continued(tmp_path: Path) -> None:
    files = FaultyFiles(write_takes=7)
    async with durable_audit_log(tmp_path, files=files) as log:
        for _ in range(3):
            log.note(denied())
        await log.flush()
    assert verify_log(tmp_path).records == 3


@pytest.mark.parametrize("first", [0, 7, 700])
async def test_half_a_batch_is_cut_off_at_once(tmp_path: Path, first: int) -> None:
    files = FaultyFiles()
    async with durable_audit_log(tmp_path, files=files, rules=LogRules(commit_delay_s=1000)) as log:
        log.note(denied("kept"))
        await log.flush()
        size = segments(tmp_path)[0].stat().st_size
        turns = iter([first, 0])

        def shrink() -> None:
            files.write_takes = next(turns, 0)

        files.before_write = shrink
        for _ in range(5):
            log.note(denied("lost"))
        await break_by(log)
        assert segments(tmp_path)[0].stat().st_size == size
    assert verify_log(tmp_path).records == 1


async def test_a_fault_in_closing_is_raised(tmp_path: Path, nursery: trio.Nursery) -> None:
    files = FaultyFiles()
    log = await open_audit_log(nursery, tmp_path, files=files, rules=LogRules(commit_delay_s=1000))
    log.note(denied())
    files.before_sync = fail_with(errno.EIO)
    with pytest.raises(AuditUnavailable, match="syncing failed"):
        await log.aclose()
    await log.aclose()
    again = await open_audit_log(nursery, tmp_path)  # the lock was given back all the same
    await again.aclose()


async def test_a_disk_that_does_not_answer_cannot_hold_up_closing(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "CLOSE_S", 0.05)
    files, told = FaultyFiles(), list[HostReason]()
    entered, go_on, ended = trio.Event(), threading.Event(), trio.Event()
    token = trio.lowlevel.current_trio_token()

    def hang() -> None:
        token.run_sync_soon(entered.set)
        go_on.wait(10)
        token.run_sync_soon(ended.set)

    log = await open_audit_log(nursery, tmp_path, files=files, on_failure=told.append)
    log._meter.average_sync_s = 1.0
    files.before_sync = hang
    ticket = log.admit(authorized())
    nursery.start_soon(wait_in_vain, ticket.durable)
    await entered.wait()
    with pytest.raises(AuditUnavailable, match="closing took too long"):
        await log.aclose()
    assert told == [HostReason.AUDIT_UNAVAILABLE]
    go_on.set()
    await ended.wait()
    while log._in_flight is not None:
        await trio.lowlevel.checkpoint()
    again = await open_audit_log(nursery, tmp_path)
    assert again.head.sequence == 1
    await again.aclose()


async def wait_in_vain(durable: Callable[[], object]) -> None:
    with contextlib.suppress(AuditUnavailable):
        await durable()  # type: ignore[misc]


class TestNewSegments:
    """One that cannot be begun leaves no empty file among the records that follow in the old one."""

    SMALL = LogRules(segment_bytes=1500)

    async def goes_on(self, directory: Path, records: int) -> None:
        async with durable_audit_log(directory, rules=self.SMALL) as log:
            assert log.head.sequence == records
            for _ in range(9):
                log.note(denied())
                await log.flush()
        assert verify_log(directory).records == records + 9

    async def test_one_that_cannot_be_looked_at_after_it_was_made(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files = FaultyFiles()
        real = files.open_segment

        def open_and_fail(directory: int, name: str, *, create: bool) -> int:
            os.close(real(directory, name, create=create))
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        async with durable_audit_log(tmp_path, files=files, rules=self.SMALL) as log:
            log.note(denied())
            await log.flush()
            monkeypatch.setattr(files, "open_segment", open_and_fail)
            for _ in range(9):
                log.note(denied())
                await log.flush()
            assert len(segments(tmp_path)) == 1
            monkeypatch.undo()
            log.note(denied())
            await log.flush()
            assert len(segments(tmp_path)) == 2
        await self.goes_on(tmp_path, 11)

    async def test_one_that_cannot_be_taken_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        files = FaultyFiles()
        async with durable_audit_log(tmp_path, files=files, rules=self.SMALL) as log:
            log.note(denied())
            await log.flush()
            with monkeypatch.context() as patch:
                patch.setattr(files, "allocate", lambda *_: refuse() if files.syncs > 3 else None)
                patch.setattr(os, "unlink", refuse)
                await self.until_broken(log)
        assert len(segments(tmp_path)) == 2
        found = verify_log(tmp_path)
        assert found.ok
        await self.goes_on(tmp_path, found.records)

    async def until_broken(self, log: DurableAuditLog) -> None:
        for _ in range(20):
            with contextlib.suppress(AuditUnavailable):
                log.note(denied())
                await log.flush()
        assert log.failure is not None
        assert "could not be removed either" in log.failure

    async def test_a_file_that_stands_there_already(self, tmp_path: Path) -> None:
        async with durable_audit_log(tmp_path, rules=self.SMALL) as log:
            log.note(denied())
            await log.flush()
            for number in range(2, 9):
                (tmp_path / f"audit-{number:016d}.jsonl").touch(mode=0o600)
            for _ in range(2):
                log.note(denied())
                with contextlib.suppress(AuditUnavailable):
                    await log.flush()
            assert log.failure is not None
            assert "a file is where the next segment belongs" in log.failure

    async def test_closing_the_old_one_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.close

        def close(descriptor: int) -> None:
            real(descriptor)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        async with durable_audit_log(tmp_path, rules=self.SMALL) as log:
            for number in range(9):
                log.note(denied())
                if number == 4:
                    monkeypatch.setattr(os, "close", close)
                await log.flush()
            monkeypatch.undo()
        await self.goes_on(tmp_path, 9)


async def test_a_write_that_was_not_done_breaks_the_log(tmp_path: Path) -> None:
    """A file system that tells lies: the record is not acknowledged."""
    files = FaultyFiles()
    async with durable_audit_log(tmp_path, files=files) as log:
        log.note(denied())
        await log.flush()
        files.lies = 7
        log.note(denied())
        with pytest.raises(AuditUnavailable, match="something else than was written"):
            await log.flush()
    files.lies = 0
    async with durable_audit_log(tmp_path) as log:
        assert log.head.sequence == 1


class TestMeddling:
    async def meddled(self, tmp_path: Path, meddle: Callable[[Path], object]) -> None:
        async with durable_audit_log(tmp_path) as log:
            log.note(denied())
            await log.flush()
            meddle(segments(tmp_path)[0])
            log.note(denied())
            with pytest.raises(AuditUnavailable, match="changed or removed by another program"):
                await log.flush()

    async def test_removed(self, tmp_path: Path) -> None:
        await self.meddled(tmp_path, Path.unlink)

    async def test_cut(self, tmp_path: Path) -> None:
        await self.meddled(tmp_path, lambda path: os.truncate(path, 10))

    async def test_appended_to(self, tmp_path: Path) -> None:
        def append(path: Path) -> None:
            with path.open("ab") as stream:
                stream.write(b"x")

        await self.meddled(tmp_path, append)

    async def test_given_another_name(self, tmp_path: Path) -> None:
        await self.meddled(tmp_path, lambda path: path.with_name("other").hardlink_to(path))


class TestDiskFull:
    """No room shows when an action asks to begin, never when it has ended."""

    async def fill_up(self, log: DurableAuditLog) -> int:
        """Admit until there is no room, then settle all. Returns how many were admitted."""
        tickets: list[AuditTicket] = []

        async def admit_on() -> None:
            while True:
                tickets.append(log.admit(authorized(str(len(tickets)))))
                await tickets[-1].durable()

        with pytest.raises(AuditUnavailable, match="No space left"):
            await admit_on()
        assert log.trouble == "no room for the record: No space left on device"
        for number, ticket in enumerate(tickets):
            ticket.settle(completed(str(number)))
        await log.flush()
        assert log.failure is None
        return len(tickets)

    async def test_with_little_room(self, tmp_path: Path) -> None:
        files = FaultyFiles(room=100_000)
        async with durable_audit_log(tmp_path, files=files) as log:
            admitted = await self.fill_up(log)
            assert 15 < admitted < 30
            # Each ticket gave back what its outcome did not need.
            again = await self.fill_up(log)
            assert again > 0
            files.room = None
            log.admit(authorized("x")).settle(completed("x"))
        assert verify_log(tmp_path).records == 2 * (admitted + again + 1)

    async def test_a_note_needs_room_too(self, tmp_path: Path) -> None:
        async with durable_audit_log(tmp_path, files=FaultyFiles(room=0)) as log:
            with pytest.raises(AuditUnavailable, match="No space left"):
                log.note(denied())
            assert log.head.sequence == 0

    async def test_no_room_for_a_new_segment_keeps_the_old_one(self, tmp_path: Path) -> None:
        files = FaultyFiles(room=100_000)
        async with durable_audit_log(tmp_path, files=files, rules=LogRules(segment_bytes=2000)) as log:
            tickets = [log.admit(authorized(str(number))) for number in range(10)]
            files.room = 0
            for number, ticket in enumerate(tickets):
                ticket.settle(completed(str(number)))
                await log.flush()
            assert len(segments(tmp_path)) == 1
            files.room = None
            log.note(denied())
            await log.flush()
            assert len(segments(tmp_path)) == 2
        assert verify_log(tmp_path).records == 21

    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[tuple[Path, FaultyFiles]]:
        """A file system of 64 KiB; where none may be mounted, one that says it is."""
        disk = tmp_path / "disk"
        disk.mkdir(mode=0o700)
        mount = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(disk)],
            capture_output=True,
            check=False,
        )
        real = mount.returncode == 0
        yield disk, FaultyFiles(room=None if real else 64 * 1024)
        if real:
            subprocess.run(["umount", str(disk)], check=True)

    async def test_a_file_system_of_64_kib(self, small_disk: tuple[Path, FaultyFiles]) -> None:
        disk, files = small_disk
        filler = disk / "filler"
        filler.write_bytes(bytes(16_000))
        async with durable_audit_log(disk / "log", files=files) as log:
            await log.sign_with(new_signer())
            admitted = await self.fill_up(log)
            assert admitted > 3
            # A checkpoint may find no room either; records and those who wait for them do not suffer by it.
            await log._checkpoints.make()
            filler.unlink()
            if files.room is not None:
                files.room += 16_000
            ticket = log.admit(authorized("x"))
            await ticket.durable()
            ticket.settle(completed("x"))
            assert log.trouble in (None, "No space left on device")
        found = verify_log(disk / "log")
        assert found.ok, found.fault
        assert found.records >= 2 * admitted + 3
        assert len(lines(disk / "log")) == found.records
        assert found.signed == found.records

    def test_without_fallocate_free_space_is_looked_at(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        files._fallocate = None
        descriptor = os.open(tmp_path / "f", os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            files.allocate(descriptor, 0, 1)
            with pytest.raises(OSError, match="No space left"):
                files.allocate(descriptor, 0, 2**62)
            assert files.state(descriptor) == (0, 1)
        finally:
            os.close(descriptor)
