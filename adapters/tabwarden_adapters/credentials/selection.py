"""Which protector: the strongest that works on this machine, found by trying it."""

import os
from dataclasses import dataclass

from tabwarden.errors import ConfigurationError, DescriptorError, TabwardenError
from tabwarden.ports import CredentialProtector

from tabwarden_adapters.credentials.kernel_keyring import KernelKeyringProtector
from tabwarden_adapters.credentials.key_file import KeyFileProtector
from tabwarden_adapters.credentials.runtime_dir import default_runtime_dir

_PROBE_CONTEXT = b"tabwarden probe"


@dataclass(frozen=True, slots=True)
class ChosenProtector:
    """`reason` is one sentence for a person: what was chosen, against whom it protects, and why no better."""

    protector: CredentialProtector
    reason: str


def auto_protector(key_directory: str | os.PathLike[str] | None = None) -> ChosenProtector:
    """The kernel keyring when a round trip through it works, else a key file in `key_directory`.

    `key_directory` None: `default_runtime_dir()`. Blocking, for a few milliseconds. Raises
    `ConfigurationError` when neither works.
    """
    try:
        keyring = KernelKeyringProtector()
        _round_trip(keyring)
    except (OSError, TabwardenError) as error:
        keyring_problem = str(error)
    else:
        return ChosenProtector(
            keyring,
            "key in the Linux kernel keyring: protects against other users, stolen disks and backups; "
            "not against programs of the same user",
        )
    try:
        directory = default_runtime_dir() if key_directory is None else key_directory
        file = KeyFileProtector(directory)
        _round_trip(file)
    except (OSError, TabwardenError) as error:
        raise ConfigurationError(
            f"descriptors cannot be protected here: {keyring_problem}; and the key file: {error}"
        ) from None
    return ChosenProtector(
        file,
        f"key file in {directory}: protects against other users only; the keyring was not used "
        f"because: {keyring_problem}",
    )


def protector_for(
    format_name: str, key_directory: str | os.PathLike[str] | None = None
) -> CredentialProtector:
    """The protector that opens `format_name`. Raises `DescriptorError` when there is none, or not here."""
    try:
        if format_name == KernelKeyringProtector.format:
            return KernelKeyringProtector()
        if format_name == KeyFileProtector.format:
            return KeyFileProtector(default_runtime_dir() if key_directory is None else key_directory)
    except (OSError, ConfigurationError) as error:
        raise DescriptorError(f"this descriptor cannot be opened here: {error}") from None
    raise DescriptorError("the descriptor has an unknown format: pair again with this version")


def _round_trip(protector: CredentialProtector) -> None:
    probe = os.urandom(32)
    if protector.unprotect(protector.protect(probe, _PROBE_CONTEXT), _PROBE_CONTEXT) != probe:
        raise DescriptorError("what was sealed came back changed")
