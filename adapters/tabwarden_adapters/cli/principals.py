"""The credentials of individual mode: issued, stored, and their files gone when they open nothing more."""

from dataclasses import dataclass
from pathlib import Path

import trio
from tabwarden import AgentControl
from tabwarden.authority.principals import Grant
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.credentials import PrincipalStore

TIDY_S = 5.0  # how long the file of an expired credential may lie about


@dataclass(frozen=True, slots=True)
class Issued:
    """One credential that is good, and its sealed file. `expires_at_ms` is wall time since the epoch."""

    principal_id: str
    generation: int
    expires_at_ms: int | None
    path: Path


class Principals:
    """One broker's. Its changes happen one after the other, so that no file outlives or precedes its
    credential by more than a change."""

    def __init__(self, control: AgentControl, store: PrincipalStore) -> None:
        self._control = control
        self._store = store
        self._stored: set[str] = set()
        self._one_at_a_time = trio.Lock()

    async def policy_changed(self, grants: list[Grant]) -> None:
        """See `AgentControl.policy_changed`."""
        await self._control.policy_changed(grants)  # before anything is waited for
        async with self._one_at_a_time:
            await self._tidy()

    async def issue(self, principal_id: str, generation: int, expires_at_ms: int | None) -> Issued:
        """A fresh credential; the one before of this id stops working. Raises `ConfigurationError`."""
        async with self._one_at_a_time:
            # Known as stored before it is: a file that was half-way when this was cancelled is tidied too.
            self._stored.add(principal_id)
            descriptor = await self._control.issue_principal(principal_id, generation, expires_at_ms)
            return self._described(principal_id, generation, descriptor.expires_at_ms)

    async def revoke(self, principal_id: str) -> bool:
        """Take a credential and its file, until another one is issued. Whether there was a good one."""
        async with self._one_at_a_time:
            had = any(one.principal_id == principal_id for one in self._control.principals())
            await self._control.revoke_principal(principal_id)
            await self._tidy()
            return had

    def issued(self) -> dict[str, Issued]:
        """Whose credentials are good now, by id."""
        return {
            one.principal_id: self._described(one.principal_id, one.generation, one.expires_at_ms)
            for one in self._control.principals()
        }

    async def keep_tidy(self) -> None:
        """Remove the files of what has expired, until cancelled."""
        while True:
            await trio.sleep(TIDY_S)
            async with self._one_at_a_time:
                await self._tidy()

    async def _tidy(self) -> None:
        for gone in self._stored - {one.principal_id for one in self._control.principals()}:
            try:
                await trio.to_thread.run_sync(self._store.remove, gone)
            except ConfigurationError:
                continue  # it opens nothing; the next round, or the next broker's start, tries again
            self._stored.discard(gone)

    def _described(self, principal_id: str, generation: int, expires_at_ms: int | None) -> Issued:
        return Issued(principal_id, generation, expires_at_ms, self._store.path_of(principal_id, generation))
