"""Public test data that lies beside the checkout, where it does: read in place, never copied."""

import gzip
import json
from pathlib import Path
from typing import Any

import cryptography_vectors

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "corpora"
JSON_PARSING = CORPORA / "jsontestsuite" / "test_parsing"


def json_cases(kind: str) -> list[str]:
    """Names of JSONTestSuite's files of kind `y`, `n` or `i`; none where the folder is absent."""
    return sorted(path.name for path in JSON_PARSING.glob(f"{kind}_*.json"))


def wycheproof(*names: str) -> list[str]:
    """Those of the files that are here."""
    return [name for name in names if (CORPORA / "wycheproof" / name).is_file()]


def wycheproof_cases(name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every (group, test) of one file."""
    groups = json.loads((CORPORA / "wycheproof" / name).read_bytes())["testGroups"]
    return [(group, test) for group in groups for test in group["tests"]]


def unreduced_kem_keys() -> list[bytes]:
    """C2SP/CCTV: ML-KEM-1024 keys, each with one coefficient that is not below q."""
    path = CORPORA / "cctv" / "ML-KEM-1024-modulus.txt.gz"
    if not path.is_file():
        return []
    return [bytes.fromhex(line) for line in gzip.decompress(path.read_bytes()).decode().split()]


def packaged_vectors(*parts: str) -> list[dict[str, str]]:
    """The records of a NIST `.rsp`-like file of the cryptography-vectors distribution."""
    path = Path(cryptography_vectors.__file__).parent.joinpath(*parts)
    records: list[dict[str, str]] = []
    section: dict[str, str] = {}
    record: dict[str, str] = {}
    for line in map(str.strip, [*path.read_text().splitlines(), ""]):
        if line.startswith("#"):
            continue
        if line.startswith("["):
            name, _, value = line.strip("[]").partition(" = ")
            section[name] = value
        elif line:
            name, _, value = line.partition("=")
            record[name.strip()] = value.strip()
        elif record:
            records.append({**section, **record})
            record = {}
    return records
