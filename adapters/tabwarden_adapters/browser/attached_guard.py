"""The guard of a Chromium that somebody else runs: no flag of ours is on it, so there is no proxy.

What is left is `Fetch` in each tab that an agent acts in. docs/network-guard.md says what that does not see.
"""

import trio

from tabwarden_adapters.browser.cdp import Connection
from tabwarden_adapters.browser.network_guard import leads_somewhere_allowed
from tabwarden_adapters.browser.shared_guard import SharedGuard
from tabwarden_adapters.browser.tab import Tab


class AttachedGuard(SharedGuard):
    """A `SharedGuard` without its proxy. Give `prepare` to the inventory; there is nothing to run."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Nothing to serve."""
        task_status.started()

    def flags(self) -> tuple[str, ...]:
        """None: the browser runs already."""
        return ()

    async def reachable(self, href: str) -> bool:
        """See `SharedGuard`. It is judged here once; what the browser finds a moment later may differ."""
        ports = frozenset(self._protected)
        return await leads_somewhere_allowed(href, self._everybody, self._resolver, lambda: ports)

    def close(self) -> None:
        """Let the person's tabs go."""
        for bound in list(self._bound.values()):
            self.release(bound.tab)

    def recheck(self) -> None:
        """Requests to come are judged by the policy in force anyway, and there is no connection of ours."""

    def _watch(self, connection: Connection) -> None:
        """Not every request of a person's browser is to come by here."""

    def _tab(self, tab: Tab) -> None:
        tab.persons = True
        super()._tab(tab)
