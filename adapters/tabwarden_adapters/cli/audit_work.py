"""What the `tabwarden audit` commands do, but for `tail`. Each gives a value for `emit`; none prints."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tabwarden.errors import ConfigurationError

from tabwarden_adapters import audit as audits
from tabwarden_adapters.cli.settings import ServeSettings, load_settings

_HEAD = re.compile(r"\d{1,16}:[0-9a-f]{96}")
_HEAD_FILE_BYTES = 4096
NOT_PINNED = (
    "no keys were given, so a log that was rewritten as a whole, or cut and signed anew, is not seen: "
    "keep what `tabwarden audit keys` prints elsewhere, and give it with --keys"
)


def log_folder(audit: Path | None, config: Path | None) -> Path:
    """Where the log is: as told, as the settings file says, or where `serve` puts it."""
    if audit is not None:
        return audit.absolute()
    return (load_settings(config) if config else ServeSettings()).audit_path


def ecs_namespace(named: str | None, config: Path | None) -> str:
    """What ECS has our own fields below: as told, as the settings file says, or `tabwarden`."""
    if named is not None:
        return audits.checked_namespace(named)
    return (load_settings(config) if config else ServeSettings()).audit_export.namespace


@contextmanager
def existing_log(folder: Path) -> Iterator[None]:
    """A folder that is not there is the user's mistake, and not a log without records."""
    try:
        yield
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no audit log in {folder}: give its folder with --audit, or the settings with --config"
        ) from None
    except OSError as error:
        raise ConfigurationError(f"cannot read the audit log in {folder}: {error.strerror}") from None


def verify(folder: Path, known_head: str | None, keys: Path | None) -> dict[str, Any]:
    """A report; its `fault` is None when all is well."""
    known = None if known_head is None else _known_head(known_head)
    pins = None if keys is None else read_pins(keys)
    with existing_log(folder):
        found = audits.verify_log(folder, known=known, pins=pins)
    fault = found.fault
    return {
        "ok": found.ok,
        "folder": str(folder),
        "first": found.dropped + 1,
        "last": found.records,
        "head": _head_text(found.head),
        "signed_through": found.signed,
        "checkpoints": found.checkpoints,
        "keys": "not pinned" if pins is None else "pinned",
        "fault": None if fault is None else {**asdict(fault), "kind": fault.kind.value, "text": str(fault)},
        "clock_steps": [asdict(step) for step in found.clock_steps],
        "note": NOT_PINNED if pins is None else None,
    }


def verify_proof(file: Path, keys: Path | None) -> dict[str, Any]:
    """What a proof shows. Raises `ProofRefused`, and `ConfigurationError` without keys to compare with."""
    proven = audits.check_proof(_read(file, audits.MAX_PROOF_BYTES))
    if keys is None:
        raise ConfigurationError(
            f"the proof is signed by {proven.key_id}: whose keys these are, only a file of pinned keys says "
            "(--keys)"
        )
    if all(pin.key_id != proven.key_id for pin in read_pins(keys).keys):
        raise audits.ProofRefused(
            f"it is signed by the keys {proven.key_id}, which are not among those noted"
        )
    return {
        "ok": True,
        "sequence": proven.sequence,
        "of": proven.size,
        "key_id": proven.key_id,
        "signed_ms": proven.signed_ms,
        "record": proven.members,
    }


def prove(folder: Path, sequence: int) -> dict[str, Any]:
    """The proof of one record."""
    if sequence < 1:
        raise ConfigurationError("records are counted from 1")
    with existing_log(folder):
        return audits.prove_record(folder, sequence)


def head(folder: Path) -> dict[str, Any]:
    """Number and hash of the last record, of a log whose chain holds."""
    found = _sound(folder)
    if not found.records:
        raise ConfigurationError(f"the log in {folder} has no record yet")
    return {"head": _head_text(found.head), "sequence": found.head.sequence, "hash": found.head.hash}


def keys(folder: Path) -> dict[str, Any]:
    """Whose keys signed the log, and how far it goes: the file for --keys."""
    found = _sound(folder)
    if not found.keys:
        raise ConfigurationError(f"the log in {folder} is not signed: only a broker that runs signs it")
    return audits.encode_pins(audits.Pins(found.keys, found.head))


def export(folder: Path, format_: str, namespace: str = audits.NAMESPACE) -> Iterator[bytes]:
    """The lines of all records in a format, each with its newline. Raises `AuditLogDamaged` on the way."""
    as_line = audits.export_in(format_, namespace)
    with existing_log(folder):
        for record in audits.read_records(folder):
            yield as_line(record) + b"\n"


def read_pins(file: Path) -> audits.Pins:
    """Raises `ConfigurationError` naming file and field."""
    try:
        return audits.parse_pins(_read(file, audits.MAX_PINS_BYTES))
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from None


def _sound(folder: Path) -> audits.Verification:
    with existing_log(folder):
        found = audits.verify_log(folder)
    if found.fault is not None:
        raise audits.AuditLogDamaged(found.fault)
    return found


def _head_text(head: audits.Head) -> str | None:
    return f"{head.sequence}:{head.hash}" if head.sequence else None


def _known_head(text: str) -> audits.Head:
    """`N:HASH`, or the name of a file that holds that."""
    if _HEAD.fullmatch(text) is None:
        text = _read(Path(text), _HEAD_FILE_BYTES).decode("ascii", "replace")
    return audits.parse_head(text)


def _read(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot read {ascii(str(file))[1:-1]}: {error.strerror}") from None
    if len(data) > most:
        raise ConfigurationError(f"{file} is larger than {most // 1024} KiB")
    return data
