"""`tabwarden serve`: run a broker until it is told to stop."""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict

import trio
from tabwarden.errors import HostReason

from tabwarden_adapters.audit import DurableAuditLog
from tabwarden_adapters.cli.composition import running_broker
from tabwarden_adapters.cli.settings import ServeSettings
from tabwarden_adapters.policy import PolicyReport

_OF_THE_AUDIT = (HostReason.AUDIT_UNAVAILABLE, HostReason.AUDIT_NOT_SIGNED)


async def serve(settings: ServeSettings, ask: Callable[[bool], bytes] | None = None) -> None:
    """`ask` gives a passphrase. Print one JSON line when ready, then run until SIGINT or SIGTERM."""
    tell = _Teller()
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with running_broker(
            settings, on_error=tell, on_policy=_tell_policy, on_host_gone=_tell_host_gone, ask=ask
        ) as broker:
            tell.audit = broker.audit
            individual = broker.principals is not None
            ready = {
                "ready": True,
                "address": broker.control.address,
                "identity_mode": broker.ruling.identity_mode,
                "connection": None if individual else str(settings.connection_path),
                "principals": str(settings.principals_path) if individual else None,
                "approver": broker.approver,
                "admin": str(settings.admin_path),
                "audit": str(settings.audit_path),
                "audit_keys": asdict(broker.pin),
                "browser": broker.browser,
                "protection": broker.protection,
                "policy_version": broker.ruling.version(),
                "scopes": sorted(broker.ruling.scopes),
                "pid": os.getpid(),
            }
            sys.stdout.write(json.dumps(ready) + "\n")
            sys.stdout.flush()
            if not broker.ruling.scopes:
                sys.stderr.write("No scope is enabled, so every call will be denied: see --scope.\n")
            async for _ in signals:
                return


def _tell_host_gone() -> None:
    told = {"host": "gone", "message": "the host has ended: every call is denied until you start serve again"}
    sys.stderr.write(json.dumps(told) + "\n")
    sys.stderr.flush()


def _tell_policy(report: PolicyReport) -> None:
    told = {"policy": report.kind, "version": report.version, "message": report.message}
    sys.stderr.write(json.dumps(told) + "\n")
    sys.stderr.flush()


class _Teller:
    """One JSON line for each reason; of the audit log also why, which names no file and no record."""

    def __init__(self) -> None:
        self.audit: DurableAuditLog | None = None

    def __call__(self, reason: HostReason) -> None:
        told = {"broker": reason.value}
        if reason in _OF_THE_AUDIT and self.audit is not None and self.audit.trouble is not None:
            told["why"] = self.audit.trouble
        sys.stderr.write(json.dumps(told) + "\n")
        sys.stderr.flush()
