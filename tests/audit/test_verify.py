"""Off-line verification: what was done to the log, and where."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.audit import AuditLogDamaged, Fault, Head, read_records, verify_log
from tabwarden_adapters.audit.chain import read_line, seal_line

from tests.audit.support import fill, lines, segments

Change = Callable[[list[bytes]], list[bytes]]


async def tampered(directory: Path, change: Change) -> tuple[Fault, int]:
    """The kind and the record of the fault that verification finds after `change`."""
    await fill(directory, 6)
    path = segments(directory)[0]
    path.write_bytes(b"".join(change(lines(directory))))
    verification = verify_log(directory)
    assert verification.fault is not None
    assert not verification.ok
    assert verification.fault.file == path.name
    assert verification.records == verification.fault.sequence - 1
    with pytest.raises(AuditLogDamaged):
        list(read_records(directory))
    return verification.fault.kind, verification.fault.sequence


def rehashed(line: bytes, previous: str | None = None) -> bytes:
    """A record changed by somebody who knows the format."""
    link = read_line(line)
    members = b'"type":"lifecycle"'
    return seal_line(link.sequence, link.previous if previous is None else previous, members)[0]


async def test_a_good_log(tmp_path: Path) -> None:
    await fill(tmp_path, 6)
    verification = verify_log(tmp_path)
    assert verification.ok
    assert verification.records == 6
    assert verification.head == Head(6, read_line(lines(tmp_path)[-1]).hash)


async def test_altered(tmp_path: Path) -> None:
    change: Change = lambda all_: [*all_[:2], all_[2].replace(b"denied", b"failed"), *all_[3:]]  # noqa: E731
    assert await tampered(tmp_path, change) == (Fault.ALTERED, 3)


async def test_replaced(tmp_path: Path) -> None:
    change: Change = lambda all_: [*all_[:2], rehashed(all_[2]), *all_[3:]]  # noqa: E731
    # The record itself is whole; the one after it shows that it is not the one that stood there.
    assert await tampered(tmp_path, change) == (Fault.REPLACED, 4)


async def test_the_first_replaced(tmp_path: Path) -> None:
    change: Change = lambda all_: [rehashed(all_[0], "1" * 96), *all_[1:]]  # noqa: E731
    assert await tampered(tmp_path, change) == (Fault.REPLACED, 1)


@pytest.mark.parametrize("at", [0, 2, 4])
async def test_removed(tmp_path: Path, at: int) -> None:
    assert await tampered(tmp_path, lambda all_: all_[:at] + all_[at + 1 :]) == (Fault.REMOVED, at + 1)


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 4), (4, 5)])
async def test_swapped(tmp_path: Path, one: int, other: int) -> None:
    def swap(all_: list[bytes]) -> list[bytes]:
        all_[one], all_[other] = all_[other], all_[one]
        return all_

    assert await tampered(tmp_path, swap) == (Fault.SWAPPED, one + 1)


async def test_repeated(tmp_path: Path) -> None:
    assert (await tampered(tmp_path, lambda all_: [*all_, all_[2]]))[1] == 7


@pytest.mark.parametrize("which", [0, 1, 2])
async def test_a_segment_is_missing(tmp_path: Path, which: int) -> None:
    await fill(tmp_path, 16, segment_bytes=2000)
    paths = segments(tmp_path)
    assert len(paths) >= 4
    missing = int(paths[which].name[6:22])
    paths[which].unlink()
    fault = verify_log(tmp_path).fault
    assert fault is not None
    assert (fault.kind, fault.sequence) == (Fault.SEGMENT_MISSING, missing)
    assert fault.file == paths[which + 1].name


async def test_a_segment_that_ends_too_early(tmp_path: Path) -> None:
    await fill(tmp_path, 16, segment_bytes=2000)
    path = segments(tmp_path)[1]
    path.write_bytes(path.read_bytes()[:-10])
    fault = verify_log(tmp_path).fault
    assert fault is not None
    assert fault.kind is Fault.ALTERED
    assert fault.file == path.name


async def test_only_a_head_kept_elsewhere_shows_a_cut_or_rewritten_log(tmp_path: Path) -> None:
    await fill(tmp_path, 6)
    known = verify_log(tmp_path).head
    assert verify_log(tmp_path, known=known).ok
    assert verify_log(tmp_path, known=Head()).ok
    await fill(tmp_path, 2)
    assert verify_log(tmp_path, known=known).ok
    path = segments(tmp_path)[0]
    path.write_bytes(b"".join(lines(tmp_path)[:5]))
    assert verify_log(tmp_path).ok
    fault = verify_log(tmp_path, known=known).fault
    assert fault is not None
    assert (fault.kind, fault.sequence) == (Fault.HEAD_MISSING, 6)


async def test_a_log_open_to_others_is_not_read(tmp_path: Path) -> None:
    await fill(tmp_path / "log", 2)
    segments(tmp_path / "log")[0].chmod(0o644)
    with pytest.raises(ConfigurationError, match="open to other users"):
        verify_log(tmp_path / "log")
    with pytest.raises(FileNotFoundError):
        verify_log(tmp_path / "absent")
    with pytest.raises(FileNotFoundError):
        list(read_records(tmp_path / "absent"))
