"""What the two sides need from outside.

`Policy` is what an engine asks; the protocols after it are its optional parts, looked for with `isinstance`.
`HostBackend` is what stands behind the control server, and `Scrubber` what looks at logged text once more.
"""

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from tabwarden_adapters.host.values import (
    Answer,
    ApprovalKind,
    ApprovalRequest,
    HandoffRequest,
    LogEntry,
    OpenTabRequest,
    SiteMode,
)


class TargetFilter(Protocol):
    """CDP target ids that the agent must never see. A filter that does not know says yes to all."""

    def __contains__(self, target_id: object, /) -> bool: ...


class Policy(Protocol):
    """What an agent may see and do. Implementations answer `OFF`, `NO` and nothing rather than raise."""

    async def site_mode(self, origin: str) -> SiteMode:
        """The AI mode of a site."""
        ...

    async def approve(self, kind: ApprovalKind, origin: str, summary: str) -> Answer:
        """Ask the person; may take minutes. Cancelling it withdraws the question."""
        ...

    async def allowed_sensitive_hosts(self) -> frozenset[str]:
        """Hosts where the person overrode the pause on sensitive pages."""
        ...


@runtime_checkable
class WaitsForUser(Protocol):
    """A policy that can hand a step over to the person."""

    async def wait_for_user(self, reason: str, origin: str) -> bool:
        """Whether the person did it; may take minutes."""
        ...


@runtime_checkable
class KeepsLog(Protocol):
    """A policy that shows the person what the model was sent."""

    async def log(self, entry: LogEntry) -> bool:
        """Whether the entry was taken. `entry.text` must be scrubbed already."""
        ...


@runtime_checkable
class OpensTabs(Protocol):
    """A policy whose host opens tabs itself."""

    async def open_tab(self, url: str, *, background: bool = False, agent: str | None = None) -> bool:
        """Whether the tab was opened."""
        ...


@runtime_checkable
class ExcludesTargets(Protocol):
    """A policy with private tabs. A policy without this method has none."""

    async def excluded_targets(self) -> TargetFilter:
        """What to keep out of every list of tabs."""
        ...


class HostBackend(Protocol):
    """The host's answers. Origins are normalised (`web_origin`), or `null` for pages without one.

    A method that raises, or answers with another type, is answered to the engine as a typed failure,
    which engines take for a no. The two that ask a person are cancelled when the engine goes away, the
    consent is revoked, the host closes, or the time is up: take the question off the screen then.
    """

    async def site_mode(self, origin: str, /) -> SiteMode: ...

    async def sensitive_overrides(self) -> Collection[str]: ...

    async def excluded_targets(self) -> Collection[str]: ...

    async def approve(self, request: ApprovalRequest, /) -> Answer: ...

    async def handoff(self, request: HandoffRequest, /) -> bool: ...

    async def log(self, entry: LogEntry, /) -> None:
        """Told after the entry was scrubbed again and put into the server's own ring."""
        ...

    async def open_tab(self, request: OpenTabRequest, /) -> bool: ...


class Scrubber(Protocol):
    """Replaces secrets in `text` by placeholders. What it raises means that the text is withheld."""

    async def __call__(self, text: str, /) -> str: ...
