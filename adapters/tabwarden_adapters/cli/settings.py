"""What `tabwarden serve` may be told, in a TOML file or by flags. A flag wins over the file.

    scopes = ["sessions", "navigate", "read"]    # policy scopes; without any, nothing is allowed
    ask = ["click"]                              # those of them for which a person is asked each time
    allowed_hosts = ["example.org", "*.example.net"]
    resource_hosts = ["cdn.example.com"]         # what pages may load from as well
    browser_context = "isolated"                 # or "shared": see docs/network-guard.md
    host = false                                 # true: a running host's browser, and its person is asked
    host_home = "host"                           # the folder of its host.json, in place of WB_HOME

or, in their place, a signed policy (see docs/policy.md):

    policy = "policy.json"
    policy_state = "state"                       # the folder of what this device has seen of policies
    policy_protector = "key-file"                # what seals that

and for both:

    connection = "agent-connection.json"         # where the sealed descriptor goes (legacy mode)
    principals = "principals"                    # the folder of the sealed descriptors (individual mode)
    admin = "admin.sock"                         # where `tabwarden grants` and `approvals` find the broker
    approver = "terminal"                        # who is asked: "terminal", "command" or "none"
    audit = "audit"                              # the folder of the audit log
    headless = false
    requests_per_minute = 60
    timeout_s = 10.0
    provider = "cryptography"
    protector = "auto"                           # or one by name: see docs/operations.md

and tables `[application]`, `[ai]`, `[audit_files]` and `[audit_export]`: see application.py,
model_settings.py, audit_files.py and audit_export.py. Relative paths are relative to the file's own folder.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tabwarden_adapters.cli.application import ApplicationSettings
from tabwarden_adapters.cli.audit_export import AuditExport
from tabwarden_adapters.cli.audit_files import AuditFiles
from tabwarden_adapters.cli.model_settings import ModelSettings
from tabwarden_adapters.cli.toml_files import read_toml
from tabwarden_adapters.credentials import AUTO, default_runtime_dir

CONNECTION_FILE = "agent-connection.json"
AUDIT_FOLDER = "audit"
PRINCIPALS_FOLDER = "principals"
ADMIN_SOCKET = "admin.sock"
ApproverName = Literal["terminal", "command", "none"]
_PATHS = ("policy", "policy_state", "connection", "principals", "admin", "audit", "host_home")


class ServeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of one broker. Paths are None until `resolved`."""

    scopes: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    resource_hosts: tuple[str, ...] = ()
    browser_context: Literal["isolated", "shared"] | None = None
    host: bool = False
    host_home: str | None = None
    policy: str | None = None
    policy_state: str | None = None
    policy_protector: str = "key-file"
    connection: str | None = None
    principals: str | None = None
    admin: str | None = None
    approver: ApproverName | None = None
    audit: str | None = None
    headless: bool = False
    requests_per_minute: Annotated[int, Meta(ge=1, le=100_000)] = 60
    timeout_s: Annotated[float, Meta(gt=0, le=300)] = 10.0
    provider: str = "cryptography"
    application: ApplicationSettings = ApplicationSettings()
    ai: ModelSettings = ModelSettings()
    audit_files: AuditFiles = AuditFiles()
    audit_export: AuditExport = AuditExport()
    protector: str = AUTO

    @property
    def connection_path(self) -> Path:
        """Where the descriptor is stored."""
        return Path(self.connection) if self.connection else default_connection_path()

    @property
    def principals_path(self) -> Path:
        """The folder of the descriptors of individual mode."""
        return Path(self.principals) if self.principals else default_runtime_dir() / PRINCIPALS_FOLDER

    @property
    def admin_path(self) -> Path:
        """The administrator's socket: beside a descriptor of a place of its own, so that two brokers with two
        descriptors do not meet there."""
        if self.admin:
            return Path(self.admin)
        return Path(self.connection).with_suffix(".sock") if self.connection else default_admin_path()

    @property
    def audit_path(self) -> Path:
        """The folder of the audit log."""
        return Path(self.audit) if self.audit else default_runtime_dir() / AUDIT_FOLDER


def default_connection_path() -> Path:
    """Where `serve` writes and `call` looks when nobody says otherwise."""
    return default_runtime_dir() / CONNECTION_FILE


def default_admin_path() -> Path:
    """Where `serve` listens to its administrator when nobody says otherwise."""
    return default_runtime_dir() / ADMIN_SOCKET


def load_settings(path: Path) -> ServeSettings:
    """Read a TOML file. Raises `ConfigurationError` naming the file and the field."""
    settings = read_toml(path, ServeSettings)
    paths = {name: _relative_to(path, getattr(settings, name)) for name in _PATHS}
    return msgspec.structs.replace(
        settings,
        **paths,
        application=msgspec.structs.replace(
            settings.application, store=_relative_to(path, settings.application.store)
        ),
        ai=msgspec.structs.replace(settings.ai, credential=_relative_to(path, settings.ai.credential)),
    )


def _relative_to(file: Path, value: str | None) -> str | None:
    return None if value is None else str(file.absolute().parent / value)
