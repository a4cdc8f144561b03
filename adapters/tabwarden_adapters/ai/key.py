"""The gateway's API key at rest: sealed by a protector, and bound to the one origin that it is for.

The file is JSON: `kind`, `format` (the protector's, in clear) and `sealed`. What is sealed is JSON too:
`origin` and `key`. So a changed address in a settings file or a policy gets no key sent to it.
"""

import base64
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import trio
from msgspec import Meta
from tabwarden.errors import ActionError, Code, ConfigurationError, DescriptorError, MalformedError
from tabwarden.ports import CredentialProtector
from tabwarden.private_files import open_private_directory, open_private_file, replace_private_file
from tabwarden.protocol.codec import base64url, parse_json

from tabwarden_adapters.ai.faults import KEY_ELSEWHERE, NO_KEY

MAX_KEY: Final = 4096  # characters; a signed token of an identity provider has some 2,000
_KIND: Final = "tabwarden-ai-key/1"
_CONTEXT: Final = b"tabwarden ai key 1"
_MAX_FILE: Final = 32 * 1024


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Printable ASCII without spaces, so that nothing in it can end a header (RFC 9110, 5.5)."""

    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.secret) <= MAX_KEY or not all("!" <= one <= "~" for one in self.secret):
            raise ConfigurationError(
                f"the key must be 1 to {MAX_KEY} printable ASCII characters without spaces"
            )


class NoKeyStored(ConfigurationError):
    """There is no key file."""


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Literal["tabwarden-ai-key/1"]
    format: Annotated[str, Meta(min_length=1, max_length=64)]
    sealed: str


class _Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    origin: str
    key: str


class KeyFile:
    """One key at one path, in a private folder (0700, ours). Calling it implements `KeySource`; the key is
    read anew each time and never kept."""

    def __init__(self, path: str | os.PathLike[str], protector: CredentialProtector) -> None:
        self.path = Path(os.path.abspath(path))
        self._protector = protector

    def __repr__(self) -> str:
        return f"KeyFile({str(self.path)!r})"

    async def __call__(self, origin: str, /) -> ApiKey | None:
        """The key, if it is for `origin`. Without one: None for `http`, which is for this machine only;
        else it raises `ActionError` with `not-available`, as it does for a file that cannot be opened."""
        rule = NO_KEY
        local = origin.startswith("http:")
        try:
            # Reading has no side effects, so a call that is over need not wait for a slow protector.
            stored, key = await trio.to_thread.run_sync(self.load, abandon_on_cancel=True)
            if stored == origin:
                return key
            rule = KEY_ELSEWHERE
        except NoKeyStored:
            pass
        except (ConfigurationError, DescriptorError):
            local = False
        if local:
            return None
        raise ActionError(Code.NOT_AVAILABLE, rule=rule)

    def load(self) -> tuple[str, ApiKey]:
        """The origin and its key. Blocking. Raises `ConfigurationError` or `DescriptorError`; neither holds
        anything of the file."""
        envelope = self._envelope()
        if envelope.format != self._protector.format:
            raise ConfigurationError(
                f"the key in {self.path} is sealed by another protector ({envelope.format[:64]!a}): "
                "run tabwarden ai set-key again"
            )
        sealed = None
        try:
            plain = self._protector.unprotect(_decoded(envelope.sealed), _CONTEXT)
            sealed = msgspec.convert(parse_json(plain), _Sealed)
        except (ValueError, msgspec.ValidationError):  # MalformedError is a ValueError
            pass
        if sealed is None:
            raise self._damaged()
        return sealed.origin, ApiKey(sealed.key)

    def store(self, origin: str, key: ApiKey) -> None:
        """Seal and store; the file is the old one or the new one at any moment. Blocking.

        Raises `DescriptorError` (the protector failed) or `ConfigurationError` (folder or file).
        """
        plain = json.dumps({"origin": origin, "key": key.secret}).encode("ascii")
        members = {
            "kind": _KIND,
            "format": self._protector.format,
            "sealed": base64url(self._protector.protect(plain, _CONTEXT)),
        }
        try:
            directory = open_private_directory(self.path.parent, create=True)
            try:
                replace_private_file(directory, self.path.name, json.dumps(members).encode("ascii") + b"\n")
            finally:
                os.close(directory)
        except OSError as error:
            raise _cannot("write", self.path, error) from None

    def _envelope(self) -> _Envelope:
        try:
            directory = open_private_directory(self.path.parent)
            try:
                file = open_private_file(self.path.name, os.O_RDONLY, directory=directory)
            finally:
                os.close(directory)
            with os.fdopen(file, "rb") as stream:
                data = stream.read(_MAX_FILE + 1)
        except FileNotFoundError:
            raise NoKeyStored(f"there is no key at {self.path}: store it with tabwarden ai set-key") from None
        except OSError as error:
            raise _cannot("read", self.path, error) from None
        try:
            if len(data) <= _MAX_FILE:
                return msgspec.convert(parse_json(data), _Envelope)
        except (MalformedError, msgspec.ValidationError):
            pass
        raise self._damaged()

    def _damaged(self) -> ConfigurationError:
        return ConfigurationError(f"the key file {self.path} is damaged: run tabwarden ai set-key again")


def remove_key(path: Path) -> bool:
    """Delete the key file at `path`, whatever is in it. Blocking. Returns whether there was one.

    Raises `ConfigurationError`.
    """
    try:
        directory = open_private_directory(path.parent)
        try:
            os.unlink(path.name, dir_fd=directory)
            os.fsync(directory)
        finally:
            os.close(directory)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _cannot("remove", path, error) from None
    return True


def _cannot(what: str, path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"cannot {what} the key file {path}: {os.strerror(error.errno or 0)}")


def _decoded(text: str) -> bytes:
    """Unpadded base64url (RFC 4648, 5). Raises ValueError for any other text."""
    data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True)
    if base64url(data) != text:
        raise ValueError
    return data
