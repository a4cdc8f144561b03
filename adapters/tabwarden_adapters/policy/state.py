"""What a device remembers of policies: whose it trusts, and the highest that it has seen of everything that
may not go down. Sealed by a credential protector, replaced whole, changed under a lock.

A lost or unreadable state does not mean a new device: it is an error that says what to do, and until that is
done no policy is in force. Who can put an old state back, sealed by the same key, can put an old policy back
too: against programs of the same user, the state is as strong as the protector.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from tabwarden.errors import ConfigurationError, DescriptorError
from tabwarden.limits import HASH_BYTES, MAX_SAFE_INTEGER
from tabwarden.ports import CredentialProtector
from tabwarden.private_files import open_private_directory, open_private_file, replace_private_file
from tabwarden.protocol.codec import base64url

from tabwarden_adapters.policy.document import Counter, Name, NextKeys, Part
from tabwarden_adapters.policy.files import read_private_file
from tabwarden_adapters.policy.reading import strict_json, typed
from tabwarden_adapters.policy.signing import PublicKeys, decoded
from tabwarden_adapters.policy.wire_keys import keys_from_wire, keys_to_wire

STATE_FORMAT = "tabwarden-policy-state/1"
MAX_KNOWN_GRANTS = 100_000  # ids ever seen; each is kept for good
_MAX_STATE_BYTES = 32 * 1024 * 1024
_CONTEXT = b"tabwarden policy state 1"


@dataclass(frozen=True, slots=True)
class DeviceState:
    """`version` and `digest` (SHA-384 of the document; empty when none was seen) are those of the highest
    policy taken, `generations` the highest of each grant id ever seen, `wall_ms` the latest time seen."""

    keys: PublicKeys
    next_keys: PublicKeys | None = None
    version: int = 0
    digest: bytes = b""
    generations: Mapping[str, int] = field(default_factory=dict)
    wall_ms: int = 0


class _Sealed(Part, frozen=True, kw_only=True):
    format: Literal["tabwarden-policy-state/1"]
    protection: Annotated[str, Meta(min_length=1, max_length=64)]
    sealed: str


class _State(Part, frozen=True, kw_only=True):
    keys: NextKeys
    next_keys: NextKeys | None
    version: Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
    digest: Annotated[str, Meta(max_length=64)]
    generations: Annotated[dict[Name, Counter], Meta(max_length=MAX_KNOWN_GRANTS)]
    wall_ms: Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]


class StateFile:
    """The state at one path, in a private folder. Everything here blocks for a few milliseconds."""

    def __init__(self, path: str | os.PathLike[str], protector: CredentialProtector) -> None:
        self.path = Path(os.path.abspath(path))
        self._protector = protector

    def load(self) -> DeviceState:
        """The state of an enrolled device. Raises `ConfigurationError` saying what to do."""
        try:
            data = read_private_file(self.path, _MAX_STATE_BYTES)
        except FileNotFoundError:
            raise ConfigurationError(
                f"there is no policy state at {self.path}: this device is not enrolled, or its state was "
                "removed. No policy is in force until `tabwarden policy enrol` was run with the public keys"
            ) from None
        try:
            return self._open(data)
        except (ConfigurationError, DescriptorError) as error:
            raise ConfigurationError(
                f"the policy state {self.path} cannot be used ({error}). No policy is in force until the "
                "file is removed and `tabwarden policy enrol` was run with the public keys"
            ) from None

    def create(self, state: DeviceState) -> None:
        """The first state of this device. Raises `ConfigurationError` when there is one already."""
        with self._locked(create=True) as directory:
            if self._exists(directory):
                raise ConfigurationError(
                    f"this device is enrolled already ({self.path}): remove that file first if it is to "
                    "forget whose policies it trusts and what it has seen"
                )
            self._write(directory, state)

    @contextmanager
    def changing(self) -> Iterator["Change"]:
        """The state, to be replaced inside the block with `save`; no other process changes it meanwhile.

        Raises `ConfigurationError` as `load` does, or when it cannot be written.
        """
        with self._locked(create=False) as directory:
            yield Change(self.load(), lambda state: self._write(directory, state))

    @contextmanager
    def _locked(self, *, create: bool) -> Iterator[int]:
        try:
            directory = open_private_directory(self.path.parent, create=create)
        except FileNotFoundError:
            self.load()  # says what to do
            raise ConfigurationError(f"the folder of {self.path} came and went: try again") from None
        try:
            lock = open_private_file(f".{self.path.name}.lock", os.O_RDWR | os.O_CREAT, directory=directory)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield directory
            finally:
                os.close(lock)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise ConfigurationError(f"cannot write the policy state {self.path}: {reason}") from None
        finally:
            os.close(directory)

    def _exists(self, directory: int) -> bool:
        try:
            os.stat(self.path.name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _write(self, directory: int, state: DeviceState) -> None:
        plain = json.dumps(
            {
                "keys": keys_to_wire(state.keys),
                "nextKeys": None if state.next_keys is None else keys_to_wire(state.next_keys),
                "version": state.version,
                "digest": base64url(state.digest),
                "generations": dict(state.generations),
                "wallMs": state.wall_ms,
            }
        ).encode("ascii")
        try:
            sealed = self._protector.protect(plain, _CONTEXT)
        except DescriptorError as error:
            raise ConfigurationError(f"cannot seal the policy state {self.path}: {error}") from None
        members = {
            "format": STATE_FORMAT,
            "protection": self._protector.format,
            "sealed": base64url(sealed),
        }
        replace_private_file(directory, self.path.name, json.dumps(members).encode("ascii") + b"\n")

    def _open(self, data: bytes) -> DeviceState:
        file = typed(strict_json(data, "it"), _Sealed, "it")
        if file.protection != self._protector.format:
            raise ConfigurationError(
                f"protection: it is sealed by {file.protection!a}, not by {self._protector.format}"
            )
        sealed = decoded(file.sealed, len(file.sealed) * 3 // 4, "sealed")
        try:
            plain = self._protector.unprotect(sealed, _CONTEXT)
        except DescriptorError:
            raise ConfigurationError("sealed: it was changed, or its key is gone") from None
        state = typed(strict_json(plain, "it"), _State, "it")
        return DeviceState(
            keys_from_wire(state.keys, "keys"),
            None if state.next_keys is None else keys_from_wire(state.next_keys, "nextKeys"),
            state.version,
            decoded(state.digest, HASH_BYTES if state.digest else 0, "digest"),
            state.generations,
            state.wall_ms,
        )


class Change:
    """A state that may be replaced while the lock is held."""

    def __init__(self, state: DeviceState, write: Callable[[DeviceState], None]) -> None:
        self.state = state
        self._write = write

    def save(self, state: DeviceState) -> None:
        """Replace it, on stable storage when this returns."""
        if state != self.state:
            self._write(state)
            self.state = state
