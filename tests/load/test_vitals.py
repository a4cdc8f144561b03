"""Whether what a process holds grows, by hand-made measurements."""

import os
import threading

import pytest

from tests.bench.vitals import MIB, Vitals, growth, shown, vitals


def series(*rss_mib: float, tasks: int = 9) -> list[Vitals]:
    return [Vitals(round(one * MIB), 20, 3, tasks) for one in rss_mib]


def test_warming_up_is_no_growth() -> None:
    assert growth(series(10, 40, 60, 70, 70, 70, 70.5, 71, 71)) == {}
    assert shown({}) == "none from the middle third to the last"


def test_what_grows_is_named() -> None:
    leaking = series(*range(30, 60))
    assert growth(leaking) == {"rss": 10 * MIB}
    assert shown(growth(leaking)) == "rss by 10.0 MiB"
    more = [*series(*[50] * 20), *series(*[50] * 10, tasks=14)]
    assert growth(more) == {"tasks": 5}
    assert growth([*series(*[50] * 20), *series(*[50] * 10, tasks=11)]) == {}


def test_one_measurement_that_stands_out_is_none() -> None:
    assert growth(series(50, 50, 50, 50, 50, 50, 50, 90, 50)) == {}


def test_too_few_to_tell() -> None:
    with pytest.raises(ValueError, match="at least three"):
        growth(series(1, 2))


def test_of_this_process() -> None:
    one = vitals(os.getpid(), 7)
    assert one.tasks == 7
    assert one.threads >= threading.active_count()
    assert one.rss > MIB
    assert one.files >= 3
