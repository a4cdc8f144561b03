"""One record, proven without the log."""

import json
from pathlib import Path
from typing import Any

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.audit import (
    AuditLogDamaged,
    Fault,
    LogRules,
    ProofRefused,
    Retention,
    check_proof,
    prove_record,
    verify_log,
)
from tabwarden_adapters.audit.proof import MAX_PROOF_BYTES

from tests.audit.signed import rechain, run
from tests.audit.support import fill


def encoded(proof: dict[str, Any]) -> bytes:
    return json.dumps(proof).encode()


@pytest.mark.parametrize("count", [0, 1, 6, 12])
async def test_every_record(tmp_path: Path, count: int) -> None:
    pin = await run(tmp_path, count)
    for sequence in range(1, count + 2):
        proven = check_proof(encoded(prove_record(tmp_path, sequence)))
        assert (proven.sequence, proven.size, proven.key_id) == (sequence, count + 1, pin.key_id)
        assert proven.members["seq"] == sequence


async def test_every_record_that_retention_left(tmp_path: Path) -> None:
    await run(tmp_path, 40, rules=LogRules(segment_bytes=4000, retention=Retention(segments=2)))
    dropped = verify_log(tmp_path).dropped
    assert dropped > 0
    for sequence in range(dropped + 1, 42):
        assert check_proof(encoded(prove_record(tmp_path, sequence))).sequence == sequence


async def test_what_cannot_be_proven(tmp_path: Path) -> None:
    await fill(tmp_path, 2)
    with pytest.raises(ConfigurationError, match="no checkpoint"):
        prove_record(tmp_path, 1)
    await run(tmp_path, 0)
    await fill(tmp_path, 2)
    with pytest.raises(ConfigurationError, match="not signed yet"):
        prove_record(tmp_path, 4)
    rechain(tmp_path, but=1)
    with pytest.raises(AuditLogDamaged) as caught:
        prove_record(tmp_path, 2)
    assert caught.value.fault.kind is Fault.REWRITTEN


async def test_a_changed_proof_proves_nothing(tmp_path: Path) -> None:
    await run(tmp_path, 9)
    proof, other = prove_record(tmp_path, 4), prove_record(tmp_path, 5)
    changes: list[dict[str, Any]] = [
        {"format": "other"},
        {"sequence": 5},
        {"sequence": 0},
        {"sequence": 11},
        {"sequence": "4"},
        {"record": other["record"]},
        {"record": proof["record"].replace("denied", "failed")},
        {"record": "{}"},
        {"record": proof["record"] + "\n"},
        {"path": other["path"]},
        {"path": proof["path"][1:]},
        {"path": [*proof["path"], "0" * 96]},
        {"path": ["zz", *proof["path"][1:]]},
        {"path": ["00", *proof["path"][1:]]},
        {"path": proof["path"][::-1]},
        {"checkpoint": {}},
        {"checkpoint": {**proof["checkpoint"], "wall_ms": 1}},
        {"\x1b[2J": 1},
    ]
    for change in changes:
        with pytest.raises(ProofRefused) as caught:
            check_proof(encoded({**proof, **change}))
        assert str(caught.value).isprintable()
    for data in (b"", b"[]", b"\xff", b" " * MAX_PROOF_BYTES + encoded(proof), encoded(proof)[:-1]):
        with pytest.raises(ProofRefused):
            check_proof(data)


async def test_a_record_of_another_log_under_the_same_number(tmp_path: Path) -> None:
    await run(tmp_path / "one", 5)
    await run(tmp_path / "two", 5)
    one, two = prove_record(tmp_path / "one", 1), prove_record(tmp_path / "two", 1)
    with pytest.raises(ProofRefused, match="does not lead"):
        check_proof(encoded({**one, "record": two["record"]}))
