"""Which protector: the one asked for by name, or the strongest that works here, found by trying."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tabwarden.errors import ConfigurationError, DescriptorError, TabwardenError
from tabwarden.ports import CredentialProtector

from tabwarden_adapters.credentials.dpapi import DpapiProtector
from tabwarden_adapters.credentials.kernel_keyring import KernelKeyringProtector
from tabwarden_adapters.credentials.key_file import KeyFileProtector
from tabwarden_adapters.credentials.keyring_store import KeychainProtector, SecretServiceProtector
from tabwarden_adapters.credentials.passphrase import PassphraseProtector
from tabwarden_adapters.credentials.runtime_dir import default_runtime_dir
from tabwarden_adapters.credentials.systemd_creds import SystemdCredsProtector
from tabwarden_adapters.credentials.tpm2 import Tpm2Protector

AUTO = "auto"
_PROBE_CONTEXT = b"tabwarden probe"

KeyDirectory = str | os.PathLike[str] | None
Ask = Callable[[bool], bytes] | None


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of protector. `make` leaves nothing behind and raises `ConfigurationError` or OSError where it
    cannot be; `gives` says against whom it protects."""

    name: str
    format: str
    gives: str
    make: Callable[[KeyDirectory, Ask], CredentialProtector]
    automatic: bool = True


def _key_file(key_directory: KeyDirectory, _: Ask) -> CredentialProtector:
    return KeyFileProtector(default_runtime_dir() if key_directory is None else key_directory)


# The strongest first, among those that never ask a person. The kernel keyring leads: its key is in no file
# and no chip, ends with the machine's run as brokers do, and only this user (and root) can reach it, while
# whoever may open a TPM or an unlocked desktop store gets at those.
KINDS: tuple[Kind, ...] = (
    Kind(
        "kernel-keyring",
        KernelKeyringProtector.format,
        "key in the Linux kernel keyring: protects against other users, stolen disks and backups; "
        "not against programs of the same user",
        lambda _, __: KernelKeyringProtector(),
    ),
    Kind(
        "tpm2",
        Tpm2Protector.format,
        "key sealed by this machine's TPM: protects against other users, stolen disks and backups; "
        "not against programs of the same user",
        lambda _, __: Tpm2Protector(),
    ),
    Kind(
        "keychain",
        KeychainProtector.format,
        "key in the macOS login Keychain: protects against other users, stolen disks and backups as well as "
        "the login password does; not against programs of the same user",
        lambda directory, _: KeychainProtector(directory),
    ),
    Kind(
        "dpapi",
        DpapiProtector.format,
        "key under Windows DPAPI: protects against other users, stolen disks and backups as well as the "
        "login password does; not against programs of the same user",
        lambda _, __: DpapiProtector(),
    ),
    Kind(
        "secret-service",
        SecretServiceProtector.format,
        "key in the desktop's Secret Service: protects against other users, stolen disks and backups as well "
        "as its password does; not against programs of the same user while it is unlocked",
        lambda directory, _: SecretServiceProtector(directory),
    ),
    Kind(
        "systemd-creds",
        SystemdCredsProtector.format,
        "key under systemd's host key: protects against other users and backups without /var/lib/systemd; "
        "not against stolen disks",
        lambda _, __: SystemdCredsProtector(),
    ),
    Kind("key-file", KeyFileProtector.format, "protects against other users only", _key_file),
    Kind(
        "passphrase",
        PassphraseProtector.format,
        "key from a passphrase: protects against everybody who can neither guess it nor watch this process",
        lambda _, ask: PassphraseProtector(ask),
        automatic=False,
    ),
)
PROTECTOR_NAMES = (AUTO, *(kind.name for kind in KINDS))


@dataclass(frozen=True, slots=True)
class ChosenProtector:
    """`reason` is one sentence for a person: what was chosen, against whom it protects, and why no better."""

    protector: CredentialProtector
    reason: str


def auto_protector(key_directory: KeyDirectory = None, *, kinds: Iterable[Kind] = KINDS) -> ChosenProtector:
    """The first of `kinds` through which a round trip works, leaving out those that ask a person.

    `key_directory` None: `default_runtime_dir()`. Blocking, for a few milliseconds where the kernel keyring
    works. Raises `ConfigurationError` when none does.
    """
    skipped: list[str] = []
    for kind in kinds:
        if not kind.automatic:
            continue
        try:
            protector = kind.make(key_directory, None)
            _round_trip(protector)
        except (OSError, TabwardenError) as error:
            skipped.append(f"{kind.name}: {error}")
            continue
        why = f"; not used: {'; '.join(skipped)}" if skipped else ""
        return ChosenProtector(protector, f"{kind.name}: {kind.gives}{why}")
    raise ConfigurationError(f"descriptors cannot be protected here: {'; '.join(skipped)}")


def chosen_protector(
    name: str = AUTO, *, key_directory: KeyDirectory = None, ask: Ask = None
) -> ChosenProtector:
    """The protector `name` (of `PROTECTOR_NAMES`), after a round trip through it; never a weaker one instead.

    `ask` gives a passphrase, as for `PassphraseProtector`. Blocking. Raises `ConfigurationError` saying what
    to install or do.
    """
    if name == AUTO:
        return auto_protector(key_directory)
    kind = next((kind for kind in KINDS if kind.name == name), None)
    if kind is None:
        raise ConfigurationError(f"protector must be one of {', '.join(PROTECTOR_NAMES)}")
    try:
        protector = kind.make(key_directory, ask)
        _round_trip(protector)
    except (OSError, TabwardenError) as error:
        raise ConfigurationError(f"protector {name} cannot be used: {error}") from None
    return ChosenProtector(protector, f"{kind.name}: {kind.gives} (asked for by name)")


def availability(key_directory: KeyDirectory = None) -> Iterator[tuple[str, str | None]]:
    """For each kind that `auto` may take: its name, and None or why not here. Leaves nothing behind."""
    for kind in KINDS:
        if not kind.automatic:
            continue
        try:
            kind.make(key_directory, None)
        except (OSError, TabwardenError) as error:
            yield kind.name, str(error)
        else:
            yield kind.name, None


def protector_for(
    format_name: str, key_directory: KeyDirectory = None, ask: Ask = None
) -> CredentialProtector:
    """The protector that opens `format_name`. Raises `DescriptorError` when there is none, or not here."""
    kind = next((kind for kind in KINDS if kind.format == format_name), None)
    if kind is None:
        raise DescriptorError("the descriptor has an unknown format: pair again with this version")
    try:
        return kind.make(key_directory, ask)
    except (OSError, ConfigurationError) as error:
        raise DescriptorError(f"this descriptor cannot be opened here: {error}") from None


def _round_trip(protector: CredentialProtector) -> None:
    probe = os.urandom(32)
    if protector.unprotect(protector.protect(probe, _PROBE_CONTEXT), _PROBE_CONTEXT) != probe:
        raise DescriptorError("what was sealed came back changed")
