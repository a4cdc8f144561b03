"""When a passphrase is asked for."""

from collections.abc import Callable

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.credentials import passphrase_source


def for_serve(protector: str, descriptor: int | None) -> Callable[[bool], bytes] | None:
    """A new passphrase, asked for now: before the event loop, so that Ctrl-C works while it is typed.

    It is given out once and not kept. None when `protector` needs none. Raises `ConfigurationError` when
    `descriptor` is given for nothing, `DescriptorError` when nobody answers.
    """
    if protector != "passphrase":
        if descriptor is not None:
            raise ConfigurationError("--passphrase-fd goes with --protector passphrase only")
        return None
    given = [passphrase_source(descriptor)(True)]
    return lambda _: given.pop()
