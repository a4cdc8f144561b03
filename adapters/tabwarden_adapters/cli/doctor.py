"""`tabwarden doctor`: what this machine has, and what to do about what it lacks."""

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tabwarden.clock import SystemClock
from tabwarden.errors import ConfigurationError, DescriptorError, TabwardenError
from tabwarden.private_files import ensure_private_directory
from tabwarden.providers import liboqs_is_installed, load_provider
from tabwarden.service.peer_socket import PeerLookup

from tabwarden_adapters.audit import AuditLogDamaged, verify_log
from tabwarden_adapters.browser import find_chromium
from tabwarden_adapters.cli.settings import ServeSettings
from tabwarden_adapters.credentials import (
    PassphraseProtector,
    availability,
    chosen_protector,
    default_runtime_dir,
    descriptor_format,
    load_descriptor,
)

_CHROMIUM_S = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One check. `ok` None means: worth knowing, nothing to mend."""

    check: str
    ok: bool | None
    detail: str
    advice: str = ""


def examine(settings: ServeSettings) -> Iterator[Finding]:
    """All checks, each contained: one that fails unexpectedly is itself a finding."""
    checks: tuple[tuple[str, Callable[[ServeSettings], Finding]], ...] = (
        ("chromium", _chromium),
        ("cryptography", _cryptography),
        ("liboqs", _liboqs),
        ("credentials", _credentials),
        ("other protectors", _other_protectors),
        ("runtime folder", _runtime_folder),
        ("clock", _clock),
        ("peer identity", _peers),
        ("audit folder", _audit),
        ("connection", _connection),
    )
    for name, check in checks:
        try:
            yield check(settings)
        except TabwardenError as error:
            yield Finding(name, False, str(error), "see the message")
        except OSError as error:
            yield Finding(name, False, error.strerror or type(error).__name__, "check the file or folder")


def _chromium(_: ServeSettings) -> Finding:
    try:
        path = find_chromium()
    except ConfigurationError as error:
        return Finding("chromium", False, "not found", str(error))
    try:
        output = subprocess.run(  # noqa: S603 - the program that serve would run
            [path, "--version"], capture_output=True, text=True, timeout=_CHROMIUM_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return Finding("chromium", False, f"{path} does not run", "reinstall it, or set TABWARDEN_CHROMIUM")
    return Finding("chromium", True, f"{output.strip().splitlines()[0]} ({path})")


def _cryptography(_: ServeSettings) -> Finding:
    provider = load_provider()
    signer = provider.signer()
    works = provider.verify(signer.public, signer.sign(b"doctor", b""), b"doctor", b"")
    ciphertext, secret = provider.encapsulate((key := provider.kem_key()).public)
    works = works and key.decapsulate(ciphertext) == secret
    advice = "" if works else "reinstall the cryptography package"
    return Finding("cryptography", works, "ML-KEM-1024 and ML-DSA-87 work", advice)


def _liboqs(_: ServeSettings) -> Finding:
    found = liboqs_is_installed()
    detail = "a shared liboqs is installed" if found else "not installed; only needed for provider = oqs"
    return Finding("liboqs", None, detail)


def _credentials(settings: ServeSettings) -> Finding:
    if settings.protector == "passphrase":
        return Finding("credentials", None, "passphrase, asked for by name: it is not asked for here")
    return Finding("credentials", True, chosen_protector(settings.protector).reason)


def _other_protectors(_: ServeSettings) -> Finding:
    """What else `protector` may name here. Nothing is stored to find out."""
    found = dict(availability())
    usable = [name for name, problem in found.items() if problem is None]
    problems = [f"{name}: {problem}" for name, problem in found.items() if problem is not None]
    detail = (
        f"usable by name: {', '.join([*usable, 'passphrase'])}. Not here: {'; '.join(problems) or 'none'}"
    )
    return Finding("other protectors", None, detail)


def _runtime_folder(_: ServeSettings) -> Finding:
    return Finding("runtime folder", True, f"{default_runtime_dir()} is yours alone")


def _clock(_: ServeSettings) -> Finding:
    clock = SystemClock()
    first, wall = clock.boottime_ms(), time.gmtime().tm_year
    if clock.boottime_ms() < first:
        return Finding("clock", False, "the monotonic clock goes back", "restart; report the machine")
    if wall < 2025:
        return Finding("clock", False, f"the year is {wall}", "set the clock: expiry dates depend on it")
    return Finding("clock", True, "monotonic, and the date is plausible")


def _peers(_: ServeSettings) -> Finding:
    lookup = PeerLookup()
    try:
        if lookup.available:
            return Finding("peer identity", True, "other users' connections are recognised and closed")
        return Finding("peer identity", None, "this system does not tell whose a connection is")
    finally:
        lookup.close()


def _audit(settings: ServeSettings) -> Finding:
    folder = ensure_private_directory(settings.audit_path)
    try:
        verified = verify_log(folder)
    except AuditLogDamaged as damaged:
        return Finding(
            "audit folder", False, str(damaged), "keep the folder as evidence; serve into a new one"
        )
    if verified.fault is not None:
        return Finding(
            "audit folder", False, str(verified.fault), "keep the folder as evidence; serve into a new one"
        )
    return Finding("audit folder", True, f"{folder}: {verified.records} records, chain intact")


def _connection(settings: ServeSettings) -> Finding:
    path: Path = settings.connection_path
    if not path.exists():
        return Finding("connection", None, f"no broker is paired at {path}")
    try:
        if descriptor_format(path) == PassphraseProtector.format:
            return Finding("connection", None, f"paired at {path}; its passphrase is not asked for here")
        descriptor = load_descriptor(path)
    except DescriptorError as error:
        return Finding("connection", False, str(error), "restart the broker, or remove the file")
    return Finding("connection", True, f"paired with the broker at {descriptor.address}")


def as_json(findings: list[Finding]) -> list[dict[str, Any]]:
    return [asdict(finding) for finding in findings]


def render(findings: list[Finding], console: Console) -> None:
    """A table for a person."""
    marks = {True: ("ok", "green"), False: ("mend", "bold red"), None: ("note", "cyan")}
    table = Table("", "check", "what was found", "what to do")
    for finding in findings:
        table.add_row(Text(*marks[finding.ok]), finding.check, Text(finding.detail), Text(finding.advice))
    console.print(table)
