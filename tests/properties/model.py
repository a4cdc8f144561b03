"""What may happen, said once more and plainly. Nothing of the broker, the policy or the authority is used
here: sets, numbers and `if`.

Times are milliseconds since the Unix epoch. `latest` is the latest that the policy knows of, `saved` what of
it outlives a restart, `in_run` the latest that this run of the broker has seen. An expiry that a host asked
for when it issued a credential is judged by `in_run` only: neither outlives the broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

AHEAD_MS = 5 * 60_000  # an office's clock may be so far ahead of the device's
SAVE_EVERY_MS = 60_000


@dataclass(frozen=True)
class GrantPaper:
    """One grant as it was written."""

    scopes: frozenset[str]
    hosts: frozenset[str]
    generation: int
    enabled: bool
    expires: int


@dataclass(frozen=True)
class Paper:
    """One signed file. `sound` is False when a signature or the document was changed afterwards."""

    content: bytes
    version: int
    issued: int
    expires: int
    signed_by: str
    following: str | None
    sound: bool
    enabled: bool
    scopes: frozenset[str]
    hosts: frozenset[str]
    grants: Mapping[str, GrantPaper]

    def grant_now(self, grant_id: str, now: int) -> GrantPaper | None:
        """The grant, if it is worth anything at this time."""
        grant = self.grants.get(grant_id)
        if grant is None or not self.enabled or not grant.enabled:
            return None
        return grant if now < min(grant.expires, self.expires) else None


@dataclass
class Credential:
    """One that was issued, ever."""

    grant_id: str
    generation: int
    expires: int
    start: int
    alive: bool = True


@dataclass
class Model:
    """The device and its broker."""

    latest: int
    saved: int
    in_run: int
    signer: str = "ours"
    following: str | None = None
    version: int = 0
    content: bytes | None = None
    highest: dict[str, int] = field(default_factory=dict)
    force: Paper | None = None
    start: int = 0
    revoked: bool = False
    last_saved: int = 0
    approved: dict[str, GrantPaper] = field(default_factory=dict)
    credentials: list[Credential] = field(default_factory=list)

    # ---- policies ---------------------------------------------------------------------------------

    def takes(self, paper: Paper | None) -> bool:
        """Whether the device has to take this file, now."""
        if paper is None or not paper.sound:
            return False
        if paper.signed_by != self.signer and paper.signed_by != self.following:
            return False
        if paper.version < self.version:
            return False
        if paper.version == self.version and self.content not in (None, paper.content):
            return False
        if paper.issued > self.latest + AHEAD_MS or paper.expires <= self.latest:
            return False
        if paper.content != self.content and paper.following == paper.signed_by:
            return False
        return all(grant.generation >= self.highest.get(one, 0) for one, grant in paper.grants.items())

    def taken(self, paper: Paper) -> None:
        """It is in force."""
        if paper.content != self.content:
            self.signer, self.following = paper.signed_by, paper.following
            self.version, self.content = paper.version, paper.content
            for one, grant in paper.grants.items():
                self.highest[one] = grant.generation
        self.force = paper
        self.save()

    def notice(self, wall: int) -> None:
        """The broker and the policy looked at the clock."""
        self.latest, self.in_run = max(self.latest, wall), max(self.in_run, wall)

    def save(self) -> None:
        self.saved = max(self.saved, self.latest)
        self.last_saved = self.latest

    def looked(self) -> None:
        """The watch looked at file and clock."""
        if self.latest - self.last_saved >= SAVE_EVERY_MS:
            self.save()

    def reconciled(self) -> None:
        """The broker was told the grants: who has lost its grant has lost its credential."""
        force = self.force
        self.approved = {}
        if force is not None:
            for one in force.grants:
                grant = force.grant_now(one, self.latest)
                if grant is not None and grant.generation == self.highest[one]:
                    self.approved[one] = grant
        for credential in self.credentials:
            grant = self.approved.get(credential.grant_id)
            if grant is None or grant.generation != credential.generation:
                credential.alive = False

    # ---- credentials ------------------------------------------------------------------------------

    def may_issue(self, grant_id: str, generation: int, expires: int | None) -> bool:
        """Whether there must be a credential for the asking."""
        if self.revoked or self.force is None or (expires is not None and expires <= self.in_run):
            return False
        grant = self.force.grant_now(grant_id, self.latest)
        return grant is not None and grant_id in self.approved and grant.generation == generation

    def issued(self, grant_id: str, generation: int, expires: int | None) -> Credential:
        """A credential was issued: the one before is worth nothing."""
        self.revoke(grant_id)
        grant = self.approved[grant_id]
        ends = min(grant.expires, grant.expires if expires is None else expires)
        self.credentials.append(Credential(grant_id, generation, ends, self.start))
        return self.credentials[-1]

    def revoke(self, grant_id: str | None) -> None:
        """Of one, or of all for good."""
        if grant_id is None:
            self.revoked = True
        for credential in self.credentials:
            if grant_id in (None, credential.grant_id):
                credential.alive = False

    def restart(self, wall: int) -> None:
        """Only what was saved is known, and no credential is good any more."""
        self.revoke(None)
        self.start += 1
        self.revoked, self.force, self.approved, self.last_saved = False, None, {}, 0
        self.latest, self.in_run = max(self.saved, wall), wall

    # ---- the question -----------------------------------------------------------------------------

    def lost(self, credential: Credential) -> str | None:
        """Why nothing may be done with it at this moment, or None."""
        if not credential.alive or credential.start != self.start:
            return "revoked"
        if self.force is None or not self.force.enabled:
            return "no policy"
        grant = self.force.grants.get(credential.grant_id)
        if grant is None or not grant.enabled:
            return "no grant"
        if credential.generation != grant.generation or grant.generation < self.highest[credential.grant_id]:
            return "generation"
        if self.latest >= min(grant.expires, self.force.expires) or self.in_run >= credential.expires:
            return "expired"
        return None

    def objection(self, credential: Credential, scope: str, host: str | None) -> str | None:
        """Why a call with this credential may not be dispatched at this moment, or None."""
        lost = self.lost(credential)
        if lost is not None or self.force is None:
            return lost
        grant = self.force.grants[credential.grant_id]
        if scope not in self.force.scopes or scope not in grant.scopes:
            return "scope"
        if host is None:
            return None
        allowed = self.force.hosts & grant.hosts if grant.hosts else self.force.hosts
        return None if host in allowed else "host"
