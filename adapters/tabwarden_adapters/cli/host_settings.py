"""What `tabwarden host` may be told, in a TOML file or by flags. A flag wins over the file.

    allow = ["https://shop.test"]        # sites where engines may work without asking first
    ask = ["news.test"]                  # sites where the person is asked; without a scheme https is meant
    off = ["bank.test", "*.bank.test"]   # hosts where they may not, whatever a policy says
    sensitive = ["mail.test"]            # hosts where the person overrode the pause on sensitive pages
    home = "whittlebrowser"              # the folder of host.json; else WB_HOME, or ~/.whittlebrowser
    headless = false
    policy = "policy.json"               # a signed policy (docs/policy.md): what it does not allow is off
    policy_state = "state"
    policy_protector = "key-file"

Relative paths are relative to the file's own folder.
"""

from pathlib import Path

import msgspec

from tabwarden_adapters.cli.toml_files import read_toml
from tabwarden_adapters.host import default_home

_PATHS = ("home", "policy", "policy_state")


class HostSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of one host."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    home: str | None = None
    headless: bool = False
    policy: str | None = None
    policy_state: str | None = None
    policy_protector: str = "key-file"

    @property
    def home_path(self) -> Path:
        """The folder of host.json. Raises `ConfigurationError`."""
        return default_home() if self.home is None else Path(self.home)


def load_host_settings(path: Path) -> HostSettings:
    """Read a TOML file. Raises `ConfigurationError` naming the file and the field."""
    settings = read_toml(path, HostSettings)
    folder = path.absolute().parent
    given = {name: getattr(settings, name) for name in _PATHS}
    placed = {name: str(folder / value) for name, value in given.items() if value is not None}
    return msgspec.structs.replace(settings, **placed)
