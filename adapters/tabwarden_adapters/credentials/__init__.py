"""Connection descriptors at rest: sealed by a protector, stored whole, read with every check."""

from tabwarden_adapters.credentials.dpapi import DpapiProtector
from tabwarden_adapters.credentials.kernel_keyring import KernelKeyringProtector
from tabwarden_adapters.credentials.key_file import KeyFileProtector
from tabwarden_adapters.credentials.keyring_store import KeychainProtector, SecretServiceProtector
from tabwarden_adapters.credentials.passphrase import PassphraseProtector
from tabwarden_adapters.credentials.passphrase_source import passphrase_source
from tabwarden_adapters.credentials.principals import PrincipalStore
from tabwarden_adapters.credentials.process import close_process_to_others
from tabwarden_adapters.credentials.runtime_dir import default_runtime_dir
from tabwarden_adapters.credentials.selection import (
    AUTO,
    PROTECTOR_NAMES,
    ChosenProtector,
    auto_protector,
    availability,
    chosen_protector,
)
from tabwarden_adapters.credentials.store import (
    DescriptorStore,
    descriptor_file_name,
    descriptor_format,
    load_descriptor,
)
from tabwarden_adapters.credentials.systemd_creds import SystemdCredsProtector
from tabwarden_adapters.credentials.tpm2 import Tpm2Protector

__all__ = [
    "AUTO",
    "PROTECTOR_NAMES",
    "ChosenProtector",
    "DescriptorStore",
    "DpapiProtector",
    "KernelKeyringProtector",
    "KeyFileProtector",
    "KeychainProtector",
    "PassphraseProtector",
    "PrincipalStore",
    "SecretServiceProtector",
    "SystemdCredsProtector",
    "Tpm2Protector",
    "auto_protector",
    "availability",
    "chosen_protector",
    "close_process_to_others",
    "default_runtime_dir",
    "descriptor_file_name",
    "descriptor_format",
    "load_descriptor",
    "passphrase_source",
]
