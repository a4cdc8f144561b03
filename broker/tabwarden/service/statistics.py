"""Counts of a running broker, for metrics."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tabwarden.errors import Refusal
from tabwarden.service.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts since the start; bounded in number whatever callers do."""

    refusals: Mapping[Refusal, int]
    outcomes: Mapping[tuple[str, str], int]
    signatures: int
    ready_challenges: int
    calls_in_flight: int
    connections: int
    challenges_signed: int
    outstanding_challenges: int
    nonce_cache_fill: float
    principals: int


def statistics_of(runtime: Runtime, connections: int) -> Statistics:
    """A snapshot; any thread may take it.

    `nonce_cache_fill` is the fullest principal's (0 to 1). Challenges count as outstanding until they are
    used, or make room for another.
    """
    accounts = [capability.account for capability in runtime.registry]
    return Statistics(
        refusals=dict(runtime.refusals.total),
        outcomes=dict(Counter(runtime.outcomes)),
        signatures=runtime.pool.signatures,
        ready_challenges=len(runtime.pool),
        calls_in_flight=len(runtime.calls),
        connections=connections,
        challenges_signed=runtime.pool.signed,
        outstanding_challenges=sum(len(account.challenges) for account in accounts),
        nonce_cache_fill=max((len(account.nonces) for account in accounts), default=0)
        / runtime.limits.nonce_entries,
        principals=len(accounts),
    )
