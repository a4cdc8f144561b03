"""The load on a real broker: what was measured is what the broker did."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
import trio
import trio.testing
from tabwarden.errors import ActionError, Code
from tabwarden.limits import Limits
from tabwarden_adapters.load import Brakes, Judgement, Kind, LoadPlan, Run, Sample, Tally, drive, report_of
from tabwarden_adapters.load.driving import PAUSE_S

from tests.load.support import broker

LIMIT_S = 60


def calls(most: int, agents: int = 2) -> LoadPlan:
    """A closed loop that ends with this many calls, however long they take."""
    return LoadPlan(agents=agents, seconds=3600, most_calls=most)


def pauses(samples: list[Sample]) -> bool:
    """Whether an agent rested after each of its calls."""
    return all(after.begun - before.ended >= PAUSE_S * 1e9 for before, after in pairwise(samples))


async def test_a_closed_loop_in_legacy_mode() -> None:
    tally = Tally()
    async with broker() as running:
        with trio.fail_after(LIMIT_S):
            run = await drive(calls(30, agents=3), running.descriptors, tally=tally)
    samples = list(run.samples)
    assert {sample.agent for sample in samples} == {0, 1, 2}
    assert {(sample.kind, sample.code, sample.taken) for sample in samples} == {(Kind.ACCEPTED, "ok", True)}
    assert len(running.audit.terminal()) == len(samples) == tally.counts[Kind.ACCEPTED]
    for sample in samples:
        assert sample.asked is not None
        assert sample.intended <= sample.begun <= sample.asked <= sample.ended
        # The phases lie side by side and fill the call.
        assert None not in sample.phases
        assert sum(phase or 0 for phase in sample.phases) <= sample.ended - sample.begun
        assert min(phase or 0 for phase in sample.phases) >= 0
    assert (run.principals, run.not_sent) == (("legacy",) * 3, 0)
    report = report_of(run)
    assert report.good
    assert report.limiter is Judgement.UNTRIED


async def test_an_open_loop_starts_calls_by_the_clock_and_over_all_principals() -> None:
    plan = LoadPlan(agents=4, seconds=0.5, rate=10)
    async with broker("alice", "bob") as running:
        with trio.fail_after(LIMIT_S):
            run = await drive(plan, running.descriptors)
    samples = list(run.samples)
    assert len(samples) + run.not_sent == plan.planned_calls == 20
    planned = {(agent, plan.start_ns(agent, number)) for agent in range(4) for number in range(5)}
    assert {(sample.agent, sample.intended) for sample in samples} <= planned
    assert all(sample.begun >= sample.intended for sample in samples)
    seen = Counter(event.principal_id for event in running.audit.terminal())
    accepted = {one.id: one.accepted for one in report_of(run).principals}
    assert accepted == {"alice": seen["alice"], "bob": seen["bob"]}
    assert run.ended_by == "time"


async def test_the_limiter_of_a_real_broker() -> None:
    plan = replace(calls(40, agents=4), limit=5)
    limits = Limits(requests_per_minute=5, challenges_per_minute=1000)
    async with broker("alice", "bob", limits=limits) as running:
        with trio.fail_after(LIMIT_S):
            run = await drive(plan, running.descriptors)
            again = await drive(plan, running.descriptors)
    report = report_of(run)
    assert report.limiter is Judgement.RIGHT
    assert [(one.accepted, one.limiter.most) for one in report.principals] == [(5, 5), (5, 5)]
    assert report.counts.limited == report.counts.codes["rate-limited"] == len(run.samples) - 10 > 0
    assert report.good
    # Within the same minute nothing is left; that says nothing against the limiter.
    report = report_of(again)
    assert (report.limiter, report.counts.accepted, report.good) == (Judgement.UNTRIED, 0, False)
    # The same calls, if only four had been promised.
    assert report_of(again_with_limit(run, 4)).limiter is Judgement.TOO_MANY


def again_with_limit(run: Run, limit: int) -> Run:
    return replace(run, plan=replace(run.plan, limit=limit))


async def test_too_many_challenges_are_told_from_too_many_calls() -> None:
    limits = Limits(requests_per_minute=1, challenges_per_minute=3)
    async with broker(limits=limits) as running:
        with trio.fail_after(LIMIT_S):
            run = await drive(calls(6, agents=1), running.descriptors)
    codes = [sample.code for sample in run.samples]
    assert codes == ["ok", "rate-limited", "rate-limited", *["challenge-limited"] * 3]
    (first, *_) = [sample for sample in run.samples if sample.code == "challenge-limited"]
    assert (first.kind, first.taken, first.asked, first.phases[2:]) == (
        Kind.LIMITED,
        False,
        None,
        (None,) * 3,
    )


async def test_what_policy_denies_is_refused_by_its_code() -> None:
    async with broker() as running:
        with trio.fail_after(LIMIT_S):
            run = await drive(replace(calls(3), action="read"), running.descriptors)
    assert {(one.kind, one.code, one.taken) for one in run.samples} == {(Kind.REFUSED, "policy-denied", True)}
    assert not report_of(run).good


async def test_a_busy_browser_is_asked_once_for_each_call() -> None:
    async def busy(arguments: object, context: object) -> object:
        raise ActionError(Code.BUSY)

    async with broker(adapter=busy) as running:
        with trio.fail_after(LIMIT_S):
            run = await drive(calls(6), running.descriptors)
    assert {one.code for one in run.samples} == {"browser-management-busy"}
    assert len(running.audit.terminal()) == len(run.samples)


async def test_a_revoked_principal_is_refused_and_does_not_hurry() -> None:
    async with broker("alice", "bob") as running:
        await running.control.revoke_principal("bob")
        with trio.fail_after(LIMIT_S):
            run = await drive(calls(20), running.descriptors)
    bobs = [sample for sample in run.samples if sample.agent == 1]
    assert {(one.kind, one.code, one.asked) for one in bobs} == {(Kind.REFUSED, "refused", None)}
    assert pauses(bobs)
    assert report_of(run).principals[0].accepted > 0


async def test_a_broker_that_is_gone_is_not_hammered() -> None:
    async with broker() as running:
        pass
    with trio.fail_after(LIMIT_S):
        run = await drive(calls(4), running.descriptors)
    assert {(one.kind, one.code, one.taken) for one in run.samples} == {
        (Kind.TRANSPORT, "unreachable", False)
    }
    assert all(pauses([one for one in run.samples if one.agent == agent]) for agent in (0, 1))
    assert not report_of(run).good


class Held:
    """An adapter whose calls end when they are released."""

    def __init__(self) -> None:
        self.inside = trio.Event()
        self.release = trio.Event()

    async def __call__(self, arguments: object, context: object) -> list[object]:
        self.inside.set()
        await self.release.wait()
        return []


async def test_stopping_early_lets_calls_in_flight_end() -> None:
    held, brakes, runs = Held(), Brakes(), []
    async with broker(adapter=held) as running:

        async def run() -> None:
            runs.append(
                await drive(LoadPlan(agents=2, seconds=3600, rate=1), running.descriptors, brakes=brakes)
            )

        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
                await held.inside.wait()
                brakes.press()
                await trio.testing.wait_all_tasks_blocked()
                held.release.set()
    (run_,) = runs
    assert run_.ended_by == "interrupt"
    assert 1 <= len(run_.samples) <= 2
    assert {one.kind for one in run_.samples} == {Kind.ACCEPTED}
    assert run_.not_sent <= 2


async def test_halting_waits_for_nobody_and_says_so() -> None:
    held, brakes, runs = Held(), Brakes(), []
    async with broker(adapter=held) as running:

        async def run() -> None:
            runs.append(await drive(LoadPlan(agents=1, seconds=3600), running.descriptors, brakes=brakes))

        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
                await held.inside.wait()
                brakes.press()
                brakes.press()
    ((sample,),) = (list(run.samples) for run in runs)
    assert (sample.kind, sample.code, sample.taken) == (Kind.TRANSPORT, "unfinished", None)
    assert sample.phases[3] is None


async def test_a_call_that_takes_too_long_is_given_up() -> None:
    async with broker(adapter=Held()) as running:
        with trio.fail_after(LIMIT_S):
            run = await drive(replace(calls(1, agents=1), patience_s=0.3), running.descriptors)
    ((kind, code, taken, asked),) = [(one.kind, one.code, one.taken, one.asked) for one in run.samples]
    assert (kind, code) == (Kind.TRANSPORT, "client-deadline")
    # On the busiest of machines it may not even have been sent.
    assert taken is (None if asked is not None else False)


async def test_it_ends_when_it_has_kept_enough() -> None:
    async with broker() as running:
        with trio.fail_after(LIMIT_S):
            run = await drive(calls(5), running.descriptors)
    assert run.ended_by == "enough"
    assert 5 <= len(run.samples) <= 6


@pytest.mark.parametrize("agents", [1, 3])
async def test_an_agent_has_one_call_in_flight(agents: int) -> None:
    inside, most = 0, 0

    async def adapter(arguments: object, context: object) -> list[object]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await trio.lowlevel.checkpoint()
        inside -= 1
        return []

    async with broker(adapter=adapter) as running:
        with trio.fail_after(LIMIT_S):
            await drive(calls(20, agents), running.descriptors)
    assert 1 <= most <= agents
