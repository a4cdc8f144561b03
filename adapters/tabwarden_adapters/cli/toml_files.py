"""Settings of a command in a TOML file."""

import tomllib
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.policy import read_public_file

MAX_FILE: Final = 64 * 1024  # bytes
T = TypeVar("T")


def read_toml(path: Path, kind: type[T]) -> T:
    """The file as a `kind`. Raises `ConfigurationError` naming the file and the field."""
    data = read_public_file(path, MAX_FILE)
    try:
        return msgspec.convert(tomllib.loads(data.decode()), kind)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        # What Python's parser lets through of its own: numbers of thousands of digits, endless nesting.
        raise ConfigurationError(
            f"{path} is not TOML that can be read: a number in it is too long, or it is nested too deep"
        ) from None
