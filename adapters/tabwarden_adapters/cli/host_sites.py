"""The site modes of a host: its lists, under what a signed policy allows to agents at all."""

from collections.abc import Callable
from pathlib import Path

import trio
from tabwarden.clock import SystemClock
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.cli.host_settings import HostSettings
from tabwarden_adapters.cli.policy_work import state_file
from tabwarden_adapters.host import SiteModes
from tabwarden_adapters.policy import (
    CompiledPolicy,
    DestinationRefused,
    PolicyReport,
    SignedPolicy,
    parse_destination,
)


class PolicyOrigins:
    """What `agents` and `destinations` of the policy in force allow. Profiles and grants are of agents that
    prove who they are, and an engine does not: they have no part in it."""

    def __init__(self, policy: SignedPolicy) -> None:
        self._policy = policy
        self._compiled: CompiledPolicy | None = None

    def __call__(self, origin: str) -> bool:
        """Of a normalised http or https origin, now."""
        document = self._policy.document
        if document is None or not document.agents.enabled:
            return False
        if self._compiled is None or self._compiled.document is not document:
            self._compiled = CompiledPolicy(document)
        try:
            place = parse_destination(f"{origin}/")
        except DestinationRefused:
            return False
        return self._compiled.rights(None).page(place).allowed


async def host_sites(
    settings: HostSettings, report: Callable[[PolicyReport], None]
) -> tuple[SiteModes, SignedPolicy | None]:
    """The modes, and the policy under them, which wants to be watched. `report` is told what becomes of it.

    Raises `ConfigurationError`: lists that disagree, a device that is not enrolled, a policy not taken.
    """
    policy = None if settings.policy is None else await _signed(settings, Path(settings.policy), report)
    permitted = None if policy is None else PolicyOrigins(policy)
    return (
        SiteModes(allow=settings.allow, ask=settings.ask, off=settings.off, permitted=permitted),
        policy,
    )


async def _signed(settings: HostSettings, path: Path, report: Callable[[PolicyReport], None]) -> SignedPolicy:
    def load() -> tuple[SignedPolicy, PolicyReport]:
        folder = None if settings.policy_state is None else Path(settings.policy_state)
        policy = SignedPolicy(
            path, state_file(folder, settings.policy_protector), SystemClock(), report=report
        )
        return policy, policy.load()

    policy, first = await trio.to_thread.run_sync(load)
    if policy.document is None:
        raise ConfigurationError(first.message)
    return policy
