"""Records as syslog messages (RFC 5424), with their length in front (RFC 6587, section 3.4.1).

    <length> <PRI>1 <time> <host> tabwarden - <type> [<SD-ID> seq="7" hash="…"] <the record in its format>

Facility 13 (log audit). The SD-ID is `tabwarden@32473`: 32473 is the number that RFC 5612 keeps for examples,
since there is no enterprise number of our own; an installation that has one may set it.
"""

import re
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.audit.exports import Export
from tabwarden_adapters.audit.reader import AuditRecord
from tabwarden_adapters.audit.said import Said, said_by

SD_ID: Final = "tabwarden@32473"
_FACILITY = 13
_NOTICE, _WARNING, _ERROR, _INFORMATIONAL = 5, 4, 3, 6
_SEVERITIES = {"denied": _WARNING, "failed": _ERROR}
_NIL = "-"
_SD_ID = re.compile(
    r"[!#-<>-\\^-~]{1,27}@[1-9][0-9]{0,8}(\.[0-9]{1,9})*"
)  # an SD-NAME without @, and a number


def syslog_framing(
    export: Export, *, host: str | None = None, sd_id: str = SD_ID
) -> Callable[[AuditRecord], bytes]:
    """What makes the frame of one record. `host`: this machine's name when None.

    Raises `ConfigurationError` for an `sd_id` that is not NAME@NUMBER within 32 characters.
    """
    if len(sd_id) > 32 or "@" in sd_id[: sd_id.rfind("@")] or _SD_ID.fullmatch(sd_id) is None:
        raise ConfigurationError(
            "--sd-id must be NAME@NUMBER, at most 32 characters (RFC 5424, section 6.3.2)"
        )
    shown = _name(socket.gethostname() if host is None else host, 255)

    def frame(record: AuditRecord) -> bytes:
        said = said_by(record)
        priority = _FACILITY * 8 + _severity(said)
        text = (
            f"<{priority}>1 {_time(said.wall_ms)} {shown} tabwarden {_NIL} {_name(said.type or '', 32)} "
            f'[{sd_id} seq="{_parameter(str(said.sequence))}" hash="{_parameter(said.hash)}"] '
        )
        message = text.encode("ascii") + export(record)
        return b"%d %b" % (len(message), message)

    return frame


def _severity(said: Said) -> int:
    if said.type == "refusals":
        return _WARNING
    if said.type != "agent":
        return _NOTICE
    return _SEVERITIES.get(said.outcome or "", _INFORMATIONAL)


def _name(text: str, most: int) -> str:
    """PRINTUSASCII of RFC 5424: other characters become `?`, an absent one the nil value."""
    return "".join(one if "!" <= one <= "~" else "?" for one in text[:most]) or _NIL


def _parameter(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")


def _time(ms: int | None) -> str:
    if ms is None:
        return _NIL
    try:
        at = datetime.fromtimestamp(ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return _NIL
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
