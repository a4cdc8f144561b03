"""Opening a log that an interrupted write, or somebody, has left in another state."""

import os
import tempfile
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tabwarden.errors import AuditUnavailable, ConfigurationError
from tabwarden_adapters.audit import (
    AuditLogDamaged,
    Fault,
    durable_audit_log,
    open_audit_log,
    read_records,
    verify_log,
)
from tabwarden_adapters.audit.chain import seal_line

from tests.audit.support import FaultyFiles, authorized, completed, denied, fill, lines, segments


async def opens_with(directory: Path) -> tuple[int, int]:
    """Open, append one, close: how many records it opened with, and how many bytes were cut off."""
    async with durable_audit_log(directory) as log:
        found = log.head.sequence
        log.note(denied("after"))
        torn = log.torn_bytes
    assert verify_log(directory).records == found + 1
    return found, torn


async def refused(directory: Path) -> AuditLogDamaged:
    before = {path: path.read_bytes() for path in segments(directory)}
    async with trio.open_nursery() as nursery:
        with pytest.raises(AuditLogDamaged, match="Keep a copy of the whole folder") as caught:
            await open_audit_log(nursery, directory)
    assert {path: path.read_bytes() for path in segments(directory)} == before  # the evidence is untouched
    return caught.value


def write_log(directory: Path, contents: bytes) -> None:
    path = directory / "audit-0000000000000001.jsonl"
    path.write_bytes(contents)
    path.chmod(0o600)


def chain(count: int) -> list[bytes]:
    made, previous = [], "0" * 96
    for sequence in range(1, count + 1):
        line, previous = seal_line(sequence, previous, b'"type":"later","n":"%b"' % (b"x" * sequence))
        made.append(line)
    return made


WHOLE = chain(5)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(cut=st.integers(0, len(b"".join(WHOLE))), zeros=st.sampled_from([0, 1, 511, 5000]))
def test_a_log_cut_anywhere_opens_with_a_prefix(cut: int, zeros: int) -> None:
    whole = [line for number, line in enumerate(WHOLE) if sum(map(len, WHOLE[: number + 1])) <= cut]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_log(directory, b"".join(WHOLE)[:cut] + bytes(zeros))
        found, torn = trio.run(opens_with, directory)
        assert found == len(whole)
        assert torn == cut - sum(map(len, whole)) + zeros
        assert lines(directory)[:-1] == whole


@settings(deadline=None, max_examples=60)
@given(tail=st.binary(max_size=200).filter(lambda tail: b"\n" not in tail))
def test_an_incomplete_last_line_is_cut_off_whatever_it_holds(tail: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        write_log(Path(name), b"".join(WHOLE) + tail)
        assert trio.run(opens_with, Path(name)) == (5, len(tail))


@settings(deadline=None, max_examples=60)
@given(at=st.integers(0, len(b"".join(WHOLE)) - 1), value=st.integers(0, 255))
def test_a_changed_byte_is_refused_or_costs_the_unfinished_end_only(at: int, value: int) -> None:
    data = bytearray(b"".join(WHOLE))
    if data[at] == value:
        return
    data[at] = value
    with tempfile.TemporaryDirectory() as name:
        write_log(Path(name), bytes(data))
        if at == len(data) - 1:  # the last newline: nothing can tell this from an interrupted write
            assert trio.run(opens_with, Path(name))[0] == 4
            return
        fault = trio.run(refused, Path(name)).fault
        line = bytes(b"".join(WHOLE)[:at]).count(b"\n") + 1
        assert fault.file == "audit-0000000000000001.jsonl"
        assert fault.line == line
        assert fault.sequence == line


async def test_an_empty_folder_and_an_empty_file(tmp_path: Path) -> None:
    assert await opens_with(tmp_path / "new") == (0, 0)
    write_log(tmp_path, b"")
    assert await opens_with(tmp_path) == (0, 0)


async def test_a_hole_of_zeros_in_the_middle_is_damage(tmp_path: Path) -> None:
    data = b"".join(WHOLE)
    for start, end in [(len(WHOLE[0]), len(WHOLE[0]) + 50), (0, 4200)]:
        write_log(tmp_path, data[:start] + bytes(end - start) + data[start:])
        assert (await refused(tmp_path)).fault.kind is Fault.ALTERED


async def test_a_new_segment_without_records_is_used(tmp_path: Path) -> None:
    await fill(tmp_path, 3)
    empty = tmp_path / "audit-0000000000000004.jsonl"
    empty.touch(mode=0o600)
    assert await opens_with(tmp_path) == (3, 0)
    assert empty.stat().st_size > 0


@pytest.mark.parametrize("change", ["gone", "cut", "altered", "torn", "emptied"])
async def test_the_segment_before_the_last_must_lead_to_it(tmp_path: Path, change: str) -> None:
    await fill(tmp_path, 12, segment_bytes=2000)
    before = segments(tmp_path)[-2]
    data = before.read_bytes()
    match change:
        case "gone":
            for path in segments(tmp_path)[:-1]:
                path.unlink()
        case "cut":
            before.write_bytes(b"".join(data.splitlines(keepends=True)[:-1]))
        case "altered":
            before.write_bytes(data[:-200] + b"!" + data[-199:])
        case "torn":
            before.write_bytes(data[:-1])
        case "emptied":
            before.write_bytes(b"")
    damage = await refused(tmp_path)
    assert damage.fault.kind is Fault.SEGMENT_MISSING
    assert damage.fault.file == segments(tmp_path)[-1].name


async def test_a_record_of_a_later_version(tmp_path: Path) -> None:
    write_log(tmp_path, b"".join(WHOLE[:2]).replace(b'{"v":1', b'{"v":2'))
    damage = await refused(tmp_path)
    assert damage.fault.kind is Fault.UNKNOWN_VERSION
    assert "version 2" in str(damage)


async def test_room_left_by_a_killed_broker_is_given_back(tmp_path: Path) -> None:
    await fill(tmp_path, 3)
    path = segments(tmp_path)[0]
    descriptor = os.open(path, os.O_RDWR)
    FaultyFiles().allocate(descriptor, path.stat().st_size, 1 << 20)
    os.close(descriptor)
    assert await opens_with(tmp_path) == (3, 0)
    assert path.stat().st_blocks * 512 <= 65536


@pytest.mark.parametrize("change", ["mode", "folder", "link", "hard-link", "lock"])
async def test_files_that_are_not_ours_alone(tmp_path: Path, change: str) -> None:
    await fill(tmp_path / "log", 2)
    path = segments(tmp_path / "log")[0]
    match change:
        case "mode":
            path.chmod(0o640)
        case "folder":
            path.parent.chmod(0o755)
        case "link":
            path.rename(tmp_path / "moved")
            path.symlink_to(tmp_path / "moved")
        case "hard-link":
            (tmp_path / "copy").hardlink_to(path)
        case "lock":
            (path.parent / "lock").unlink()
            (path.parent / "lock").symlink_to(tmp_path / "elsewhere")
    descriptors = len(os.listdir("/proc/self/fd"))
    async with trio.open_nursery() as nursery:
        with pytest.raises(ConfigurationError):
            await open_audit_log(nursery, tmp_path / "log")
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert not (tmp_path / "elsewhere").exists()


async def test_a_disk_that_refuses_at_opening(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    descriptors = len(os.listdir("/proc/self/fd"))
    async with trio.open_nursery() as nursery:
        with pytest.raises(AuditUnavailable, match="Input/output error"):
            await open_audit_log(nursery, tmp_path, files=FaultyFiles(before_sync=fail))
    assert len(os.listdir("/proc/self/fd")) == descriptors
    async with durable_audit_log(tmp_path):
        pass


async def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", "audit-1.jsonl", "audit-0000000000000001.jsonl.bak"):
        (tmp_path / name).write_text("x")
    async with durable_audit_log(tmp_path) as log:
        ticket = log.admit(authorized())
        ticket.settle(completed())
    assert len(list(read_records(tmp_path))) == 2
    assert (tmp_path / "notes.txt").read_text() == "x"
