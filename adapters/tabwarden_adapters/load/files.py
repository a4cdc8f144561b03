"""The files of a report: whole or not at all, for this user only, since they name agents."""

import contextlib
import csv
import io
import os
import secrets
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.load.report import Report
from tabwarden_adapters.load.samples import Sample
from tabwarden_adapters.load.timed_client import PHASES

COLUMNS = (
    "agent",
    "principal",
    "outcome",
    "code",
    "intended_s",
    "begun_s",
    "asked_s",
    "ended_s",
    *(f"{phase}_ms" for phase in PHASES),
)


def require_places(paths: Collection[Path]) -> None:
    """Before the run rather than after it: that files can be put at all of `paths`, and each at its own.
    Raises `ConfigurationError`."""
    for path in paths:
        if not path.name or path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise ConfigurationError(
                f"cannot write {path}: name a file in a folder that is there and may be written"
            )
    if len({path.absolute() for path in paths}) < len(paths):
        raise ConfigurationError("two of the report's files have the same name: give each its own")


def put(path: Path, data: bytes) -> None:
    """Put `data` at `path` whole, mode 0600. Replaces what is there, a link rather than what it points to.
    Raises `ConfigurationError`."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {os.strerror(error.errno or 0)}") from None


def report_json(report: Report) -> bytes:
    """The report, indented, with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def calls_csv(samples: Iterable[Sample], principals: Sequence[str]) -> bytes:
    """One line for each call, in the order of their ends; RFC 4180. Times in seconds since the start of the
    run; what a call has not come to is empty."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for one in samples:
        times = (one.intended, one.begun, one.asked, one.ended)
        writer.writerow(
            (
                one.agent,
                principals[one.agent],
                one.kind.title,
                one.code,
                *("" if time is None else f"{time / 1e9:.6f}" for time in times),
                *("" if phase is None else f"{phase / 1e6:.3f}" for phase in one.phases),
            )
        )
    return text.getvalue().encode()
