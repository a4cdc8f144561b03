"""Logs that are signed, and what somebody with the same user's rights could do to them."""

from pathlib import Path

from tabwarden.protocol.primitives import Ed25519Signer, NativeProvider
from tabwarden.protocol.statement import InstanceSigner
from tabwarden_adapters.audit import LogRules, Pin, Pins, durable_audit_log, verify_log
from tabwarden_adapters.audit.chain import GENESIS, read_line, seal_line

from tests.audit.support import denied, segments


def new_signer() -> InstanceSigner:
    return InstanceSigner(Ed25519Signer(), NativeProvider().signer())


async def run(
    directory: Path, count: int, *, rules: LogRules | None = None, signer: InstanceSigner | None = None
) -> Pin:
    """One broker's run: it begins to sign, records so many denials, each durable by itself, and ends."""
    async with durable_audit_log(directory, rules=rules) as log:
        pin = await log.sign_with(signer or new_signer())
        for number in range(count):
            log.note(denied(f"r{number}"))
            await log.flush()
        assert log.checkpoint_problem is None
    return pin


def pins(directory: Path) -> Pins:
    """What `tabwarden audit keys` would print now."""
    found = verify_log(directory)
    assert found.ok, found.fault
    return Pins(found.keys, found.head)


def checkpoints(directory: Path) -> list[Path]:
    return sorted(directory.glob("checkpoint-*.json"))


def rechain(directory: Path, *, but: int | None = None) -> None:
    """Compute the chain anew over all segments, with record number `but` changed, as somebody can who knows
    the format."""
    previous, sequence = GENESIS, 0
    for path in segments(directory):
        lines = []
        for line in path.read_bytes().splitlines(keepends=True):
            link = read_line(line)
            sequence += 1
            members = line[line.index(b'"type"') : line.rindex(b',"hash"')]
            if sequence == but:
                members = members.replace(b"denied", b"failed")
            assert link.sequence == sequence
            new, previous = seal_line(sequence, previous, members)
            lines.append(new)
        path.write_bytes(b"".join(lines))
