"""`host.json`: where the host listens, and the token that only this user can read.

Besides the reference's four fields ours has `startedTicks`, when its process began (proc(5), `starttime`,
clock ticks since boot): a process that got a dead host's id later is then not taken for the host. Other
engines ignore it, and it may be absent.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.private_files import open_private_directory, open_private_file
from tabwarden.protocol.codec import parse_json

from tabwarden_adapters.host.limits import MAX_HOST_FILE
from tabwarden_adapters.host.problems import HostProblem, HostUnavailable

NAME = "host.json"
LOOPBACK = "127.0.0.1"

_Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
# Only what our own process table could hold: 0 and negative numbers mean groups to kill(2).
_Pid = Annotated[int, msgspec.Meta(ge=1, le=2**22)]
_Token = Annotated[str, msgspec.Meta(pattern="^[0-9A-Fa-f]{16,256}$")]
# The protocol has no such fields: 127.0.0.1 is fixed. A file that has them and says otherwise is refused.
_ADDRESSES = ("address", "host", "controlHost", "cdpHost", "controlAddress", "cdpAddress")


class _Fields(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    cdp_port: _Port
    control_port: _Port
    token: _Token
    pid: _Pid
    started_ticks: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def __repr__(self) -> str:
        return "_Fields(...)"


@dataclass(frozen=True, slots=True)
class HostFile:
    """What a valid file says."""

    cdp_port: int
    control_port: int
    token: str = field(repr=False)
    pid: int
    started_ticks: int | None = None

    def encode(self) -> bytes:
        """The file's bytes."""
        fields = {
            "cdpPort": self.cdp_port,
            "controlPort": self.control_port,
            "token": self.token,
            "pid": self.pid,
        }
        if self.started_ticks is not None:
            fields["startedTicks"] = self.started_ticks
        return msgspec.json.encode(fields) + b"\n"

    @property
    def alive(self) -> bool:
        """Whether the process that wrote it may still run. False also when its id was given to another."""
        try:
            os.kill(self.pid, 0)
        except OSError:
            # Also when it may not be signalled: then it is another user's, and did not write this file.
            return False
        started = process_started(self.pid)
        return started is None or self.started_ticks is None or started == self.started_ticks


def default_home(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of host.json: `WB_HOME`, or `~/.whittlebrowser`. Raises `ConfigurationError`."""
    value = (os.environ if environ is None else environ).get("WB_HOME", "")
    if not value:
        return Path.home() / ".whittlebrowser"
    if not os.path.isabs(value):
        raise ConfigurationError("WB_HOME must be an absolute path")
    return Path(value)


def process_started(pid: int) -> int | None:
    """Clock ticks from boot to the process's start; None where the system does not tell (proc(5))."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read(4096)
        # The second field is the program's name and may hold anything, parentheses too.
        return int(text.rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def read_host_file(home: Path) -> HostFile:
    """The file in `home`, checked for owner, mode, links and contents, not for life.

    Raises `HostUnavailable` with the first five of `HostProblem` but `DEAD`.
    """
    try:
        directory = open_private_directory(home)
    except (FileNotFoundError, NotADirectoryError):
        raise HostUnavailable(HostProblem.NO_FILE) from None
    except (ConfigurationError, OSError, ValueError):
        raise HostUnavailable(HostProblem.FILE_REFUSED) from None
    try:
        return read_in(directory)
    finally:
        os.close(directory)


def read_in(directory: int) -> HostFile:
    """As `read_host_file`, in an open private folder."""
    try:
        file = open_private_file(NAME, os.O_RDONLY, directory=directory)
        with os.fdopen(file, "rb") as stream:
            data = stream.read(MAX_HOST_FILE + 1)
    except FileNotFoundError:
        raise HostUnavailable(HostProblem.NO_FILE) from None
    except (ConfigurationError, OSError):
        raise HostUnavailable(HostProblem.FILE_REFUSED) from None
    return parse_host_file(data)


def parse_host_file(data: bytes) -> HostFile:
    """Strict JSON with the four fields; unknown fields are ignored. Raises `HostUnavailable`."""
    if len(data) > MAX_HOST_FILE:
        raise HostUnavailable(HostProblem.FILE_MALFORMED)
    try:
        value = parse_json(data)
        found = msgspec.convert(value, _Fields)
    except (MalformedError, msgspec.ValidationError):
        raise HostUnavailable(HostProblem.FILE_MALFORMED) from None
    if any(value.get(name, LOOPBACK) != LOOPBACK for name in _ADDRESSES):
        raise HostUnavailable(HostProblem.NOT_LOOPBACK)
    if not re.fullmatch("[0-9A-Fa-f]+", found.token):  # `$` alone lets a last newline through
        raise HostUnavailable(HostProblem.FILE_MALFORMED)
    return HostFile(found.cdp_port, found.control_port, found.token, found.pid, found.started_ticks)
