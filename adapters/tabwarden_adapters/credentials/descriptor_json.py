"""A connection descriptor as JSON: what is sealed, and the envelope around it. Strict both ways."""

import base64
import binascii
import json
from typing import Any

from tabwarden.errors import DescriptorError, MalformedError
from tabwarden.limits import ED25519_PUBLIC_BYTES, INSTANCE_BYTES, MLDSA_PUBLIC_BYTES, TOKEN_BYTES
from tabwarden.model import ConnectionDescriptor

MAX_ENVELOPE_BYTES = 16 * 1024  # a sealed descriptor is 6 KiB, most of it the ML-DSA-87 key

_LENGTHS = {
    "token": TOKEN_BYTES,
    "ed_public": ED25519_PUBLIC_BYTES,
    "pq_public": MLDSA_PUBLIC_BYTES,
    "instance": INSTANCE_BYTES,
}
_OTHERS = {"address", "principal_id", "generation", "protocol", "expires_at_ms"}
_ENVELOPE = {"format", "protocol", "sealed"}


def descriptor_to_json(descriptor: ConnectionDescriptor) -> bytes:
    """What is sealed. Contains the token: it must go nowhere but into a protector."""
    members: dict[str, Any] = {name: _encode64(getattr(descriptor, name)) for name in _LENGTHS}
    members |= {name: getattr(descriptor, name) for name in sorted(_OTHERS)}
    return json.dumps(members, separators=(",", ":")).encode("ascii")


def descriptor_from_json(plaintext: bytes) -> ConnectionDescriptor:
    """Raises `DescriptorError`, which says nothing of what was read."""
    members = _strict_object(plaintext, set(_LENGTHS) | _OTHERS)
    values: dict[str, Any] = {name: members[name] for name in _OTHERS}
    for name, length in _LENGTHS.items():
        values[name] = _decode64(members[name], name)
        if len(values[name]) != length:
            raise _damaged(name)
    for name in ("address", "principal_id", "protocol"):
        if not isinstance(values[name], str):
            raise _damaged(name)
    if type(values["generation"]) is not int:
        raise _damaged("generation")
    if values["expires_at_ms"] is not None and type(values["expires_at_ms"]) is not int:
        raise _damaged("expires_at_ms")
    try:
        return ConnectionDescriptor(**values)
    except (MalformedError, ValueError):
        raise _damaged("address") from None  # the one thing that it checks


def envelope_to_json(format_name: str, protocol: str, sealed: bytes) -> bytes:
    """The file's contents: how it is protected, for which protocol, and the sealed descriptor."""
    members = {"format": format_name, "protocol": protocol, "sealed": _encode64(sealed)}
    return json.dumps(members, separators=(",", ":")).encode("ascii") + b"\n"


def envelope_from_json(data: bytes) -> tuple[str, str, bytes]:
    """Format, protocol and sealed bytes. Raises `DescriptorError`; a plaintext descriptor gets its own."""
    members = _strict_object(data, _ENVELOPE)
    for name in ("format", "protocol"):
        if not isinstance(members[name], str):
            raise _damaged(name)
    return members["format"], members["protocol"], _decode64(members["sealed"], "sealed")


def protection_context(protocol: str) -> bytes:
    """Binds the sealed descriptor to the envelope's protocol (its format is bound by the protector)."""
    return b"tabwarden connection descriptor\0" + protocol.encode("utf-8", "surrogatepass")


def _strict_object(data: bytes, names: set[str]) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise DescriptorError("the descriptor has a member twice: pair again")
        return members

    try:
        members = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise DescriptorError("the file is not a connection descriptor: pair again") from None
    if not isinstance(members, dict):
        raise DescriptorError("the file is not a connection descriptor: pair again")
    if "token" in members and "token" not in names:
        raise DescriptorError(
            "this descriptor is not protected: delete the file, restart the broker (its token may be known "
            "to others), and pair again"
        )
    if set(members) != names:
        raise DescriptorError("the descriptor has an unknown format: pair again with this version")
    return members


def _encode64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decode64(text: object, name: str) -> bytes:
    try:
        if not isinstance(text, str) or "=" in text:
            raise ValueError
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if _encode64(data) != text:  # bits that belong to nothing, or the other alphabet
            raise ValueError
    except (ValueError, binascii.Error):
        raise _damaged(name) from None
    return data


def _damaged(name: str) -> DescriptorError:
    return DescriptorError(f"the descriptor is damaged ({name}): pair again")
