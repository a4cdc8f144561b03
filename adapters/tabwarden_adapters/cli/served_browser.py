"""What a served broker needs of its browser, whoever runs that."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tabwarden.ports import ActionAdapter, Authorizer

from tabwarden_adapters.browser import GuardedBrowser

End = Callable[[], Awaitable[None]]


async def _never(end: End) -> None:
    """A browser of our own has no host that could go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBrowser:
    """`authorize` puts what a host says around what the policy says. `watch` runs until the host is gone,
    and then calls what it was given."""

    browser: GuardedBrowser
    actions: Mapping[str, ActionAdapter]
    authorize: Callable[[Authorizer], Authorizer] = field(default=lambda policy: policy)
    watch: Callable[[End], Awaitable[None]] = _never
