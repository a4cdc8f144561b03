"""What was done to a signed log is found, and where: also by whoever can compute the chain anew."""

import shutil
from pathlib import Path

import pytest
import trio
from tabwarden_adapters.audit import (
    AuditLogDamaged,
    Fault,
    LogRules,
    Pin,
    Pins,
    Verification,
    durable_audit_log,
    verify_log,
)
from tabwarden_adapters.audit.checkpoint import Place, parse, sign

from tests.audit.signed import checkpoints, new_signer, pins, rechain, run
from tests.audit.support import denied, fill, lines, segments

SMALL = LogRules(segment_bytes=4000)


def kind(found: Verification) -> Fault:
    assert found.fault is not None
    return found.fault.kind


async def refuses(directory: Path) -> Fault:
    """A broker does not add to it."""
    with pytest.raises(AuditLogDamaged) as caught:
        async with durable_audit_log(directory) as log:
            await log.sign_with(new_signer())
    return caught.value.fault.kind


async def test_a_signed_log(tmp_path: Path) -> None:
    first = await run(tmp_path, 10, rules=SMALL)
    second = await run(tmp_path, 10, rules=SMALL)
    found = verify_log(tmp_path)
    assert found.ok
    assert (found.records, found.signed, found.dropped) == (22, 22, 0)
    assert found.keys == (first, second)
    assert found.checkpoints == len(checkpoints(tmp_path)) == len(segments(tmp_path)) + 1
    assert (first.since, second.since) == (1, 12)
    assert verify_log(tmp_path, pins=pins(tmp_path)).ok
    assert verify_log(tmp_path, pins=Pins((first, second))).ok
    elsewhere = Pins((first, Pin(second.key_id, second.since + 1)))
    assert kind(verify_log(tmp_path, pins=elsewhere)) is Fault.CHECKPOINT_MISSING
    for path in checkpoints(tmp_path):
        assert path.stat().st_mode & 0o777 == 0o600


async def test_a_log_from_before_there_were_checkpoints_is_signed_as_a_whole(tmp_path: Path) -> None:
    await fill(tmp_path, 12, segment_bytes=2000)
    pin = await run(tmp_path, 1)
    found = verify_log(tmp_path, pins=Pins((pin,)))
    assert found.ok
    assert found.signed == 14


async def test_a_broker_that_does_not_sign_may_go_on(tmp_path: Path) -> None:
    await run(tmp_path, 3)
    await fill(tmp_path, 3)
    found = verify_log(tmp_path)
    assert (found.ok, found.records, found.signed) == (True, 7, 4)
    await run(tmp_path, 1)
    assert verify_log(tmp_path).signed == 9


class TestTampering:
    @pytest.mark.parametrize("at", [2, 7, 11, 13, 22])
    async def test_altered_and_chained_anew(self, tmp_path: Path, at: int) -> None:
        await run(tmp_path, 10, rules=SMALL)
        await run(tmp_path, 10, rules=SMALL)
        rechain(tmp_path, but=at)
        found = verify_log(tmp_path)
        assert kind(found) is Fault.REWRITTEN
        assert found.fault is not None
        sizes = [int(path.name[11:27]) for path in checkpoints(tmp_path)]
        assert found.fault.sequence == min(size for size in sizes if size >= at)
        assert f"records {max([0, *(size for size in sizes if size < at)]) + 1} to" in found.fault.detail
        assert await refuses(tmp_path) in (Fault.REWRITTEN, Fault.SEGMENT_MISSING)

    @pytest.mark.parametrize("more", [0, 1, 2])
    async def test_a_broker_that_does_not_sign_adds_nothing_to_it_either(
        self, tmp_path: Path, more: int
    ) -> None:
        """Wherever the newest checkpoint ends: in the last segment, just before it, or earlier."""
        await run(tmp_path, 4)
        await fill(tmp_path, more, segment_bytes=1)
        assert len(segments(tmp_path)) == more + 1
        rechain(tmp_path, but=2)
        if more < 2:
            with pytest.raises(AuditLogDamaged):
                await fill(tmp_path, 1)
        assert await refuses(tmp_path) in (Fault.REWRITTEN, Fault.REPLACED, Fault.SEGMENT_MISSING)

    @pytest.mark.parametrize("kept", [1, 5, 10])
    async def test_the_tail_cut_off(self, tmp_path: Path, kept: int) -> None:
        await run(tmp_path, 10)
        path = segments(tmp_path)[0]
        path.write_bytes(b"".join(lines(tmp_path)[:kept]))
        found = verify_log(tmp_path)
        assert kind(found) is Fault.TAIL_MISSING
        assert found.fault is not None
        assert (found.fault.file, found.fault.line, found.fault.sequence) == (path.name, kept + 1, kept + 1)
        assert await refuses(tmp_path) is Fault.TAIL_MISSING

    async def test_all_records_gone(self, tmp_path: Path) -> None:
        await run(tmp_path, 3)
        segments(tmp_path)[0].unlink()
        assert kind(verify_log(tmp_path)) is Fault.SEGMENT_MISSING
        assert await refuses(tmp_path) is Fault.TAIL_MISSING

    async def test_the_tail_cut_off_with_its_checkpoint(self, tmp_path: Path) -> None:
        """Back to an older state that was signed too: only what was noted elsewhere shows it."""
        pin = await run(tmp_path, 3)
        older = tmp_path.with_name("older")
        shutil.copytree(tmp_path, older)
        await run(tmp_path, 5)
        noted = pins(tmp_path)
        found = verify_log(older)
        assert found.ok
        assert verify_log(older, pins=Pins((pin,))).ok
        assert kind(verify_log(older, known=noted.head)) is Fault.HEAD_MISSING
        assert kind(verify_log(older, pins=noted)) is Fault.HEAD_MISSING
        assert kind(verify_log(older, pins=Pins(noted.keys))) is Fault.CHECKPOINT_MISSING

    async def test_the_whole_log_rewritten_and_signed_by_others(self, tmp_path: Path) -> None:
        await run(tmp_path / "real", 10)
        noted = pins(tmp_path / "real")
        await run(tmp_path / "made", 10)
        found = verify_log(tmp_path / "made")
        assert found.ok  # nothing inside the folder can tell
        found = verify_log(tmp_path / "made", pins=Pins(noted.keys))
        assert kind(found) is Fault.KEYS_NOT_PINNED
        assert found.fault is not None
        assert found.fault.file == checkpoints(tmp_path / "made")[0].name

    async def test_the_announcement_of_others_keys_copied(self, tmp_path: Path) -> None:
        """A log without checkpoints that only says whose keys it has."""
        await run(tmp_path, 4)
        noted = pins(tmp_path)
        rechain(tmp_path, but=3)
        for path in checkpoints(tmp_path):
            path.unlink()
        assert verify_log(tmp_path).ok
        assert kind(verify_log(tmp_path, pins=Pins(noted.keys))) is Fault.CHECKPOINT_MISSING

    async def test_one_run_replaced(self, tmp_path: Path) -> None:
        first = await run(tmp_path, 3)
        before = tmp_path.with_name("before")
        shutil.copytree(tmp_path, before)
        second = await run(tmp_path, 3)
        other = await run(before, 3)
        found = verify_log(before, pins=Pins((first, second)))
        assert kind(found) is Fault.KEYS_NOT_PINNED
        found = verify_log(before, pins=Pins((first, second, other)))
        assert kind(found) is Fault.CHECKPOINT_MISSING
        assert found.fault is not None
        assert found.fault.sequence == second.since

    async def test_a_checkpoint_altered(self, tmp_path: Path) -> None:
        await run(tmp_path, 10, rules=SMALL)
        for path in checkpoints(tmp_path):
            data = path.read_bytes()
            path.write_bytes(data.replace(b'"wall_ms":1', b'"wall_ms":2'))
            found = verify_log(tmp_path)
            assert kind(found) is Fault.CHECKPOINT_ALTERED
            assert found.fault is not None
            assert found.fault.file == path.name
            path.write_bytes(data)
        path.write_bytes(b"{}")
        assert await refuses(tmp_path) is Fault.CHECKPOINT_ALTERED

    async def test_a_root_that_is_not_the_records_under_good_signatures(self, tmp_path: Path) -> None:
        signer = new_signer()
        await run(tmp_path, 3, signer=signer)
        (path,) = checkpoints(tmp_path)
        old = parse(path.read_bytes())
        place = Place(old.place.size, old.place.head, (b"x" * 48,))
        path.write_bytes(sign(signer, place, Place(), old.wall_ms, old.boot_ms).encode())
        assert kind(verify_log(tmp_path)) is Fault.REWRITTEN

    async def test_a_checkpoint_given_another_number(self, tmp_path: Path) -> None:
        await run(tmp_path, 3)
        (path,) = checkpoints(tmp_path)
        path.rename(path.with_name("checkpoint-0000000000000002.json"))
        assert kind(verify_log(tmp_path)) is Fault.CHECKPOINT_ALTERED

    async def test_records_behind_the_last_checkpoint_are_told_apart(self, tmp_path: Path) -> None:
        await run(tmp_path, 3)
        await fill(tmp_path, 2)
        found = verify_log(tmp_path, pins=pins(tmp_path))
        assert (found.ok, found.signed, found.records) == (True, 4, 6)

    async def test_a_beginning_that_was_cut_off_is_not_retention(self, tmp_path: Path) -> None:
        await run(tmp_path, 12, rules=SMALL)
        await run(tmp_path, 12, rules=SMALL)
        for path in segments(tmp_path)[:2]:
            path.unlink()
        sizes = sorted(int(path.name[11:27]) for path in checkpoints(tmp_path))
        begins = int(segments(tmp_path)[0].name[6:22])
        for size in sizes:
            if size < begins - 1:
                (tmp_path / f"checkpoint-{size:016d}.json").unlink()
        found = verify_log(tmp_path)
        assert kind(found) is Fault.SEGMENT_MISSING
        assert found.fault is not None
        assert found.fault.sequence == 1

    async def test_files_that_are_not_ours_alone(self, tmp_path: Path) -> None:
        await run(tmp_path / "log", 3)
        (path,) = checkpoints(tmp_path / "log")
        path.chmod(0o644)
        with pytest.raises(Exception, match="open to other users"):
            verify_log(tmp_path / "log")
        with pytest.raises(Exception, match="open to other users"):
            async with durable_audit_log(tmp_path / "log"):
                pass


def test_pins_of_keys_that_never_were() -> None:
    """Noted keys are demanded even of an empty log."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        trio.run(fill, Path(name), 1)
        found = verify_log(name, pins=Pins((Pin("0" * 96, 1),)))
        assert kind(found) is Fault.CHECKPOINT_MISSING


async def test_while_a_broker_writes(tmp_path: Path) -> None:
    rules = LogRules(segment_bytes=4000, checkpoint_records=3)
    async with durable_audit_log(tmp_path, rules=rules) as log:
        await log.sign_with(new_signer())
        for _ in range(40):
            log.note(denied())
            await log.flush()
            found = await trio.to_thread.run_sync(verify_log, tmp_path)
            assert found.ok, found.fault
            assert found.records >= log.durable_sequence
    assert verify_log(tmp_path).signed == 41
