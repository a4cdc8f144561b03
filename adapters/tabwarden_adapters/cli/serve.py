"""`tabwarden serve`: run a broker until it is told to stop."""

import json
import os
import signal
import sys
from collections.abc import Callable

import trio
from tabwarden.errors import HostReason

from tabwarden_adapters.cli.composition import running_broker
from tabwarden_adapters.cli.settings import ServeSettings


async def serve(settings: ServeSettings, ask: Callable[[bool], bytes] | None = None) -> None:
    """`ask` gives a passphrase. Print one JSON line when ready, then run until SIGINT or SIGTERM."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with running_broker(settings, on_error=_tell, ask=ask) as broker:
            ready = {
                "ready": True,
                "address": broker.control.address,
                "connection": str(settings.connection_path),
                "audit": str(settings.audit_path),
                "browser": broker.browser,
                "protection": broker.protection,
                "scopes": list(settings.scopes),
                "pid": os.getpid(),
            }
            sys.stdout.write(json.dumps(ready) + "\n")
            sys.stdout.flush()
            if not settings.scopes:
                sys.stderr.write("No scope is enabled, so every call will be denied: see --scope.\n")
            async for _ in signals:
                return


def _tell(reason: HostReason) -> None:
    sys.stderr.write(json.dumps({"broker": reason.value}) + "\n")
