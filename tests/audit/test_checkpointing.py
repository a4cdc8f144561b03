"""When checkpoints are made, and what happens when they cannot be."""

import os
import threading
from pathlib import Path

import pytest
import trio
import trio.lowlevel
import trio.testing
from tabwarden.errors import AuditUnavailable, HostReason
from tabwarden_adapters.audit import AuditLogDamaged, LogRules, durable_audit_log, open_audit_log, verify_log
from tabwarden_adapters.audit.checkpoint_files import checkpoint_name
from tabwarden_adapters.audit.log import CLOSE_S

from tests.attacks.serving import until
from tests.audit.signed import checkpoints, new_signer, rechain
from tests.audit.support import authorized, completed, denied, fill, segments


class SlowSigner:
    """Signs when it is let. Implements `StatementSigner`."""

    def __init__(self) -> None:
        self._signer = new_signer()
        self.ed_public, self.pq_public = self._signer.ed_public, self._signer.pq_public
        self.go_on = threading.Event()
        self.go_on.set()
        self.asked = 0
        self.threads: set[str] = set()

    def sign_statement(self, purpose: str, data: bytes) -> tuple[bytes, bytes]:
        self.asked += 1
        self.threads.add(threading.current_thread().name)
        self.go_on.wait(20)
        return self._signer.sign_statement(purpose, data)


async def test_signing_never_holds_up_a_call_nor_the_loop(tmp_path: Path) -> None:
    signer = SlowSigner()
    async with durable_audit_log(tmp_path, rules=LogRules(checkpoint_records=1)) as log:
        await log.sign_with(signer)
        signer.go_on.clear()
        for number in range(20):  # the signature hangs meanwhile
            ticket = log.admit(authorized(str(number)))
            await ticket.durable()
            ticket.settle(completed(str(number)))
        await log.flush()
        await until(lambda: signer.asked == 2)
        signer.go_on.set()
    assert threading.current_thread().name not in signer.threads
    assert verify_log(tmp_path).signed == 41


async def test_by_number_of_records(tmp_path: Path) -> None:
    signer = SlowSigner()
    async with durable_audit_log(tmp_path, rules=LogRules(checkpoint_records=10)) as log:
        await log.sign_with(signer)
        for _ in range(9):
            log.note(denied())
        await log.flush()
        await trio.testing.wait_all_tasks_blocked()
        assert signer.asked == 1
        log.note(denied())
        await log.flush()
        await until(lambda: signer.asked == 2 and len(checkpoints(tmp_path)) == 1)
        assert verify_log(tmp_path).ok
    assert signer.asked == 2  # nothing new at closing


async def test_by_time(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    signer = SlowSigner()
    async with durable_audit_log(tmp_path, rules=LogRules(checkpoint_s=60)) as log:
        autojump_clock.autojump_threshold = float("inf")
        await log.sign_with(signer)
        log.note(denied())
        await log.flush()
        await trio.testing.wait_all_tasks_blocked()
        autojump_clock.jump(59)
        await trio.testing.wait_all_tasks_blocked()
        assert signer.asked == 1
        autojump_clock.jump(2)
        while signer.asked == 1:
            await trio.lowlevel.checkpoint()
        autojump_clock.jump(1000)
        await trio.testing.wait_all_tasks_blocked()
        assert signer.asked == 2  # an idle broker signs nothing


async def test_each_segment_ends_with_one_and_the_rest_is_one(tmp_path: Path) -> None:
    signer = SlowSigner()
    async with durable_audit_log(tmp_path, rules=LogRules(segment_bytes=3000)) as log:
        await log.sign_with(signer)
        for _ in range(20):
            log.note(denied())
            await log.flush()
    ends = [int(path.name[6:22]) - 1 for path in segments(tmp_path)[1:]]
    assert [int(path.name[11:27]) for path in checkpoints(tmp_path)] == [*ends, 21]


async def test_records_while_it_begins_to_sign_are_counted(tmp_path: Path) -> None:
    await fill(tmp_path, 5)
    rules = LogRules(segment_bytes=3000)
    async with durable_audit_log(tmp_path, rules=rules) as log, trio.open_nursery() as nursery:
        nursery.start_soon(log.sign_with, new_signer())
        for _ in range(30):
            log.note(denied())
            await log.flush()
    found = verify_log(tmp_path)
    assert (found.ok, found.signed, found.records) == (True, 36, 36)


async def test_it_begins_once(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path) as log:
        await log.sign_with(new_signer())
        with pytest.raises(RuntimeError, match="signed already"):
            await log.sign_with(new_signer())


class InTheWay:
    """Signs, and has something in the way of where the checkpoint goes, so that the system refuses to put it
    there. Every other error of each system call is the business of `make faults`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._signer = new_signer()
        self.ed_public, self.pq_public = self._signer.ed_public, self._signer.pq_public
        self.refusing = False

    def sign_statement(self, purpose: str, data: bytes) -> tuple[bytes, bytes]:
        # Each log here is of a few records.
        for path in (self._folder / checkpoint_name(size) for size in range(1, 10)):
            if self.refusing and not path.exists():
                path.mkdir()
            elif not self.refusing and path.is_dir():
                path.rmdir()
        return self._signer.sign_statement(purpose, data)


async def test_a_disk_that_refuses_at_first_is_an_error(tmp_path: Path) -> None:
    signer = InTheWay(tmp_path)
    signer.refusing = True
    async with durable_audit_log(tmp_path) as log:
        descriptors = len(os.listdir("/proc/self/fd"))
        with pytest.raises(AuditUnavailable, match="cannot be signed: Is a directory"):
            await log.sign_with(signer)
        assert len(os.listdir("/proc/self/fd")) == descriptors
        log.note(denied())
        await log.flush()
        for left in checkpoints(tmp_path):
            left.rmdir()
        signer.refusing = False
        await log.sign_with(signer)
    assert verify_log(tmp_path).ok


async def test_a_disk_that_refuses_later_is_told_and_records_go_on(tmp_path: Path) -> None:
    signer = InTheWay(tmp_path)
    told: list[HostReason] = []
    rules = LogRules(checkpoint_records=1, checkpoint_s=0.05)
    async with durable_audit_log(tmp_path, rules=rules, on_failure=told.append) as log:
        await log.sign_with(signer)
        signer.refusing = True
        for _ in range(5):
            log.note(denied())
            await log.flush()
        await until(lambda: log.checkpoint_problem is not None)
        assert log.failure is None
        assert told == [HostReason.AUDIT_NOT_SIGNED]
        signer.refusing = False
        log.note(denied())
        await log.flush()
        await until(lambda: log.checkpoint_problem is None)
    assert verify_log(tmp_path).signed == 7


async def test_a_log_rewritten_while_nobody_looked_is_not_signed(tmp_path: Path) -> None:
    """By somebody who changed what no checkpoint covers any more but the newest one's root."""
    async with durable_audit_log(tmp_path, rules=LogRules(segment_bytes=3000)) as log:
        await log.sign_with(new_signer())
        for _ in range(12):
            log.note(denied())
            await log.flush()
    async with durable_audit_log(tmp_path, rules=LogRules(segment_bytes=3000)) as log:
        for _ in range(12):
            log.note(denied())
            await log.flush()
    rechain(tmp_path, but=2)
    with pytest.raises(AuditLogDamaged):
        async with durable_audit_log(tmp_path) as log:
            await log.sign_with(new_signer())


async def test_a_log_rewritten_while_it_was_open_is_not_signed(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path) as log:
        for _ in range(3):
            log.note(denied())
        await log.flush()
        rechain(tmp_path, but=2)
        with pytest.raises(AuditLogDamaged, match="changed by another program while it was open"):
            await log.sign_with(new_signer())
    assert checkpoints(tmp_path) == []


async def test_what_a_crash_left_of_a_checkpoint_is_swept(tmp_path: Path) -> None:
    await fill(tmp_path, 1)
    left = tmp_path / ".checkpoint-0000000000000001.json.0123456789abcdef"
    left.touch(mode=0o600)
    other = tmp_path / ".checkpoint-mine"
    other.touch()
    async with durable_audit_log(tmp_path) as log:
        await log.sign_with(new_signer())
    assert not left.exists()
    assert other.exists()


class TestCancellation:
    async def test_while_it_begins(self, tmp_path: Path) -> None:
        signer = SlowSigner()
        signer.go_on.clear()
        async with durable_audit_log(tmp_path) as log:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(log.sign_with, signer)
                    await until(lambda: signer.asked == 1)
                    scope.cancel()
            signer.go_on.set()
            log.note(denied())
            await log.flush()
            await log.sign_with(new_signer())
        assert verify_log(tmp_path).ok

    @pytest.mark.parametrize("steps", range(6))
    async def test_at_each_await_of_the_beginning(self, tmp_path: Path, steps: int) -> None:
        async with durable_audit_log(tmp_path) as log:
            descriptors = len(os.listdir("/proc/self/fd"))
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(log.sign_with, new_signer())
                    for _ in range(steps):
                        await trio.testing.wait_all_tasks_blocked()
                        await trio.lowlevel.checkpoint()
                    scope.cancel()
            if not log._checkpoints.signing:
                await until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
                await log.sign_with(new_signer())
        assert verify_log(tmp_path).ok

    async def test_a_cancelled_nursery_still_gets_its_last_checkpoint(self, tmp_path: Path) -> None:
        async with trio.open_nursery() as nursery:
            log = await open_audit_log(nursery, tmp_path)
            await log.sign_with(new_signer())
            nursery.cancel_scope.cancel()
        log.note(denied())
        await log.aclose()
        assert verify_log(tmp_path).signed == 2

    async def test_a_signature_that_hangs_cannot_hold_up_closing(
        self, tmp_path: Path, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
    ) -> None:
        autojump_clock.autojump_threshold = float("inf")
        signer = SlowSigner()
        descriptors = len(os.listdir("/proc/self/fd"))
        log = await open_audit_log(nursery, tmp_path)
        await log.sign_with(signer)
        signer.go_on.clear()
        log.note(denied())
        async with trio.open_nursery() as closing:
            closing.start_soon(log.aclose)
            await until(lambda: signer.asked == 2)
            autojump_clock.jump(CLOSE_S)
        again = await open_audit_log(nursery, tmp_path)
        signer.go_on.set()  # the thread that was left behind finishes its own, which is true all the same
        await until(lambda: len(checkpoints(tmp_path)) == 1 and "2.json" in checkpoints(tmp_path)[0].name)
        await again.aclose()
        await until(lambda: len(os.listdir("/proc/self/fd")) == descriptors)
        assert verify_log(tmp_path).signed == 2
