"""What is made of the calls of a run: counts, percentiles, fairness, and the run in pieces."""

import pytest
from tabwarden_adapters.load import Judgement, Kind, Sample, report_of
from tabwarden_adapters.load.figures import fairness, percentiles, quantile
from tabwarden_adapters.load.timeline import Fill, curve, fills, steps

from tests.load.support import SECOND, run_of, sample


def test_percentiles_are_by_nearest_rank() -> None:
    thousand = [number * 1_000_000 for number in range(1000, 0, -1)]
    found = percentiles(thousand)
    assert found is not None
    assert (found.count, found.p50_ms, found.p90_ms, found.p99_ms, found.max_ms) == (
        1000,
        500,
        900,
        990,
        1000,
    )
    one = percentiles([5_000_000])
    assert one is not None
    assert (one.p50_ms, one.p99_ms, one.max_ms) == (5, 5, 5)
    assert percentiles([]) is None
    assert [quantile([1, 2, 3], share) for share in (0, 0.34, 0.67, 1)] == [1, 2, 3, 3]


@pytest.mark.parametrize(
    ("got", "slowest", "share", "jain"),
    [
        ({"a": 10, "b": 10, "c": 10}, "a", 1.0, 1.0),
        ({"a": 12, "b": 0, "c": 0}, "b", 0.0, 1 / 3),
        ({"a": 30, "b": 10}, "b", 0.5, 0.8),
        ({"a": 0, "b": 0}, "a", None, None),
    ],
)
def test_fairness(got: dict[str, float], slowest: str, share: float | None, jain: float | None) -> None:
    found = fairness(got)
    assert found.slowest == slowest
    assert found.slowest_share == (None if share is None else pytest.approx(share))
    assert found.jain == (None if jain is None else pytest.approx(jain))


def test_calls_are_counted_by_how_they_ended() -> None:
    calls = [
        *[sample(number) for number in range(4)],
        sample(4, kind=Kind.LIMITED, code="rate-limited"),
        sample(5, kind=Kind.REFUSED, code="policy-denied"),
        sample(5, kind=Kind.REFUSED, code="policy-denied"),
        sample(6, kind=Kind.FAILED, code="deadline"),
        sample(7, kind=Kind.TRANSPORT, code="unreachable"),
    ]
    report = report_of(run_of(calls, seconds=8, not_sent=3))
    counts = report.counts
    assert (counts.accepted, counts.limited, counts.refused, counts.failed, counts.transport) == (
        4,
        1,
        2,
        1,
        1,
    )
    assert counts.codes == {
        "ok": 4,
        "rate-limited": 1,
        "policy-denied": 2,
        "deadline": 1,
        "unreachable": 1,
    }
    assert (report.calls, report.not_sent, report.throughput) == (9, 3, 0.5)
    assert set(report.latency) == {"accepted", "limited", "refused", "failed", "transport"}
    (alice,) = report.principals
    assert (alice.id, alice.agents, alice.accepted, alice.limited, alice.other) == ("alice", 1, 4, 1, 4)
    assert report.good
    assert not report_of(run_of([sample(0, kind=Kind.FAILED)])).good


def test_a_call_that_had_to_wait_for_the_one_before_counts_its_wait() -> None:
    calls = [sample(0, 3.0, intended=0), sample(3, 0.1, intended=1), sample(3.1, 0.1, intended=2)]
    accepted = report_of(run_of(calls)).latency["accepted"]
    assert accepted.from_sending is not None
    assert accepted.from_intended is not None
    assert accepted.from_sending.p50_ms == pytest.approx(100)
    assert accepted.from_intended.p50_ms == pytest.approx(2100)
    assert accepted.from_intended.max_ms == accepted.from_sending.max_ms == pytest.approx(3000)


def test_phases_are_of_accepted_calls_and_of_those_that_came_to_them() -> None:
    calls = [
        sample(0, phases=(0.001, 0.002, 0.003, 0.004, 0.005)),
        sample(1, phases=(0.003, 0.002, 0.003, 0.004, 0.005)),
        sample(2, 9, kind=Kind.TRANSPORT, phases=(0.1, 0.2, None, None, None)),
    ]
    report = report_of(run_of(calls), {"audit": [2_000_000, 1_000_000], "whole call": [4_000_000]})
    assert list(report.phases) == ["connecting", "challenge", "sealing", "waiting", "opening", "whole call"]
    assert report.phases["connecting"].count == 2
    assert report.phases["connecting"].max_ms == pytest.approx(3)
    assert report.phases["opening"].p50_ms == pytest.approx(5)
    assert report.phases["whole call"].max_ms == pytest.approx(10)
    assert report.broker_requests == 1
    assert report.broker_phases["audit"].max_ms == 2


def test_principals_are_judged_each_for_itself_and_the_worst_is_said() -> None:
    def minute(agent: int, count: int) -> list[Sample]:
        return [sample(number * 0.5, 0.001, agent=agent) for number in range(count)]

    turned_away = sample(50, 0.001, Kind.LIMITED, agent=0, code="rate-limited")
    right = report_of(run_of([*minute(0, 60), turned_away], principals=("alice", "bob"), seconds=60))
    assert right.limiter is Judgement.RIGHT
    assert [one.limiter.judgement.value for one in right.principals] == ["right", "untried"]
    wrong = report_of(
        run_of([*minute(0, 60), turned_away, *minute(1, 61)], principals=("alice", "bob"), seconds=60)
    )
    assert wrong.limiter is Judgement.TOO_MANY
    assert not wrong.good
    # Two agents of one principal share its minute.
    shared = report_of(run_of([*minute(0, 40), *minute(1, 40)], principals=("alice", "alice"), seconds=60))
    assert shared.limiter is Judgement.TOO_MANY
    assert [one.agents for one in shared.principals] == [2]
    assert report_of(run_of([*minute(0, 40), *minute(1, 40)], principals=("alice", "bob"))).good


def test_being_turned_away_with_the_challenge_says_nothing_of_the_limiter() -> None:
    never_asked = sample(70, 0.001, Kind.LIMITED, code="challenge-limited")._replace(asked=None)
    assert report_of(run_of([sample(0), never_asked], seconds=80)).limiter is Judgement.UNTRIED
    asked = sample(70, 0.001, Kind.LIMITED, code="rate-limited")
    assert report_of(run_of([sample(0), asked], seconds=80)).limiter is Judgement.TOO_FEW


def test_the_run_in_pieces() -> None:
    calls = [sample(0, 0.2), sample(0.1, 0.4), sample(1, 0.5), sample(1.9, 0.3, Kind.FAILED)]
    first, second, *rest, last = steps(run_of(calls).samples, 4 * SECOND, 8)
    assert (first.until_s, first.ended, first.p50_ms, first.p99_ms) == (0.5, (1, 0, 0, 0, 0), 200, 200)
    assert (second.ended[Kind.ACCEPTED], second.p50_ms) == (1, 400)
    assert sum(sum(piece.ended) for piece in rest) == 2
    assert (last.until_s, last.p50_ms) == (4.0, None)
    # What ended a moment after the run counts to its last piece.
    assert steps([sample(3.99, 0.5)], 4 * SECOND, 8)[-1].ended[Kind.ACCEPTED] == 1


def test_how_full_the_minutes_were() -> None:
    calls = [sample(second, 0, agent=second % 2) for second in range(1, 100)]
    calls += [sample(50, 0, Kind.LIMITED)]
    found = fills(calls, ("alice", "bob"), 120 * SECOND, 4)
    assert found == [Fill(30.0, 15, 15), Fill(60.0, 30, 30), Fill(90.0, 30, 30), Fill(120.0, 19, 20)]
    # One that was sent before the minute and answered within it belongs to neither for certain.
    assert fills([sample(29, 2), sample(31, 1)], ("alice",), 90 * SECOND, 1) == [Fill(90.0, 1, 1)]


def test_a_percentile_curve_goes_to_the_longest() -> None:
    points = curve([number * 1_000_000 for number in range(1, 101)])
    assert points[0] == (0.0, 1.0)
    assert points[2] == (0.5, 50.0)
    assert points[-1] == (1.0, 100.0)
    assert [share for share, _ in points] == sorted(share for share, _ in points)
    assert curve([]) == []
