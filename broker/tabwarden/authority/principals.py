"""Who may speak to this broker: capabilities, their generations, and what each principal has used up.

A capability is a token bound to (instance, principal id, generation). Legacy pairing has one,
unattributed; individual mode has one for each approved grant and no master credential. The two modes never
share one: a registry is in one mode for its whole life.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from tabwarden.authority.challenges import OutstandingChallenges
from tabwarden.authority.outcomes import OutcomeLedger
from tabwarden.authority.ratelimit import SlidingWindow
from tabwarden.authority.replay import NonceCache
from tabwarden.errors import ConfigurationError
from tabwarden.limits import TOKEN_BYTES, Limits
from tabwarden.model import Caller
from tabwarden.protocol.proof import LEGACY_ID, CapabilityKeys, instance_id, is_principal_id

IdentityMode = Literal["legacy", "individual"]


@dataclass(frozen=True, slots=True)
class InstanceIdentity:
    """What a broker is: its address, its two public keys, and the hash that names all three."""

    address: str
    ed_public: bytes = field(repr=False)
    pq_public: bytes = field(repr=False)

    @property
    def instance(self) -> bytes:
        """32 bytes."""
        return instance_id(self.ed_public, self.pq_public, self.address)


@dataclass(frozen=True, slots=True)
class Grant:
    """What an administrator approved for one principal. `expires_at_ms` is wall time since the epoch."""

    principal_id: str
    generation: int
    expires_at_ms: int | None = None
    enabled: bool = True

    def __post_init__(self) -> None:
        if not is_principal_id(self.principal_id) or self.principal_id == LEGACY_ID:
            raise ConfigurationError(
                "a grant's id has 1 to 64 of A-Z a-z 0-9 . _ - and is not 'legacy': choose another"
            )
        if not 0 < self.generation < 2**53:
            raise ConfigurationError("a grant's generation is a whole number from 1")


class Account:
    """What one principal has used up. Outlives its generations: rotating a token refills nothing."""

    __slots__ = ("challenge_budget", "challenges", "nonces", "outcomes", "requests")

    def __init__(self, limits: Limits) -> None:
        self.requests = SlidingWindow(limits.requests_per_minute)
        self.challenge_budget = SlidingWindow(limits.challenge_budget)
        self.nonces = NonceCache(limits.freshness_window_ms, limits.nonce_entries)
        self.challenges = OutstandingChallenges(limits.outstanding_challenges)
        self.outcomes = OutcomeLedger(limits.idempotency_entries, limits.idempotency_ms)


@dataclass(frozen=True, slots=True, eq=False)
class Capability:
    """One issued credential. Compared by identity: issuing again makes another one."""

    principal_id: str
    generation: int
    expires_at_ms: int | None
    keys: CapabilityKeys = field(repr=False)
    account: Account = field(repr=False)

    @property
    def caller(self) -> Caller:
        """Who the audit and the adapters are told it is."""
        if self.principal_id == LEGACY_ID:
            return Caller(None, None)
        return Caller(self.principal_id, self.generation)


class PrincipalRegistry:
    """The capabilities that are good right now."""

    def __init__(self, identity: InstanceIdentity, mode: IdentityMode, limits: Limits, decoy: bytes) -> None:
        """`decoy` is a random token that nobody holds: an unknown id costs the same MAC as a known one."""
        self._identity = identity
        self._mode = mode
        self._limits = limits
        self._accounts: dict[str, Account] = {}
        self._grants: dict[str, Grant] = {}
        self._highest: dict[str, int] = {}
        self._capabilities: dict[str, Capability] = {}
        self._revoked = False
        self.decoy_keys = self._derive(decoy, LEGACY_ID, 0)

    def _derive(self, token: bytes, principal_id: str, generation: int) -> CapabilityKeys:
        return CapabilityKeys.derive(
            token,
            instance=self._identity.instance,
            principal_id=principal_id,
            generation=generation,
            ed_public=self._identity.ed_public,
            pq_public=self._identity.pq_public,
        )

    @property
    def revoked(self) -> bool:
        """True once `revoke_all` was called."""
        return self._revoked

    @property
    def mode(self) -> IdentityMode:
        return self._mode

    def __iter__(self) -> Iterator[Capability]:
        return iter(list(self._capabilities.values()))

    def pair_legacy(self, token: bytes) -> Capability:
        """The one capability of legacy mode, generation 0."""
        if self._mode != "legacy":
            raise ConfigurationError("individual mode has no shared credential: issue one for each grant")
        return self._add(token, LEGACY_ID, 0, None)

    def reconcile(self, grants: Iterable[Grant], now_wall_ms: int) -> list[Capability]:
        """Take over the approved grants; return the capabilities that this took away.

        A grant that is missing, disabled, expired or of another generation loses its capability. The highest
        generation seen of an id is remembered: a lower one is as good as absent.
        """
        if self._mode != "individual":
            raise ConfigurationError("grants need identity mode individual: this broker runs in legacy mode")
        incoming: dict[str, Grant] = {}
        for grant in grants:
            if grant.principal_id in incoming:
                raise ConfigurationError("two grants have the same id: give each its own")
            incoming[grant.principal_id] = grant
        approved = {}
        for principal_id, grant in incoming.items():
            highest = max(self._highest.get(principal_id, 0), grant.generation)
            self._highest[principal_id] = highest
            if (
                grant.enabled
                and grant.generation == highest
                and not _expired(grant.expires_at_ms, now_wall_ms)
            ):
                approved[principal_id] = grant
        self._grants = approved
        lost = [
            capability
            for capability in self._capabilities.values()
            if (now := approved.get(capability.principal_id)) is None
            or now.generation != capability.generation
        ]
        for capability in lost:
            self.remove(capability.principal_id)
        return lost

    def issue(
        self, token: bytes, principal_id: str, generation: int, expires_at_ms: int | None, now_wall_ms: int
    ) -> Capability:
        """A capability for an approved grant; one issued before for the same id stops working."""
        if self._mode != "individual":
            raise ConfigurationError("principals are issued in identity mode individual only")
        grant = self._grants.get(principal_id)
        if grant is None or grant.generation != generation:
            raise ConfigurationError("no approved grant has this id and generation: publish one first")
        if _expired(grant.expires_at_ms, now_wall_ms) or _expired(expires_at_ms, now_wall_ms):
            raise ConfigurationError("the grant or the asked-for expiry is already past: publish a later one")
        ends = [value for value in (grant.expires_at_ms, expires_at_ms) if value is not None]
        return self._add(token, principal_id, generation, min(ends, default=None))

    def _add(self, token: bytes, principal_id: str, generation: int, expires_at_ms: int | None) -> Capability:
        if self._revoked:
            raise ConfigurationError("this broker was revoked for good: start another one")
        if len(token) != TOKEN_BYTES:
            raise ConfigurationError("a token has 32 bytes")
        account = self._accounts.setdefault(principal_id, Account(self._limits))
        # Challenges of an earlier generation must not open anything for the new one.
        account.challenges.clear()
        capability = Capability(
            principal_id, generation, expires_at_ms, self._derive(token, principal_id, generation), account
        )
        self._capabilities[principal_id] = capability
        return capability

    def find(self, principal_id: str, generation: int, now_wall_ms: int) -> Capability | None:
        """The current capability of exactly this id and generation, if it has not expired."""
        capability = self._capabilities.get(principal_id)
        if capability is None or capability.generation != generation:
            return None
        return capability if self.is_current(capability, now_wall_ms) else None

    def is_current(self, capability: Capability, now_wall_ms: int) -> bool:
        """False once it was revoked, replaced or expired: checked again after everything that waits."""
        if self._capabilities.get(capability.principal_id) is not capability:
            return False
        # A later grant of the same generation may end sooner than the one it was issued under.
        grant = self._grants.get(capability.principal_id)
        ends = (capability.expires_at_ms, None if grant is None else grant.expires_at_ms)
        return not any(_expired(end, now_wall_ms) for end in ends)

    def remove(self, principal_id: str) -> Capability | None:
        """Take one principal's capability and everything handed out under it."""
        capability = self._capabilities.pop(principal_id, None)
        if capability is not None:
            capability.account.challenges.clear()
        return capability

    def revoke_all(self) -> None:
        """For good: nothing can be issued by this registry again."""
        self._revoked = True
        for principal_id in list(self._capabilities):
            self.remove(principal_id)


def _expired(expires_at_ms: int | None, now_wall_ms: int) -> bool:
    return expires_at_ms is not None and expires_at_ms <= now_wall_ms
