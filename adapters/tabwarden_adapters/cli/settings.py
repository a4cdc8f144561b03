"""What `tabwarden serve` may be told, in a TOML file or by flags. A flag wins over the file.

    scopes = ["sessions", "navigate", "read"]    # policy scopes; without any, nothing is allowed
    allowed_hosts = ["example.org", "*.example.net"]
    resource_hosts = ["cdn.example.com"]         # what pages may load from as well
    browser_context = "isolated"                 # or "shared": see docs/network-guard.md
    connection = "agent-connection.json"         # where the sealed descriptor goes
    audit = "audit"                              # the folder of the audit log
    headless = false
    requests_per_minute = 60
    timeout_s = 10.0
    provider = "cryptography"
    protector = "auto"                           # or one by name: see docs/operations.md

and a table `[application]`: see application.py. Relative paths are relative to the file's own folder.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.cli.application import ApplicationSettings
from tabwarden_adapters.credentials import AUTO, default_runtime_dir

CONNECTION_FILE = "agent-connection.json"
AUDIT_FOLDER = "audit"
_MAX_FILE = 64 * 1024


class ServeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of one broker. Paths are None until `resolved`."""

    scopes: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    resource_hosts: tuple[str, ...] = ()
    browser_context: Literal["isolated", "shared"] = "isolated"
    connection: str | None = None
    audit: str | None = None
    headless: bool = False
    requests_per_minute: Annotated[int, Meta(ge=1, le=100_000)] = 60
    timeout_s: Annotated[float, Meta(gt=0, le=300)] = 10.0
    provider: str = "cryptography"
    application: ApplicationSettings = ApplicationSettings()
    protector: str = AUTO

    @property
    def connection_path(self) -> Path:
        """Where the descriptor is stored."""
        return Path(self.connection) if self.connection else default_connection_path()

    @property
    def audit_path(self) -> Path:
        """The folder of the audit log."""
        return Path(self.audit) if self.audit else default_runtime_dir() / AUDIT_FOLDER


def default_connection_path() -> Path:
    """Where `serve` writes and `call` looks when nobody says otherwise."""
    return default_runtime_dir() / CONNECTION_FILE


def load_settings(path: Path) -> ServeSettings:
    """Read a TOML file. Raises `ConfigurationError` naming the file and the field."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > _MAX_FILE:
        raise ConfigurationError(f"{path} is larger than {_MAX_FILE // 1024} KiB: is it a settings file?")
    try:
        settings = msgspec.convert(tomllib.loads(data.decode()), ServeSettings)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    return msgspec.structs.replace(
        settings,
        connection=_relative_to(path, settings.connection),
        audit=_relative_to(path, settings.audit),
        application=msgspec.structs.replace(
            settings.application, store=_relative_to(path, settings.application.store)
        ),
    )


def _relative_to(file: Path, value: str | None) -> str | None:
    return None if value is None else str(file.absolute().parent / value)
