"""Connection descriptors at rest: sealed by a protector, stored whole, read with every check."""

from tabwarden_adapters.credentials.kernel_keyring import KernelKeyringProtector
from tabwarden_adapters.credentials.key_file import KeyFileProtector
from tabwarden_adapters.credentials.runtime_dir import default_runtime_dir
from tabwarden_adapters.credentials.selection import ChosenProtector, auto_protector
from tabwarden_adapters.credentials.store import DescriptorStore, descriptor_file_name, load_descriptor

__all__ = [
    "ChosenProtector",
    "DescriptorStore",
    "KernelKeyringProtector",
    "KeyFileProtector",
    "auto_protector",
    "default_runtime_dir",
    "descriptor_file_name",
    "load_descriptor",
]
