"""Choosing where the post-quantum primitives come from. Finding a library on this machine is I/O, so it
is done here and not in `tabwarden.protocol`."""

import ctypes.util
import importlib
import os
from pathlib import Path

from tabwarden.errors import ConfigurationError
from tabwarden.protocol.primitives import NativeProvider, OqsProvider, PqProvider


def load_provider(name: str = NativeProvider.name) -> PqProvider:
    """The provider of that name, `cryptography` or `oqs`; ConfigurationError says what is missing.

    Never installs, builds or downloads anything.
    """
    if name == NativeProvider.name:
        return NativeProvider()
    if name != OqsProvider.name:
        raise ConfigurationError(f"no cryptography provider is called {name!r}: use cryptography or oqs")
    # liboqs-python clones and builds liboqs when it cannot find it, so we look before it is imported.
    if not liboqs_is_installed():
        raise ConfigurationError(
            "the oqs provider needs the liboqs shared library, which is not installed: install it from your "
            "system's packages or by hand, or use the cryptography provider"
        )
    try:
        return OqsProvider(importlib.import_module("oqs"))
    except ImportError:
        raise ConfigurationError(
            "the oqs provider needs liboqs-python: install the extra with pip install 'tabwarden[oqs]'"
        ) from None


def liboqs_is_installed() -> bool:
    """True when a shared liboqs lies where liboqs-python would look for one."""
    folder = Path(os.environ.get("OQS_INSTALL_PATH") or Path.home() / "_oqs")
    names = ("liboqs.so", "liboqs.dylib", "oqs.dll")
    if any((folder / sub / name).is_file() for sub in ("lib", "lib64", "bin") for name in names):
        return True
    return ctypes.util.find_library("oqs") is not None
