"""Drafts: what people write and `sign` turns into a document.

A draft is TOML, which has comments, or JSON. The fields are the same. From TOML the document is made anew, as
JSON; TOML's own date-times become RFC 3339 texts. From JSON the very bytes are taken.
"""

import json
import tomllib
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.policy.document import FORMAT, PolicyDocument
from tabwarden_adapters.policy.files import read_public_file
from tabwarden_adapters.policy.reading import MAX_DOCUMENT_BYTES, document_of, read_document, strict_json
from tabwarden_adapters.policy.signing import (
    ENVELOPE_FORMAT,
    MAX_ENVELOPE_BYTES,
    PublicKeys,
    read_envelope,
)
from tabwarden_adapters.policy.wire_keys import keys_to_wire


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document from a draft, or from a signed policy whose signatures were checked only if `verified`."""

    document: PolicyDocument
    content: bytes = field(repr=False)
    key_id: str | None = None
    verified: bool = False


def load_draft(path: Path, next_keys: PublicKeys | None = None) -> Loaded:
    """The document that the draft at `path` makes, with `next_keys` for a rotation (TOML only).

    Raises `ConfigurationError` naming the field.
    """
    data = read_public_file(path, MAX_DOCUMENT_BYTES)
    if path.suffix == ".toml":
        value = toml_value(data, path)
        value.setdefault("format", FORMAT)
        if next_keys is not None:
            value["nextKeys"] = keys_to_wire(next_keys)
        document = document_of(value)
        content = json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"
        return Loaded(document, content)
    if next_keys is not None:
        raise ConfigurationError("a JSON draft is signed as it is: write nextKeys into it, or use TOML")
    if _is_envelope(data):
        raise ConfigurationError(f"{path} is signed already: sign its draft")
    return Loaded(read_document(data), data)


def load_any(path: Path, keys: PublicKeys | None = None) -> Loaded:
    """A draft, or a signed policy. With `keys` it must be signed with them. Raises `ConfigurationError`."""
    if path.suffix != ".toml":
        data = read_public_file(path, MAX_ENVELOPE_BYTES)
        if keys is not None or _is_envelope(data):
            envelope = read_envelope(data)
            content = envelope.document if keys is None else envelope.open_with(keys)
            return Loaded(read_document(content), content, envelope.key_id, keys is not None)
    elif keys is not None:
        raise ConfigurationError(f"{path} is a draft: only a signed policy can be verified with keys")
    return load_draft(path)


def toml_value(data: bytes, path: Path) -> dict[str, Any]:
    """A TOML file as JSON values. Raises `ConfigurationError`."""
    try:
        value = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from None
    except ValueError:
        # The rest of what `int` and `float` refuse: a number of more digits than Python reads.
        raise ConfigurationError(f"{path} is not TOML that can be read: a number in it is too long") from None
    except RecursionError:
        raise ConfigurationError(f"{path} is not TOML that can be read: it is nested too deep") from None
    converted: dict[str, Any] = _json_value(value, "")
    return converted


def _json_value(value: Any, at: str) -> Any:
    if isinstance(value, dict):
        return {name: _json_value(item, f"{at}.{name}" if at else name) for name, item in value.items()}
    if isinstance(value, list):
        return [_json_value(item, f"{at}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat().removesuffix("+00:00") + ("Z" if _is_utc(value) else "")
    if isinstance(value, (date, time)):
        raise ConfigurationError(f"{at}: write a date, a time and a zone, like 2027-01-31T00:00:00Z")
    return value


def _is_utc(value: datetime) -> bool:
    return not value.utcoffset()


def _is_envelope(data: bytes) -> bool:
    value = strict_json(data, "the policy")
    return isinstance(value, dict) and value.get("format") == ENVELOPE_FORMAT
