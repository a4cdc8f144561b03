"""`tabwarden audit ship`: every record to a syslog server or a collector, until it is told to stop."""

import contextlib
import hashlib
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio
from tabwarden.errors import ConfigurationError, TabwardenError
from tabwarden.private_files import open_private_directory
from tabwarden_observability.logs import log_sender

from tabwarden_adapters.audit import NAMESPACE, export_in
from tabwarden_adapters.audit.shipping import (
    SD_ID,
    Destination,
    OtlpDestination,
    Shipper,
    SyslogDestination,
    open_cursor,
    parse_address,
    syslog_framing,
)
from tabwarden_adapters.cli.audit_work import existing_log
from tabwarden_adapters.cli.plain import plain_json
from tabwarden_adapters.credentials import default_runtime_dir

_CURSORS = "shipping"
_SCOPE = "tabwarden.audit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipSettings:
    """As the flags of the command. None: not given."""

    to: str
    format: str | None = None
    namespace: str = NAMESPACE
    cursor: Path | None = None
    ca: Path | None = None
    sd_id: str | None = None


def ship(folder: Path, settings: ShipSettings) -> None:
    """Until SIGINT or SIGTERM. Raises `AuditLogDamaged`, `ConfigurationError`."""
    where = destination(settings)
    cursor = settings.cursor or default_cursor(folder, settings.to)
    with existing_log(folder):
        os.close(open_private_directory(folder))  # now, and not when the other side is there at last
    with existing_log(folder), open_cursor(cursor, settings.to) as place:
        shipper = Shipper(folder, where, place, tell=_tell)
        trio.run(_until_told, shipper)


def destination(settings: ShipSettings) -> Destination:
    """Raises `ConfigurationError` for what cannot be, or is of no use there."""
    address = parse_address(settings.to)
    if address == "otlp":
        for flag, value in (("format", settings.format), ("ca", settings.ca), ("sd-id", settings.sd_id)):
            if value is not None:
                raise ConfigurationError(f"--{flag} is not for otlp, which is set up by OTEL_EXPORTER_OTLP_*")
        log_sender(_SCOPE).close()  # what is wrong with the environment is said now
        return OtlpDestination(lambda: log_sender(_SCOPE), settings.namespace)
    export = export_in(settings.format or "jsonl", settings.namespace)
    return SyslogDestination(address, syslog_framing(export, sd_id=settings.sd_id or SD_ID), ca=settings.ca)


def default_cursor(folder: Path, to: str) -> Path:
    """Of this log and this destination."""
    name = hashlib.sha256(f"{folder.absolute()}\0{to}".encode()).hexdigest()[:32]
    return default_runtime_dir() / _CURSORS / f"{name}.json"


async def _until_told(shipper: Shipper) -> None:
    failures: list[Exception] = []

    async def stop(scope: trio.CancelScope) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            receiving.set()
            async for _ in signals:
                scope.cancel()
                return

    receiving = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop, nursery.cancel_scope)
        await receiving.wait()
        try:
            await shipper.run()
        except (TabwardenError, OSError) as error:
            failures.append(error)
        nursery.cancel_scope.cancel()
    if failures:
        raise failures[0]


def _tell(what: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody may listen any more; the records matter
        sys.stderr.write(plain_json(json.dumps(what)) + "\n")
        sys.stderr.flush()
