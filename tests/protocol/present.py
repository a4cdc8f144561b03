"""The post-quantum providers of this machine: `cryptography` always, `oqs` where liboqs is installed."""

from tabwarden.errors import ConfigurationError
from tabwarden.protocol.primitives import PqProvider
from tabwarden.providers import load_provider


def _present() -> dict[str, PqProvider]:
    found = {}
    for name in ("cryptography", "oqs"):
        try:
            found[name] = load_provider(name)
        except ConfigurationError:
            assert name != "cryptography"
    return found


PROVIDERS = _present()
