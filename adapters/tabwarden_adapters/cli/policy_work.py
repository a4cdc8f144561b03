"""What the `tabwarden policy` commands do. Each gives a value for `emit`; none prints."""

import getpass
import sys
from pathlib import Path
from typing import Any

from tabwarden.clock import SystemClock
from tabwarden.errors import ConfigurationError
from tabwarden.private_files import ensure_private_directory

from tabwarden_adapters import policy as policies
from tabwarden_adapters.credentials import AUTO, PROTECTOR_NAMES, chosen_protector

PRIVATE_NAME = "policy-private.json"
PUBLIC_NAME = "policy-public.json"
STATE_NAME = "policy-state.json"
DEFAULT_PROTECTOR = "key-file"
ENDING = (AUTO, "kernel-keyring", "passphrase")  # keys that end with the machine's run, or need a person
_KEY_FILE_BYTES = 16 * 1024


def default_state_dir() -> Path:
    """Where a device keeps what it has seen of policies: a place that survives a restart."""
    try:
        return Path.home() / ".local" / "state" / "tabwarden" / "policy"
    except RuntimeError:
        raise ConfigurationError("no home folder is known: set HOME, or give --state") from None


def state_file(folder: Path | None, protector: str) -> policies.StateFile:
    """The device's state, sealed by a protector of this name; `key-file` keeps its key beside it.

    Raises `ConfigurationError` for a protector that cannot be used here, or whose key a restart would take.
    """
    where = default_state_dir() if folder is None else folder
    if protector in ENDING:
        raise ConfigurationError(
            f"protector {protector} would lose the state, or ask for it in a running broker: take "
            + ", ".join(name for name in PROTECTOR_NAMES if name not in ENDING)
        )
    chosen = chosen_protector(protector, key_directory=where)
    return policies.StateFile(where / STATE_NAME, chosen.protector)


def keygen(folder: Path, *, passphrase: bool) -> dict[str, Any]:
    """Make both key files in a private folder."""
    for name in (PRIVATE_NAME, PUBLIC_NAME):
        if (folder / name).is_symlink() or (folder / name).exists():
            raise ConfigurationError(f"{folder / name} is there already: choose another folder")
    ensure_private_directory(folder)
    data, keys = policies.new_private_keys(ask_passphrase(new=True) if passphrase else None)
    policies.create_private_file(folder / PRIVATE_NAME, data)
    policies.replace_public_file(folder / PUBLIC_NAME, policies.write_public_keys(keys.public), replace=False)
    return {
        "key_id": keys.public.key_id,
        "private": str(folder / PRIVATE_NAME),
        "public": str(folder / PUBLIC_NAME),
        "protection": "passphrase" if passphrase else "none",
    }


def init(draft: Path) -> dict[str, Any]:
    """Write the starter."""
    if draft.suffix != ".toml":
        raise ConfigurationError(f"{draft}: a draft has comments, so it is TOML: name it something.toml")
    text = policies.starter(SystemClock().wall_ms(), draft.name)
    policies.replace_public_file(draft, text.encode(), replace=False)
    return {"draft": str(draft)}


def sign(draft: Path, keys: Path, out: Path, next_keys: Path | None) -> dict[str, Any]:
    """Sign a draft."""
    loaded = policies.load_draft(draft, None if next_keys is None else public_keys(next_keys))
    if moment(loaded.document.expires) <= SystemClock().wall_ms():
        raise ConfigurationError(f"expires: {loaded.document.expires} is past, so no device would take it")
    if out.exists():
        _check_follows(loaded, out)
    try:
        data = policies.read_private_file(keys, _KEY_FILE_BYTES)
    except FileNotFoundError:
        raise ConfigurationError(
            f"there are no private keys at {keys}: make them with policy keygen"
        ) from None
    passphrase = ask_passphrase(new=False) if policies.needs_passphrase(data) else None
    signing = policies.read_private_keys(data, passphrase)
    envelope = signing.sign(loaded.content)
    # What leaves is looked at as a device will: a fault in signing must not be found there.
    policies.read_envelope(envelope).open_with(signing.public)
    policies.replace_public_file(out, envelope)
    return {"signed": str(out), "key_id": signing.public.key_id, **_facts(loaded)}


def _check_follows(loaded: policies.Loaded, out: Path) -> None:
    """Devices would refuse a version that does not go up; say so now."""
    try:
        before = policies.load_any(out)
    except ConfigurationError as error:
        raise ConfigurationError(f"{out} is there already and is no signed policy ({error})") from None
    if before.key_id is None:
        raise ConfigurationError(f"{out} is there already and is no signed policy: choose another name")
    if loaded.content != before.content and loaded.document.version <= before.document.version:
        raise ConfigurationError(
            f"version: {loaded.document.version} is not higher than {before.document.version} of {out}, so "
            "devices would refuse it"
        )


def verify(file: Path, keys: Path | None, device: bool, state: Path | None, protector: str) -> dict[str, Any]:
    """Check a draft, or a signed policy against keys or against what this device has seen."""
    loaded = policies.load_any(file, None if keys is None else public_keys(keys))
    facts = _facts(loaded)
    facts["signed"] = loaded.key_id is not None
    if device or state is not None:
        data = policies.read_public_file(file, policies.MAX_ENVELOPE_BYTES)
        policies.admit(state_file(state, protector).load(), data, SystemClock().wall_ms())
        facts["device"] = "takes it"
    elif loaded.key_id is not None and not loaded.verified:
        raise ConfigurationError(
            f"{file} says that it is signed with {loaded.key_id}: give the public keys (--keys), or --device"
        )
    if loaded.key_id is not None:
        facts["key_id"] = loaded.key_id
    return facts


def enrol(keys: Path, state: Path | None, protector: str, at_least_version: int) -> dict[str, Any]:
    """Pin keys on this device."""
    public, file = public_keys(keys), state_file(state, protector)
    policies.enrol(file, public, SystemClock().wall_ms(), at_least_version)
    return {"enrolled": public.key_id, "state": str(file.path)}


def explain(
    file: Path, keys: Path | None, grant: str, action: str, place: str | None, at: str | None
) -> dict[str, Any]:
    """Say what is decided and why."""
    loaded = policies.load_any(file, None if keys is None else public_keys(keys))
    compiled = policies.CompiledPolicy(loaded.document)
    explained = policies.explain(compiled, grant, action, place, moment(at))
    verdict = explained.verdict
    return {
        "allowed": verdict.allowed,
        "rule": verdict.rule,
        "ask": verdict.ask,
        "code": None if verdict.code is None else verdict.code.value,
        "objections": [
            {"rule": rule, "reason": reason}
            for rule, reason in zip(verdict.objections, explained.reasons, strict=True)
        ],
        "signatures": "verified" if loaded.verified else "not checked",
    }


def diff(old: Path, new: Path, at: str | None) -> list[dict[str, str]]:
    """The rights that come and go."""
    before, after = (policies.CompiledPolicy(policies.load_any(path).document) for path in (old, new))
    changes = policies.compare(before, after, moment(at))
    return [{"grant": one.grant, "change": one.change, "right": one.right} for one in changes]


def try_cases(file: Path, cases: Path, at: str | None) -> dict[str, Any]:
    """The number of cases, and those that are decided otherwise."""
    compiled = policies.CompiledPolicy(policies.load_any(file).document)
    outcomes = policies.try_cases(compiled, policies.load_cases(cases), moment(at))
    return {
        "cases": len(outcomes),
        "differing": [
            {
                "case": one.number,
                "grant": one.case.grant,
                "action": one.case.action,
                "host": one.case.host,
                "expected": one.case.expect,
                "expected_rule": one.case.rule,
                "decided": one.decided,
                "rule": one.rule,
            }
            for one in outcomes
            if not one.as_expected
        ],
    }


def public_keys(path: Path) -> policies.PublicKeys:
    """Raises `ConfigurationError` naming file and field."""
    try:
        return policies.read_public_keys(policies.read_public_file(path, _KEY_FILE_BYTES))
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def moment(at: str | None) -> int:
    """`at` (RFC 3339), or now, in milliseconds since the epoch."""
    if at is None:
        return SystemClock().wall_ms()
    milliseconds = policies.parse_time(at)
    if milliseconds is None:
        raise ConfigurationError(f"--at: {at!a} is not a time like 2027-01-31T00:00:00Z")
    return milliseconds


def ask_passphrase(*, new: bool) -> str:
    """From the terminal without echo, twice for a new one; or one line of standard input. Never from argv."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    passphrase = getpass.getpass("Passphrase of the policy keys: ")
    if new and getpass.getpass("The same again: ") != passphrase:
        raise ConfigurationError("the two passphrases differ: nothing was made")
    return passphrase


def _facts(loaded: policies.Loaded) -> dict[str, Any]:
    document = loaded.document
    return {
        "version": document.version,
        "issued": document.issued,
        "expires": document.expires,
        "grants": len(document.grants),
        "expired": moment(document.expires) <= SystemClock().wall_ms(),
    }
