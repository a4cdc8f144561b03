"""The descriptor file: written sealed and whole, read with every check, removed only if it is still ours."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import trio
from tabwarden.errors import ConfigurationError, DescriptorError
from tabwarden.model import ConnectionDescriptor
from tabwarden.ports import CredentialProtector
from tabwarden.private_files import open_private_directory, open_private_file, replace_private_file

from tabwarden_adapters.credentials.descriptor_json import (
    MAX_ENVELOPE_BYTES,
    descriptor_from_json,
    descriptor_to_json,
    envelope_from_json,
    envelope_to_json,
    protection_context,
)
from tabwarden_adapters.credentials.selection import protector_for


class DescriptorStore:
    """Implements `tabwarden.ports.CredentialStore` for one file. Its folder must be private (0700, ours); it
    is made when absent.
    """

    def __init__(self, path: str | os.PathLike[str], protector: CredentialProtector) -> None:
        self.path = Path(os.path.abspath(path))
        self._protector = protector
        self._written: bytes | None = None

    async def __call__(self, descriptor: ConnectionDescriptor, /) -> None:
        """Seal and store; the file is the old one or the new one at any moment, also after a power cut.

        Raises `DescriptorError` (the protector failed) or `ConfigurationError` (folder or file).
        """
        await trio.to_thread.run_sync(self.write, descriptor)

    def write(self, descriptor: ConnectionDescriptor) -> None:
        """As the call, blocking."""
        context = protection_context(descriptor.protocol)
        sealed = self._protector.protect(descriptor_to_json(descriptor), context)
        data = envelope_to_json(self._protector.format, descriptor.protocol, sealed)
        try:
            directory = open_private_directory(self.path.parent, create=True)
            try:
                replace_private_file(directory, self.path.name, data)
            finally:
                os.close(directory)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise ConfigurationError(f"cannot write the descriptor {self.path}: {reason}") from None
        self._written = data

    def remove(self) -> bool:
        """Delete the file if it is what this store wrote last, and not another broker's. Blocking.

        Returns whether it was deleted. Raises `ConfigurationError`.
        """
        if self._written is None:
            return False
        try:
            directory = open_private_directory(self.path.parent)
            try:
                if _read(self.path.name, directory) != self._written:
                    return False
                os.unlink(self.path.name, dir_fd=directory)
                os.fsync(directory)
            finally:
                os.close(directory)
        except FileNotFoundError:
            return False
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise ConfigurationError(f"cannot remove the descriptor {self.path}: {reason}") from None
        self._written = None
        return True


def load_descriptor(
    path: str | os.PathLike[str],
    *,
    key_directory: str | os.PathLike[str] | None = None,
    protocol: str | None = None,
    now_ms: int | None = None,
    ask: Callable[[bool], bytes] | None = None,
) -> ConnectionDescriptor:
    """Open the descriptor file at `path` with the protector that it names. Blocking.

    `key_directory` as for `auto_protector`, `ask` (gives a passphrase) as for `PassphraseProtector`. With
    `protocol`, a descriptor for another one is refused; with `now_ms` (wall time), an expired one. Raises
    `DescriptorError`, which says what to do.
    """
    format_name, stated, sealed = _envelope(path)
    with _naming(path):
        protector = protector_for(format_name, key_directory, ask)
        descriptor = descriptor_from_json(protector.unprotect(sealed, protection_context(stated)))
        if descriptor.protocol != stated or (protocol is not None and stated != protocol):
            raise DescriptorError(
                "the descriptor is for another protocol: use matching versions and pair again"
            )
        if now_ms is not None and descriptor.expires_at_ms is not None and descriptor.expires_at_ms <= now_ms:
            raise DescriptorError("the descriptor has expired: pair again")
        return descriptor


def descriptor_format(path: str | os.PathLike[str]) -> str:
    """The `format` of the descriptor file at `path`. Opens nothing. Raises `DescriptorError`."""
    return _envelope(path)[0]


def descriptor_file_name(principal_id: str, generation: int) -> str:
    """A file name for one capability that does not tell whose it is."""
    name = principal_id.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(b"tabwarden descriptor name\0%d\0%b" % (generation, name)).hexdigest()
    return f"agent-{digest[:32]}.json"


def _envelope(path: str | os.PathLike[str]) -> tuple[str, str, bytes]:
    try:
        data = _read(path, None)
    except FileNotFoundError:
        raise DescriptorError(
            f"there is no descriptor at {path}: start the broker and pair again, or have one issued again"
        ) from None
    except ConfigurationError as error:
        raise DescriptorError(str(error)) from None
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise DescriptorError(f"cannot read the descriptor {path}: {reason}") from None
    with _naming(path):
        return envelope_from_json(data)


@contextlib.contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whoever reads of a damaged descriptor wants to know which."""
    try:
        yield
    except DescriptorError as error:
        raise DescriptorError(f"{os.fspath(path)}: {error}") from None


def _read(path: str | os.PathLike[str], directory: int | None) -> bytes:
    file = open_private_file(path, os.O_RDONLY, directory=directory)
    with os.fdopen(file, "rb") as stream:
        data = stream.read(MAX_ENVELOPE_BYTES + 1)
    if len(data) > MAX_ENVELOPE_BYTES:
        raise ConfigurationError(f"{os.fspath(path)} is too large for a descriptor: pair again")
    return data
