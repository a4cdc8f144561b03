"""Segments end by size and by age; old ones go behind a signed checkpoint, and the rest can be verified."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.audit import (
    DurableAuditLog,
    Fault,
    Head,
    LogReader,
    LogRules,
    Pins,
    Retention,
    durable_audit_log,
    prove_record,
    read_records,
    verify_log,
)
from tabwarden_adapters.audit import checkpoint_writer as writer_module

from tests.audit.signed import checkpoints, new_signer, pins, run
from tests.audit.support import denied, fill, segments

HOUR_MS = 3_600_000


@dataclass
class SetClock:
    """Stands still until it is set."""

    wall: int = 1_800_000_000_000
    boot: int = 5_000_000

    def wall_ms(self) -> int:
        return self.wall

    def boottime_ms(self) -> int:
        return self.boot

    def monotonic_ms(self) -> int:
        return self.boot

    def pass_(self, ms: int) -> None:
        self.wall += ms
        self.boot += ms


def rules(**retention: int) -> LogRules:
    return LogRules(segment_bytes=4000, retention=Retention(**retention))


def first_kept(directory: Path) -> int:
    return int(segments(directory)[0].name[6:22])


async def test_nothing_goes_unless_told(tmp_path: Path) -> None:
    await run(tmp_path, 40, rules=LogRules(segment_bytes=2000))
    assert first_kept(tmp_path) == 1


async def test_by_number(tmp_path: Path) -> None:
    keys = []
    for _ in range(4):
        keys.append(await run(tmp_path, 20, rules=rules(segments=2)))
        assert len(segments(tmp_path)) == 2
        found = verify_log(tmp_path)
        assert found.ok, found.fault
        assert found.dropped == first_kept(tmp_path) - 1 > 0
        assert found.signed == found.records == 21 * len(keys)
    assert verify_log(tmp_path, pins=Pins(tuple(keys))).ok
    assert verify_log(tmp_path, pins=pins(tmp_path)).ok
    assert [record.sequence for record in read_records(tmp_path)] == list(range(found.dropped + 1, 85))
    # What stays of checkpoints: the one behind which records went, and those of records that are there.
    assert int(checkpoints(tmp_path)[0].name[11:27]) == found.dropped


async def test_by_size(tmp_path: Path) -> None:
    await run(tmp_path, 60, rules=rules(total_bytes=9000))
    assert sum(path.stat().st_size for path in segments(tmp_path)) <= 9000 + 4000
    assert verify_log(tmp_path).ok
    assert verify_log(tmp_path).dropped > 0


async def test_by_age(tmp_path: Path) -> None:
    clock = SetClock()
    limits = rules(age_ms=10 * HOUR_MS)
    async with durable_audit_log(tmp_path, rules=limits, clock=clock) as log:
        await log.sign_with(new_signer())
        for _ in range(20):
            await note(log, clock)
        clock.pass_(9 * HOUR_MS)
        await note(log, clock)
    assert first_kept(tmp_path) == 1
    clock.pass_(2 * HOUR_MS)
    async with durable_audit_log(tmp_path, rules=limits, clock=clock) as log:
        await log.sign_with(new_signer())
    assert first_kept(tmp_path) > 14  # those of the last day, in whole segments
    assert verify_log(tmp_path).ok


async def note(log: DurableAuditLog, clock: SetClock) -> None:
    event = denied()
    log.note(type(event)(**{**fields(event), "wall_ms": clock.wall, "boot_ms": clock.boot}))
    await log.flush()


def fields(event: object) -> dict[str, object]:
    return {name: getattr(event, name) for name in event.__dataclass_fields__}  # type: ignore[attr-defined]


async def test_a_clock_that_was_set_forward_drops_nothing(tmp_path: Path) -> None:
    clock = SetClock()
    async with durable_audit_log(tmp_path, rules=rules(age_ms=HOUR_MS), clock=clock) as log:
        await log.sign_with(new_signer())
        for _ in range(20):
            await note(log, clock)
        clock.wall += 1000 * HOUR_MS
        for _ in range(10):
            await note(log, clock)
    assert first_kept(tmp_path) == 1


async def test_segments_end_by_age_and_stay_one_chain(tmp_path: Path) -> None:
    clock = SetClock()
    aging = LogRules(segment_ms=HOUR_MS)
    async with durable_audit_log(tmp_path, rules=aging, clock=clock) as log:
        await note(log, clock)
        clock.pass_(HOUR_MS - 1)
        await note(log, clock)
        assert len(segments(tmp_path)) == 1
        clock.pass_(1)
        assert len(segments(tmp_path)) == 1  # nothing to record, no segment
        await note(log, clock)
        assert len(segments(tmp_path)) == 2
    clock.pass_(HOUR_MS)
    async with durable_audit_log(tmp_path, rules=aging, clock=clock) as log:
        await note(log, clock)
    assert len(segments(tmp_path)) == 3
    assert verify_log(tmp_path).records == 4


async def test_a_clock_that_was_set_back_does_not_keep_a_segment_open(tmp_path: Path) -> None:
    clock = SetClock()
    async with durable_audit_log(tmp_path, rules=LogRules(segment_ms=HOUR_MS), clock=clock) as log:
        await note(log, clock)
        clock.wall -= 1000 * HOUR_MS
        await note(log, clock)
        clock.pass_(HOUR_MS)
        await note(log, clock)
    assert len(segments(tmp_path)) == 2
    found = verify_log(tmp_path)
    assert [(step.sequence, step.by_ms) for step in found.clock_steps] == [(2, -1000 * HOUR_MS)]
    assert found.ok


async def test_a_checkpoint_that_was_made_just_before_its_segment_ended_stays(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path, rules=LogRules(segment_bytes=4000)) as log:
        await log.sign_with(new_signer())
        for _ in range(20):
            log.note(denied())
            await log.flush()
            await log._checkpoints.make()
    ends = {int(path.name[6:22]) - 1 for path in segments(tmp_path)[1:]}
    assert {int(path.name[11:27]) for path in checkpoints(tmp_path)} == {*ends, 21}


async def test_without_a_signer_nothing_goes(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path, rules=rules(segments=1)) as log:
        for _ in range(30):
            log.note(denied())
            await log.flush()
    assert first_kept(tmp_path) == 1


async def test_what_a_crash_leaves_of_dropping_is_ignored_and_goes_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(writer_module, "drop_segments", crash)
        async with durable_audit_log(tmp_path, rules=rules(segments=2)) as log:
            await log.sign_with(new_signer())
            for _ in range(30):
                log.note(denied())
                await log.flush()
            await log._checkpoints.make()
            assert log.checkpoint_problem == "Input/output error"
    found = verify_log(tmp_path)
    assert found.ok
    assert found.dropped > 0
    assert first_kept(tmp_path) == 1
    # Also when only some of them went, the oldest first.
    segments(tmp_path)[0].unlink()
    assert verify_log(tmp_path).ok
    await run(tmp_path, 30, rules=rules(segments=2))
    assert len(segments(tmp_path)) == 2
    assert verify_log(tmp_path).ok


async def test_a_dropped_record_is_not_proven_and_an_old_head_says_why(tmp_path: Path) -> None:
    await run(tmp_path, 5)
    old = verify_log(tmp_path).head
    await run(tmp_path, 40, rules=rules(segments=1))
    with pytest.raises(ConfigurationError, match="was dropped: the log begins at"):
        prove_record(tmp_path, 3)
    found = verify_log(tmp_path, known=old)
    assert found.fault is not None
    assert found.fault.kind is Fault.HEAD_MISSING
    assert "a later head must be noted" in found.fault.detail
    # The last record that was dropped is still known.
    last = read_head(tmp_path, found.dropped)
    assert verify_log(tmp_path, known=last).ok


def read_head(directory: Path, sequence: int) -> Head:
    path = directory / f"checkpoint-{sequence:016d}.json"
    return Head(sequence, json.loads(path.read_bytes())["head"])


async def test_a_reader_that_is_too_slow_is_told(tmp_path: Path) -> None:
    await run(tmp_path, 5)
    reader = LogReader(tmp_path)
    assert len(list(reader.read())) == 6
    await run(tmp_path, 60, rules=rules(segments=1))
    with pytest.raises(ConfigurationError, match="were dropped before they were read"):
        list(reader.read())


async def test_a_log_of_which_everything_older_was_dropped_opens_again(tmp_path: Path) -> None:
    await run(tmp_path, 40, rules=rules(segments=1))
    assert len(segments(tmp_path)) == 1
    await fill(tmp_path, 2)
    await run(tmp_path, 2)
    assert verify_log(tmp_path).ok


@pytest.mark.parametrize("limit", ["age_ms", "total_bytes", "segments"])
def test_limits_are_positive(limit: str) -> None:
    with pytest.raises(ConfigurationError, match=limit):
        Retention(**{limit: 0})
    with pytest.raises(ConfigurationError, match="segment_ms"):
        LogRules(segment_ms=0)


async def test_reading_while_segments_go(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path, rules=rules(segments=2)) as log:
        await log.sign_with(new_signer())
        for number in range(40):
            log.note(denied())
            await log.flush()
            if number % 5 == 0:
                found = await trio.to_thread.run_sync(verify_log, tmp_path)
                assert found.ok, found.fault
    assert verify_log(tmp_path).dropped > 0
