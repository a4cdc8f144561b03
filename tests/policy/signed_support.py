"""A small signed policy to change one thing in, and what a device needs to take it."""

import contextlib
import json
from pathlib import Path
from typing import Any

from tabwarden.actions import parse_arguments
from tabwarden.model import Authorization, Caller
from tabwarden_adapters.credentials import KeyFileProtector
from tabwarden_adapters.policy.enrolment import enrol
from tabwarden_adapters.policy.signed import PolicyReport, SignedPolicy
from tabwarden_adapters.policy.signing import SigningKeys
from tabwarden_adapters.policy.state import StateFile
from tabwarden_adapters.policy.times import parse_time

from tests.support.fakes import ManualClock

KEYS = SigningKeys(b"\x01" * 32, b"\x02" * 32)
OTHER_KEYS = SigningKeys(b"\x03" * 32, b"\x04" * 32)
NOW = parse_time("2027-01-15T00:00:00Z") or 0
DAY = 86_400_000
HELPER, CLICKER, NOBODY = Caller("helper", 2), Caller("clicker", 1), Caller("nobody", 1)


def policy(**changes: Any) -> dict[str, Any]:
    """A valid document. A name with two underscores reaches into a part: `agents__scopes=[...]`."""
    document: dict[str, Any] = {
        "format": "tabwarden-policy/1",
        "version": 5,
        "issued": "2027-01-01T00:00:00Z",
        "expires": "2027-02-01T00:00:00Z",
        "agents": {
            "enabled": True,
            "identityMode": "individual",
            "scopes": ["sessions", "navigate", "read", "click"],
            "resourceHosts": ["cdn.test"],
        },
        "destinations": {"allow": ["good.test", "*.wide.test", "bad.wide.test"], "block": ["bad.wide.test"]},
        "profiles": [{"name": "readers", "scopes": ["sessions", "navigate", "read"]}],
        "groups": [{"name": "staff", "profiles": ["readers"]}],
        "grants": [
            {"id": "helper", "name": "Helper", "profile": "readers", "scopes": ["navigate", "read"],
             "generation": 2},
            {"id": "clicker", "name": "Clicker", "scopes": ["click", "read"], "generation": 1,
             "additionalHosts": ["good.test"], "expires": "2027-01-20T00:00:00Z"},
        ],
    }  # fmt: skip
    for name, value in changes.items():
        part, _, field = name.partition("__")
        if field:
            document[part] = {**document.get(part, {}), field: value}
        else:
            document[part] = value
    return document


def document_bytes(**changes: Any) -> bytes:
    return json.dumps(policy(**changes)).encode()


def signed(keys: SigningKeys = KEYS, **changes: Any) -> bytes:
    return keys.sign(document_bytes(**changes))


class Device:
    """A device with its own folder, clock and state."""

    def __init__(self, folder: Path, *, enrolled: bool = True) -> None:
        self.folder = folder / "device"
        self.folder.mkdir(mode=0o700)
        self.file = folder / "policy.json"
        self.clock = ManualClock(wall=NOW)
        self.reports: list[PolicyReport] = []
        self.state = StateFile(self.folder / "state.json", KeyFileProtector(self.folder))
        if enrolled:
            enrol(self.state, KEYS.public, NOW)
        self.policy = self.start()

    def start(self) -> SignedPolicy:
        """What a restart of the broker makes; nothing is loaded yet."""
        self.policy = SignedPolicy(self.file, self.state, self.clock, report=self.reports.append)
        return self.policy

    def publish(self, keys: SigningKeys = KEYS, **changes: Any) -> None:
        """Put a signed file in the place of the one before, as an editor or a download does."""
        beside = self.file.with_suffix(".new")
        beside.write_bytes(signed(keys, **changes))
        beside.replace(self.file)


async def ask(
    policy_: SignedPolicy, caller: Caller, action: str, args: dict[str, Any] | None = None
) -> Authorization:
    spec, arguments = parse_arguments(action, args or {})
    return await policy_(
        action,
        arguments,
        spec.policy_scope,
        None,
        caller=caller,
        waiting_for_person=contextlib.nullcontext,
    )


async def rule(device: Device, caller: Caller, action: str, args: dict[str, Any] | None = None) -> str | None:
    return (await ask(device.policy, caller, action, args)).rule
