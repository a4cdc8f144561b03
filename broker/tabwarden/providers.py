"""Choosing where the post-quantum primitives come from. Finding a library on this machine is I/O, so it
is done here and not in `tabwarden.protocol`."""

import ctypes
import ctypes.util
import importlib
import io
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

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
        oqs = _import_oqs()
    except ImportError:
        raise ConfigurationError(
            "the oqs provider needs liboqs-python: install the extra with pip install 'tabwarden[oqs]'"
        ) from None
    provider = OqsProvider(oqs)
    if not provider.supported():
        raise ConfigurationError(
            "this liboqs was built without ML-KEM-1024 or ML-DSA-87: install one that has both, or use the "
            "cryptography provider"
        )
    return provider


def _import_oqs() -> ModuleType:
    # It logs to the standard output it finds when imported, which may be somebody's protocol stream.
    with redirect_stdout(io.StringIO()):
        return importlib.import_module("oqs")


def liboqs_is_installed() -> bool:
    """True when a shared liboqs that loads lies where liboqs-python looks for one."""
    found = [ctypes.util.find_library(name) for name in ("oqs", "liboqs")]
    # Set but empty it means the working directory there, and so it does here.
    chosen = os.environ.get("OQS_INSTALL_PATH")
    folder = Path.home() / "_oqs" if chosen is None else Path(chosen)
    folders, names = {
        "win32": (("bin",), ("oqs.dll", "liboqs.dll")),
        "darwin": (("lib", "lib64"), ("liboqs.dylib",)),
    }.get(sys.platform, (("lib", "lib64"), ("liboqs.so",)))
    found += [str(folder.absolute() / sub / name) for sub in folders for name in names]
    return any(_loads(path) for path in found if path)


def _loads(path: str) -> bool:
    # A file that is there but does not load would make liboqs-python build another.
    try:
        ctypes.CDLL(path)
    except OSError:
        return False
    return True
