"""No revoked, expired, lower-generation or out-of-scope call is ever dispatched, in any order of events."""

import pytest
import trio

from tests.properties.running import run_machine
from tests.properties.world import COUNTED


@pytest.mark.parametrize(
    ("whole", "examples", "steps"), [(False, 12, 25), (True, 3, 12)], ids=["fast", "whole"]
)
def test_nothing_that_was_taken_away_is_dispatched(whole: bool, examples: int, steps: int) -> None:
    before = COUNTED.copy()
    trio.run(run_machine, whole, examples, steps)
    assert COUNTED["rules"] > before["rules"]
    assert COUNTED["dispatched"] > before["dispatched"]
