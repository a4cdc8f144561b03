"""`tabwarden call` and `tabwarden sessions`: one action, from the command line."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tabwarden import AgentClient
from tabwarden.actions import ACTIONS, parse_arguments
from tabwarden.errors import ActionError, Code, ConfigurationError, MalformedError
from tabwarden.limits import MAX_REQUEST_FILE
from tabwarden.protocol.codec import parse_json

from tabwarden_adapters.cli.settings import default_connection_path
from tabwarden_adapters.credentials import load_descriptor

DEFAULT_WAIT_S = 15.0  # an action has ten
MAX_WAIT_S = 3600.0


class RequestFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`{"action": "read", "args": {}}`"""

    action: str
    args: dict[str, Any] = {}


def read_request(path: Path) -> tuple[str, dict[str, Any]]:
    """A request file of at most 32 KiB, strict JSON. `-` reads standard input.

    Raises `ConfigurationError` saying what is wrong with it.
    """
    try:
        with open(0 if str(path) == "-" else path, "rb", closefd=str(path) != "-") as file:
            if stat.S_ISDIR(os.fstat(file.fileno()).st_mode):
                raise ConfigurationError(f"{path} is a folder: name a request file")
            data = file.read(MAX_REQUEST_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > MAX_REQUEST_FILE:
        raise ConfigurationError(f"{path} is larger than {MAX_REQUEST_FILE // 1024} KiB")
    try:
        request = msgspec.convert(parse_json(data), RequestFile)
    except MalformedError as error:
        raise ConfigurationError(f"{path} is not strict JSON ({error})") from None
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    parse_arguments(request.action, request.args)
    return request.action, request.args


def seconds(wait: float) -> float:
    """Raises `ConfigurationError` for what is no time to wait."""
    if not 0 < wait <= MAX_WAIT_S:
        raise ConfigurationError(f"--wait takes seconds, more than 0 and at most {MAX_WAIT_S:.0f}")
    return wait


def parse_args(action: str, pairs: list[str]) -> dict[str, Any]:
    """`k=v` pairs as the action's argument types: numbers and booleans by their names, objects as JSON.

    Raises `ConfigurationError` for a malformed pair, `ActionError` for an unknown action or bad arguments.
    """
    spec = ACTIONS.get(action)
    if spec is None:
        raise ActionError(Code.UNKNOWN_ACTION)
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"--arg takes name=value, not {pair!r}")
        if name in values:
            raise ConfigurationError(f"--arg {name} is given twice")
        values[name] = _structured(value) if value.startswith("{") else value
    try:
        typed = msgspec.convert(values, spec.arguments, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{action}: {error}") from None
    built: dict[str, Any] = msgspec.to_builtins(typed)
    return built


def _structured(value: str) -> Any:
    try:
        return parse_json(value.encode())
    except (MalformedError, UnicodeEncodeError):
        return value  # text that happens to start with a brace


async def call(
    action: str,
    args: dict[str, Any],
    connection: Path | None,
    ask: Callable[[bool], bytes] | None = None,
    wait_s: float = DEFAULT_WAIT_S,
) -> Any:
    """One call over the paired connection, given up after `wait_s`. `ask` gives a passphrase. Raises
    `TabwardenError`."""
    descriptor = load_descriptor(connection or default_connection_path(), ask=ask)
    async with AgentClient(descriptor, deadline_s=wait_s) as client:
        return await client.call(action, args)


def render_sessions(tabs: list[dict[str, Any]], console: Console) -> None:
    """A table of tabs. Titles are page text: control characters are dropped and no markup is read."""
    table = Table("", "session", "title")
    for tab in tabs:
        title = "".join(character for character in str(tab["title"]) if character.isprintable())
        table.add_row("*" if tab["foreground"] else "", tab["id"], Text(title))
    console.print(table)
    console.print("* foreground", style="dim")
