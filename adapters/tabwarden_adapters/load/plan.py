"""What a load run is to do, and that it stays on this machine."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tabwarden.errors import ConfigurationError
from tabwarden.limits import DEFAULT_LIMITS
from tabwarden.model import ConnectionDescriptor

MAX_AGENTS: Final = 1000  # one connection and one task each; more says nothing that these do not
MAX_SECONDS: Final = 3600.0  # a soak of an hour
MAX_RATE: Final = 1000.0  # calls a second of one agent: more than one connection carries
MAX_CALLS: Final = 1_000_000  # kept until the report is made, some 100 bytes each
PATIENCE_S: Final = 15.0  # of one call, as of a client that was told nothing else
LOOPBACK: Final = "127.0.0.1"  # the only host that the protocol knows


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """`rate` is calls a second of each agent, started by the clock; None is a closed loop, in which an agent
    calls again as soon as it has an answer. `limit` is what the broker lets through for one principal in a
    minute. A call has `patience_s`, and after `most_calls` none begins. Raises `ConfigurationError` for what
    cannot be."""

    agents: int
    seconds: float
    rate: float | None = None
    action: str = "sessions"
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    limit: int = DEFAULT_LIMITS.requests_per_minute
    patience_s: float = PATIENCE_S
    most_calls: int = MAX_CALLS

    def __post_init__(self) -> None:
        if not 1 <= self.agents <= MAX_AGENTS:
            raise ConfigurationError(f"--agents: a whole number from 1 to {MAX_AGENTS}")
        if not 0 < self.seconds <= MAX_SECONDS:
            raise ConfigurationError(f"--seconds: more than 0 and at most {MAX_SECONDS:.0f}")
        if self.rate is not None and not 0 < self.rate <= MAX_RATE:
            raise ConfigurationError(
                f"--rate: calls a second of each agent, more than 0 and at most {MAX_RATE:.0f}"
            )
        if self.limit < 1:
            raise ConfigurationError("--limit: a whole number from 1, as the broker's requests_per_minute")
        if not 0 < self.patience_s <= PATIENCE_S:
            raise ConfigurationError(f"a call's patience is more than 0 and at most {PATIENCE_S:.0f} s")
        if not 1 <= self.most_calls <= MAX_CALLS:
            raise ConfigurationError(f"at most {MAX_CALLS} calls are kept")
        if self.planned_calls is not None and self.planned_calls > self.most_calls:
            raise ConfigurationError(
                f"that would be {self.planned_calls} calls, and {self.most_calls} are kept: "
                "take fewer agents, a lower rate or less time"
            )

    @property
    def planned_calls(self) -> int | None:
        """How many calls start by the clock; None in a closed loop, where the broker decides."""
        return None if self.rate is None else self.agents * math.ceil(self.rate * self.seconds)

    def start_ns(self, agent: int, number: int) -> int:
        """When call `number` of `agent` is to start, in nanoseconds of the run. Agents are spread evenly over
        the time between two calls, so that they do not call in step. In a closed loop all start at once."""
        if self.rate is None:
            return 0
        return round((number + agent / self.agents) / self.rate * 1e9)


def require_loopback(descriptors: Sequence[ConnectionDescriptor]) -> None:
    """Raises `ConfigurationError` unless all of them are on this machine and there is one at least.

    A descriptor cannot be built with another address; a load tool looks once more all the same.
    """
    if not descriptors:
        raise ConfigurationError("there is no credential to call with: pair, or have one issued")
    for descriptor in descriptors:
        host, colon, port = descriptor.address.rpartition(":")
        if host != LOOPBACK or not colon or not (port.isascii() and port.isdigit()):
            raise ConfigurationError(
                f"load goes to {LOOPBACK} only, and a descriptor names another address: "
                "use one that a broker on this machine wrote"
            )


def spread(agents: int, descriptors: Sequence[ConnectionDescriptor]) -> list[ConnectionDescriptor]:
    """The credential of each agent: as evenly as can be over all of them, in turn."""
    return [descriptors[number % len(descriptors)] for number in range(agents)]
