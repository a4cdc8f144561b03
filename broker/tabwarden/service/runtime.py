"""What the stages of every call share: one instance of each part, and the counts that others may read."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from tabwarden.authority.principals import InstanceIdentity, PrincipalRegistry
from tabwarden.errors import HostReason
from tabwarden.limits import Limits
from tabwarden.ports import (
    ActionAdapter,
    AuditSink,
    Authorizer,
    Clock,
    ErrorObserver,
    StatementSigner,
    Tracer,
)
from tabwarden.service.challenge_pool import ChallengePool
from tabwarden.service.refusals import RefusalCounter
from tabwarden.service.request_scope import Cause

if TYPE_CHECKING:
    from tabwarden.service.call import Call


@dataclass(slots=True, eq=False, kw_only=True)
class Runtime:
    """Built once by `start_agent_control`."""

    identity: InstanceIdentity
    registry: PrincipalRegistry
    pool: ChallengePool
    limits: Limits
    clock: Clock
    authorize: Authorizer
    adapters: Mapping[str, ActionAdapter]
    audit: AuditSink
    statements: StatementSigner
    tracer: Tracer
    refusals: RefusalCounter
    on_error: ErrorObserver | None
    host: bytes
    closing: bool = False
    calls: "set[Call]" = field(default_factory=set)
    # (action, outcome) of every call that ended, for metrics
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    stopped: trio.Event = field(default_factory=trio.Event)
    highest_wall_ms: int = 0

    def wall_ms(self) -> int:
        """Wall time that never goes back within this run: setting the clock back revives nothing."""
        self.highest_wall_ms = max(self.highest_wall_ms, self.clock.wall_ms())
        return self.highest_wall_ms

    def report(self, reason: HostReason) -> None:
        """Tell the host. An observer that raises is the host's own matter and stops nothing here."""
        if self.on_error is not None:
            with suppress(BaseException):
                self.on_error(reason)

    def end_calls(self, cause: Cause, principal_id: str | None = None) -> "list[Call]":
        """Cancel what is running, of one principal or of all; return those calls."""
        ended = [
            call
            for call in self.calls
            if principal_id is None or call.capability.principal_id == principal_id
        ]
        for call in ended:
            call.cancel(cause)
        return ended
