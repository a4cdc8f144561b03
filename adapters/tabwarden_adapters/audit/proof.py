"""Proving one record without the log: the record, its path to a signed root (RFC 6962), and the checkpoint.

{"format":"tabwarden-audit-proof-v1", "sequence":7, "record":"<its line>", "path":["<96 hex digits>", …],
 "checkpoint":{…}}
"""

import json
import os
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tabwarden.errors import ConfigurationError, MalformedError, TabwardenError
from tabwarden.limits import HASH_BYTES
from tabwarden.private_files import open_private_directory
from tabwarden.protocol.codec import parse_json
from tabwarden.protocol.merkle import leaf_hash, root_from_path

from tabwarden_adapters.audit.chain import read_line
from tabwarden_adapters.audit.checkpoint import Checkpoint, parse
from tabwarden_adapters.audit.checkpoint_files import newest_checkpoint
from tabwarden_adapters.audit.cursor import LogCursor
from tabwarden_adapters.audit.edge import inclusion_path
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault

FORMAT = "tabwarden-audit-proof-v1"
MAX_PROOF_BYTES = 64 * 1024  # a record, at most 64 hashes and a checkpoint


class ProofRefused(TabwardenError):
    """The proof proves nothing; says which part failed."""


@dataclass(frozen=True, slots=True)
class Proven:
    """What a good proof shows: these keys signed a log of `size` records in which this one stands."""

    sequence: int
    size: int
    key_id: str
    signed_ms: int
    members: dict[str, Any] = field(repr=False)


def prove_record(path: str | os.PathLike[str], sequence: int) -> dict[str, Any]:
    """The proof of record number `sequence` against the newest checkpoint, as JSON members. Blocking.

    Reads the log. Raises `ConfigurationError` (no checkpoint covers it, it was dropped), `AuditLogDamaged`.
    """
    checkpoint = _covering(path, sequence)
    cursor = LogCursor(path)
    hashes: list[bytes] = []
    line = b""
    for _, link in cursor.links():
        if link.sequence > checkpoint.place.size:
            break
        hashes.append(bytes.fromhex(link.hash))
        if link.sequence == sequence:
            line = link.line
    start = cursor.base.edge()
    if start.size + len(hashes) < checkpoint.place.size or not line:
        raise ConfigurationError(
            "the log changed while it was read, or is damaged: see tabwarden audit verify"
        )
    path_bytes, root = inclusion_path(start, hashes, sequence - 1)
    if root != checkpoint.place.root:
        detail = "the records are one chain, but not the one that the newest checkpoint signed"
        raise AuditLogDamaged(LocatedFault(Fault.REWRITTEN, "-", 0, checkpoint.place.size, detail))
    steps = [path_bytes[at : at + HASH_BYTES].hex() for at in range(0, len(path_bytes), HASH_BYTES)]
    return {
        "format": FORMAT,
        "sequence": sequence,
        "record": line.decode("utf-8").removesuffix("\n"),
        "path": steps,
        "checkpoint": json.loads(checkpoint.encode()),
    }


def check_proof(data: bytes) -> Proven:
    """Check all but whose the keys are: compare `key_id` with what was noted. Raises `ProofRefused`."""
    if len(data) > MAX_PROOF_BYTES:
        raise ProofRefused("the file is too large to be a proof")
    try:
        file = msgspec.convert(parse_json(data), _File, strict=True)
        if file.format != FORMAT:
            raise MalformedError(f"it is not {FORMAT}")
        checkpoint = parse(json.dumps(file.checkpoint).encode())
        line = read_line(file.record.encode() + b"\n")
        steps = b"".join(_step(text) for text in file.path)
        if not 0 < file.sequence <= checkpoint.place.size:
            raise MalformedError("the checkpoint does not cover the record")
        if not line.hash_is_right or line.sequence != file.sequence:
            raise MalformedError("the record was altered")
        leaf = leaf_hash(bytes.fromhex(line.hash))
        root = root_from_path(leaf, file.sequence - 1, checkpoint.place.size, steps)
    except msgspec.ValidationError as error:
        raise ProofRefused(f"it is not a proof ({ascii(str(error))[1:-1]})") from None
    except MalformedError as error:
        raise ProofRefused(str(error)) from None
    if root != checkpoint.place.root:
        raise ProofRefused("the path does not lead to the root that was signed")
    return Proven(file.sequence, checkpoint.place.size, checkpoint.key_id, checkpoint.wall_ms, line.members)


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    format: str
    sequence: int
    record: str
    path: list[str]
    checkpoint: dict[str, Any]


def _step(text: str) -> bytes:
    try:
        step = bytes.fromhex(text)
    except ValueError:
        raise MalformedError("the path is not hexadecimal") from None
    if len(step) != HASH_BYTES:
        raise MalformedError("the path has a hash of another length")
    return step


def _covering(path: str | os.PathLike[str], sequence: int) -> Checkpoint:
    directory = open_private_directory(path)
    try:
        checkpoint = newest_checkpoint(directory)
    finally:
        os.close(directory)
    if checkpoint is None:
        raise ConfigurationError(
            "the log has no checkpoint: only a broker that signs its log can prove records"
        )
    if sequence > checkpoint.place.size:
        raise ConfigurationError(
            f"record {sequence} is not signed yet (the newest checkpoint covers {checkpoint.place.size}): "
            "one is made within a minute of the record, and when the broker stops"
        )
    if sequence <= checkpoint.base.size:
        raise ConfigurationError(
            f"record {sequence} was dropped: the log begins at {checkpoint.base.size + 1}"
        )
    return checkpoint
