"""Where descriptors and keys go when nobody says otherwise."""

import os
from pathlib import Path

from tabwarden.errors import ConfigurationError
from tabwarden.private_files import ensure_private_directory


def default_runtime_dir() -> Path:
    """A folder that is ours alone (made when absent): `$XDG_RUNTIME_DIR/tabwarden`, or else
    `~/.local/state/tabwarden`.

    XDG_RUNTIME_DIR counts only when it is absolute, ours and 0700, as the XDG Base Directory Specification
    demands; never /tmp. Raises `ConfigurationError` when neither can be private.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and os.path.isdir(runtime):
        try:
            # `ensure` would make a missing one, which is not ours to make.
            return ensure_private_directory(ensure_private_directory(runtime) / "tabwarden")
        except (ConfigurationError, OSError):
            pass
    try:
        home = Path.home()
    except RuntimeError:
        raise ConfigurationError("no home folder is known: set HOME, or name a folder") from None
    if not home.is_absolute():
        raise ConfigurationError("HOME is not an absolute path: set it, or name a folder")
    return ensure_private_directory(home / ".local" / "state" / "tabwarden")
