"""Flags that several commands have, and what they mean."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tabwarden_adapters.cli.settings import default_admin_path

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON even on a terminal.")]
Admin = Annotated[Path | None, Parameter(name="--admin", help="The broker's administration socket.")]


def admin_socket(admin: Path | None) -> Path:
    """The socket of a command: as given, or where `serve` makes it when nobody says otherwise."""
    return default_admin_path() if admin is None else admin.absolute()
