"""The one moment at which a device learns whose policies it takes."""

from tabwarden.errors import ConfigurationError
from tabwarden.limits import MAX_SAFE_INTEGER

from tabwarden_adapters.policy.signing import PublicKeys
from tabwarden_adapters.policy.state import DeviceState, StateFile


def enrol(state: StateFile, keys: PublicKeys, wall_ms: int, at_least_version: int = 1) -> None:
    """Pin `keys`. With `at_least_version`, no lower policy is taken: for a device that is enrolled anew, and
    has forgotten what it had seen.

    Raises `ConfigurationError` when the device is enrolled already.
    """
    if not 1 <= at_least_version <= MAX_SAFE_INTEGER:
        raise ConfigurationError("the lowest version to take is a whole number from 1")
    floor = at_least_version if at_least_version > 1 else 0
    state.create(DeviceState(keys, version=floor, wall_ms=max(wall_ms, 0)))
