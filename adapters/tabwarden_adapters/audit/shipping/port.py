"""Where records are shipped to: the port, and how it fails."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tabwarden.errors import TabwardenError

from tabwarden_adapters.audit.reader import AuditRecord


class DeliveryFailed(TabwardenError):
    """The other side took nothing more; it is tried again later. Says why, in words of our own: never a text
    that the other side sent."""


class Delivery(Protocol):
    """One connection. One task calls `send` and `confirmed`, another `broken`; when both have ended, somebody
    may call `finish`."""

    async def send(self, records: Sequence[AuditRecord]) -> None:
        """Returns when all of them are on their way. Raises `DeliveryFailed`; the other side may then have
        any part of them."""
        ...

    async def confirmed(self) -> None:
        """Returns when the other side's system has all that was sent. Raises `DeliveryFailed`."""
        ...

    async def broken(self) -> None:
        """Raises `DeliveryFailed` as soon as the other side is gone, and never returns."""
        ...

    async def finish(self) -> bool:
        """End in good order. True when the other side has surely read all that was sent."""
        ...


class Destination(Protocol):
    """What connections are made to."""

    @property
    def settle_s(self) -> float:
        """How long a connection has to live on before what was sent over it counts as taken."""
        ...

    def connect(self) -> AbstractAsyncContextManager[Delivery]:
        """Raises `DeliveryFailed`. Leaving the block closes the connection at once."""
        ...
