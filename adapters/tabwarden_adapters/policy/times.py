"""RFC 3339 times with a zone, as milliseconds since the Unix epoch."""

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(text: str) -> int | None:
    """Milliseconds since the epoch, cut down; None when it is not RFC 3339 or lies before 1970."""
    if _RFC3339.fullmatch(text) is None:
        return None
    try:
        since = datetime.fromisoformat(text) - _EPOCH
    except (ValueError, OverflowError):
        return None
    milliseconds = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    return milliseconds if milliseconds >= 0 else None


def write_time(milliseconds: int) -> str:
    """The same instant in UTC, to the second: `2027-01-31T00:00:00Z`."""
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
