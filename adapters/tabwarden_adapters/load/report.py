"""From the calls of a run to what is said of it. Plain data in, plain data out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tabwarden_adapters.load.driving import EndedBy, Run
from tabwarden_adapters.load.figures import Fairness, Percentiles, fairness, percentiles
from tabwarden_adapters.load.outcomes import Kind
from tabwarden_adapters.load.samples import Calls, Sample
from tabwarden_adapters.load.timed_client import PHASES
from tabwarden_adapters.load.verdict import Asked, Judgement, LimiterVerdict, judge

FORMAT: Final = "tabwarden-load-1"
WHOLE: Final = "whole call"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many calls ended in each way; `codes` has the typed code of each."""

    accepted: int
    limited: int
    refused: int
    failed: int
    transport: int
    codes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Latency:
    """Of calls of one kind. `from_intended` counts from when the plan had a call start, so that one which had
    to wait for the one before counts its wait (in a closed loop both are the same)."""

    from_intended: Percentiles | None
    from_sending: Percentiles | None


@dataclass(frozen=True, slots=True)
class PrincipalReport:
    """One principal: its public id, its agents, and what became of their calls."""

    id: str
    agents: int
    accepted: int
    limited: int
    other: int
    limiter: LimiterVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that is said of a run. `rate` is each agent's, None for a closed loop. `throughput` is accepted
    calls a second. `phases` are the client's, of accepted calls; `broker_phases` the broker's own, of
    `broker_requests` recent requests of any agent, where its administrator let us look."""

    format: str
    action: str
    agents: int
    rate: float | None
    seconds: float
    lasted_s: float
    ended_by: EndedBy
    started_wall_ns: int
    calls: int
    not_sent: int
    throughput: float
    counts: Counts
    latency: Mapping[str, Latency]
    phases: Mapping[str, Percentiles]
    broker_requests: int
    broker_phases: Mapping[str, Percentiles]
    fairness_principals: Fairness
    fairness_agents: Fairness
    limit: int
    limiter: Judgement
    principals: Sequence[PrincipalReport]

    @property
    def good(self) -> bool:
        """The limiter broke no promise, and something was accepted."""
        return self.counts.accepted > 0 and not any(one.limiter.wrong for one in self.principals)


def report_of(run: Run, broker_phases: Mapping[str, Sequence[int]] | None = None) -> Report:
    """`broker_phases`: nanoseconds by the name of a phase, `WHOLE` being the request."""
    samples, plan = run.samples, run.plan
    kinds, codes = Counter[Kind](), Counter[str]()
    for sample in samples:
        kinds[sample.kind] += 1
        codes[sample.code] += 1
    principals = _principals(samples, run.principals, plan.limit)
    agents: dict[str, float] = {str(number): 0.0 for number in range(plan.agents)}
    for sample in samples:
        agents[str(sample.agent)] += sample.kind is Kind.ACCEPTED
    broker = broker_phases or {}
    return Report(
        format=FORMAT,
        action=plan.action,
        agents=plan.agents,
        rate=plan.rate,
        seconds=plan.seconds,
        lasted_s=run.lasted_ns / 1e9,
        ended_by=run.ended_by,
        started_wall_ns=run.started_wall_ns,
        calls=len(samples),
        not_sent=run.not_sent,
        throughput=kinds[Kind.ACCEPTED] * 1e9 / run.lasted_ns,
        counts=Counts(**{kind.title: kinds[kind] for kind in Kind}, codes=dict(sorted(codes.items()))),
        latency={kind.title: _latency(samples, kind) for kind in Kind if kinds[kind]},
        phases=_phases(samples),
        broker_requests=len(broker.get(WHOLE, ())),
        broker_phases={
            name: found for name, values in broker.items() if (found := percentiles(values)) is not None
        },
        fairness_principals=fairness({one.id: one.accepted / one.agents for one in principals}),
        fairness_agents=fairness(agents),
        limit=plan.limit,
        limiter=_overall(principals),
        principals=principals,
    )


def asked_of(sample: Sample) -> Asked | None:
    """What the limiter has to do with a call; None when it has seen nothing of it."""
    if sample.asked is None:
        return None
    return Asked(sample.asked, sample.ended, sample.taken)


def _principals(samples: Calls, names: Sequence[str], limit: int) -> list[PrincipalReport]:
    counts: dict[str, Counter[Kind]] = {name: Counter() for name in names}
    asked: dict[str, list[Asked]] = {name: [] for name in names}
    for sample in samples:
        name = names[sample.agent]
        counts[name][sample.kind] += 1
        one = asked_of(sample)
        if one is not None:
            asked[name].append(one)
    return [
        PrincipalReport(
            name,
            names.count(name),
            counted[Kind.ACCEPTED],
            counted[Kind.LIMITED],
            counted.total() - counted[Kind.ACCEPTED] - counted[Kind.LIMITED],
            judge(asked[name], limit),
        )
        for name, counted in counts.items()
    ]


def _overall(principals: Sequence[PrincipalReport]) -> Judgement:
    """The worst that is said of any."""
    said = {one.limiter.judgement for one in principals}
    for worst in (Judgement.TOO_MANY, Judgement.TOO_FEW, Judgement.RIGHT):
        if worst in said:
            return worst
    return Judgement.UNTRIED


def _latency(samples: Calls, kind: Kind) -> Latency:
    return Latency(
        percentiles(sample.ended - sample.intended for sample in samples if sample.kind is kind),
        percentiles(sample.ended - sample.begun for sample in samples if sample.kind is kind),
    )


def _phases(samples: Calls) -> dict[str, Percentiles]:
    durations: dict[str, list[int]] = {name: [] for name in (*PHASES, WHOLE)}
    for sample in samples:
        if sample.kind is not Kind.ACCEPTED:
            continue
        for name, value in zip(PHASES, sample.phases, strict=True):
            if value is not None:
                durations[name].append(value)
        durations[WHOLE].append(sample.ended - sample.begun)
    return {name: found for name, values in durations.items() if (found := percentiles(values)) is not None}
