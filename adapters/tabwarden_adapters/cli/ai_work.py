"""What the `tabwarden ai` commands do. Each gives a value for `emit`; none prints."""

import getpass
import sys
import warnings
from pathlib import Path
from typing import Any

from tabwarden.errors import ConfigurationError

from tabwarden_adapters import ai as stored
from tabwarden_adapters.ai import ApiKey, KeyFile, origin_of
from tabwarden_adapters.cli.model_settings import KEY_PROTECTOR
from tabwarden_adapters.cli.policy_work import ENDING
from tabwarden_adapters.credentials import PROTECTOR_NAMES, chosen_protector

KEY_NAME = "ai-key.json"
DEFAULT_PROTECTOR = KEY_PROTECTOR
_MAX_LINE = 4096 + 2  # a key and its end of line


def default_key_path() -> Path:
    """Where the gateway's key is kept: a place that survives a restart."""
    try:
        return Path.home().absolute() / ".local" / "state" / "tabwarden" / "ai" / KEY_NAME
    except RuntimeError:
        raise ConfigurationError("no home folder is known: set HOME, or give --credential") from None


def key_file(path: Path | None, protector: str = DEFAULT_PROTECTOR) -> KeyFile:
    """The key at `path`, sealed by a protector of this name; `key-file` keeps its own key beside it.

    Raises `ConfigurationError` for a protector that cannot be used here, or not without a person or after a
    restart.
    """
    where = default_key_path() if path is None else path.absolute()
    if protector in ENDING:
        raise ConfigurationError(
            f"protector {protector} would lose the key, or ask for it in a running broker: take "
            + ", ".join(name for name in PROTECTOR_NAMES if name not in ENDING)
        )
    return KeyFile(where, chosen_protector(protector, key_directory=where.parent).protector)


def set_key(url: str, path: Path | None, protector: str) -> dict[str, Any]:
    """Ask for the key of the gateway at `url` and store it. What cannot be is found before anybody types."""
    origin = origin_of(url)
    file = key_file(path, protector)
    file.store(origin, ask_key(origin))
    return {"stored": str(file.path), "origin": origin, "protector": protector}


def remove_key(path: Path | None) -> dict[str, Any]:
    """Delete the stored key. Brokers that run have none from their next call on."""
    where = default_key_path() if path is None else path.absolute()
    return {"removed": stored.remove_key(where), "credential": str(where)}


def ask_key(origin: str) -> ApiKey:
    """From the terminal without echo, or one line of standard input. Never from argv or the environment."""
    if sys.stdin.isatty():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", getpass.GetPassWarning)
                return ApiKey(getpass.getpass(f"API key for {origin}: "))
        except (getpass.GetPassWarning, EOFError):
            raise ConfigurationError(
                "no key was read: this terminal cannot hide what is typed, or gave none"
            ) from None
    line = sys.stdin.buffer.readline(_MAX_LINE).rstrip(b"\r\n")
    return ApiKey(line.decode("ascii", "replace"))
