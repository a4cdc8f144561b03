"""Reading on from where a reader stopped."""

import json
from pathlib import Path

import pytest
from tabwarden_adapters.audit import (
    EXPORTS,
    AuditLogDamaged,
    Fault,
    Head,
    LogReader,
    LogRules,
    durable_audit_log,
    read_records,
)
from tabwarden_adapters.audit.chain import GENESIS, read_line, seal_line

from tests.audit.support import authorized, completed, denied, fill, lines, segments


def sequences(reader: LogReader) -> list[int]:
    return [record.sequence for record in reader.read()]


async def test_each_record_once_as_the_log_grows(tmp_path: Path) -> None:
    reader, seen = LogReader(tmp_path), list[int]()
    with pytest.raises(FileNotFoundError):
        list(LogReader(tmp_path / "absent").read())
    async with durable_audit_log(tmp_path, rules=LogRules(segment_bytes=2500)) as log:
        for number in range(30):
            ticket = log.admit(authorized(str(number)))
            await ticket.durable()
            ticket.settle(completed(str(number)))
            if number % 3 == 0:
                seen += sequences(reader)
        await log.flush()
        seen += sequences(reader)
        assert sequences(reader) == []
        assert reader.head == log.head
    assert seen == list(range(1, 61))


@pytest.mark.parametrize("at", [0, 1, 5, 6, 12, 16])
async def test_from_behind_a_record_that_was_read_before_a_restart(tmp_path: Path, at: int) -> None:
    await fill(tmp_path, 16, segment_bytes=2000)
    hashes = [GENESIS, *(record.hash for record in read_records(tmp_path))]
    reader = LogReader(tmp_path, after=Head(at, hashes[at]))
    assert sequences(reader) == list(range(at + 1, 17))
    await fill(tmp_path, 2)
    assert sequences(reader) == [17, 18]


@pytest.mark.parametrize("at", [1, 5, 6, 12])
async def test_from_behind_a_record_that_is_another_now(tmp_path: Path, at: int) -> None:
    await fill(tmp_path, 16, segment_bytes=2000)
    with pytest.raises(AuditLogDamaged) as caught:
        sequences(LogReader(tmp_path, after=Head(at, "1" * 96)))
    assert caught.value.fault.kind in (Fault.REWRITTEN, Fault.REPLACED)


async def test_from_behind_a_record_that_is_not_there(tmp_path: Path) -> None:
    await fill(tmp_path, 6)
    with pytest.raises(AuditLogDamaged) as caught:
        sequences(LogReader(tmp_path, after=Head(9, "1" * 96)))
    assert caught.value.fault.kind is Fault.TAIL_MISSING


async def test_a_tail_cut_off_between_two_reads(tmp_path: Path) -> None:
    await fill(tmp_path, 6)
    reader = LogReader(tmp_path)
    assert len(sequences(reader)) == 6
    segments(tmp_path)[0].write_bytes(b"".join(lines(tmp_path)[:4]))
    with pytest.raises(AuditLogDamaged) as caught:
        sequences(reader)
    assert caught.value.fault.kind is Fault.TAIL_MISSING


async def test_a_segment_gone_between_two_reads(tmp_path: Path) -> None:
    await fill(tmp_path, 10, segment_bytes=2000)
    reader = LogReader(tmp_path)
    assert len(sequences(reader)) == 10
    await fill(tmp_path, 10, segment_bytes=2000)
    segments(tmp_path)[-2].unlink()
    with pytest.raises(AuditLogDamaged) as caught:
        sequences(reader)
    assert caught.value.fault.kind is Fault.SEGMENT_MISSING


async def test_the_end_alone(tmp_path: Path) -> None:
    await fill(tmp_path, 16, segment_bytes=2000)
    names = [path.name for path in segments(tmp_path)]
    begins = int(names[-2][6:22])
    assert sequences(LogReader(tmp_path, recent=True)) == list(range(begins, 17))
    await fill(tmp_path / "short", 3)
    assert sequences(LogReader(tmp_path / "short", recent=True)) == [1, 2, 3]


async def test_an_incomplete_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    await fill(tmp_path, 3)
    path, whole = segments(tmp_path)[0], lines(tmp_path)
    path.write_bytes(b"".join(whole[:2]) + whole[2][:40])
    reader = LogReader(tmp_path)
    assert sequences(reader) == [1, 2]
    path.write_bytes(b"".join(whole))
    assert sequences(reader) == [3]


async def test_records_of_before_there_was_an_agent_object(tmp_path: Path) -> None:
    """Older records stay readable and exportable; nothing is made up for them."""
    old, digest = seal_line(1, GENESIS, b'"type":"action","wall_ms":1,"action":"read","outcome":"allowed"')
    new, _ = seal_line(2, digest, b'"type":"lifecycle","wall_ms":1,"boot_ms":1,"lifecycle":{"event":"later"}')
    path = tmp_path / "audit-0000000000000001.jsonl"
    path.write_bytes(old + new)
    path.chmod(0o600)
    records = list(read_records(tmp_path))
    assert [record.event for record in records] == [None, None]
    assert records[0].members["action"] == "read"
    assert EXPORTS["jsonl"](records[0]) + b"\n" == old
    async with durable_audit_log(tmp_path) as log:
        log.note(denied())
    assert len(list(read_records(tmp_path))) == 3


async def test_an_export_is_printable_whatever_somebody_wrote(tmp_path: Path) -> None:
    evil = '"type":"agent","agent":{"rule":"\x9b2J\x7f\u202e"}'.encode()
    line, _ = seal_line(1, GENESIS, evil + b'\r\t,"x":1')
    path = tmp_path / "audit-0000000000000001.jsonl"
    path.write_bytes(line)
    path.chmod(0o600)
    (record,) = read_records(tmp_path)
    exported = EXPORTS["jsonl"](record).decode()
    assert exported.isascii()
    assert exported.isprintable()
    (good,) = (read_line(line),)
    assert good.hash_is_right
    assert json.loads(exported) == good.members
