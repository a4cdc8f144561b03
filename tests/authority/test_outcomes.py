"""The ledger of outcomes: `not_started` is only said when it is certain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.authority.outcomes import OutcomeLedger, effect

LIFETIME = 1000


@pytest.mark.parametrize(
    ("committed", "word"), [(True, "committed"), (False, "not_started"), (None, "unknown")]
)
def test_the_wire_word_of_an_effect(committed: bool | None, word: str) -> None:
    assert effect(committed) == word


def test_a_key_never_seen_was_never_started() -> None:
    assert OutcomeLedger(4, LIFETIME).ask("key", 0) == "not_started"


def test_a_running_call_is_unknown_until_it_ends() -> None:
    ledger = OutcomeLedger(4, LIFETIME)
    assert ledger.begin("key", 0)
    assert ledger.ask("key", 10) == "unknown"
    ledger.end("key", "committed", 20)
    assert ledger.ask("key", 30) == "committed"


@pytest.mark.parametrize("result", ["not_started", "committed", "unknown"])
def test_a_key_serves_for_one_call(result: str) -> None:
    ledger = OutcomeLedger(4, LIFETIME)
    assert ledger.begin("key", 0)
    assert not ledger.begin("key", 1)
    ledger.end("key", result, 2)  # type: ignore[arg-type]
    assert not ledger.begin("key", 3)
    assert ledger.ask("key", 4) == result


def test_an_end_without_a_beginning_leaves_nothing() -> None:
    ledger = OutcomeLedger(4, LIFETIME)
    ledger.end("key", "committed", 0)
    assert ledger.ask("key", 0) == "not_started"


def test_age_is_counted_from_the_end_of_the_call() -> None:
    ledger = OutcomeLedger(4, LIFETIME)
    ledger.begin("key", 0)
    ledger.end("key", "committed", 500)
    assert ledger.ask("key", 500 + LIFETIME - 1) == "committed"
    assert ledger.ask("key", 500 + LIFETIME) == "unknown"


def test_once_a_key_was_forgotten_nothing_is_certain() -> None:
    by_age = OutcomeLedger(4, LIFETIME)
    by_age.begin("old", 0)
    by_age.end("old", "committed", 0)
    assert by_age.ask("never", LIFETIME) == "unknown"
    by_number = OutcomeLedger(1, LIFETIME)
    by_number.begin("old", 0)
    assert by_number.ask("never", 0) == "not_started"
    by_number.begin("new", 1)
    assert by_number.ask("never", 1) == "unknown"
    assert by_number.ask("old", 1) == "unknown"


def test_the_oldest_goes_first_when_there_is_no_room() -> None:
    ledger = OutcomeLedger(2, LIFETIME)
    for at, key in enumerate("abc"):
        ledger.begin(key, at)
        ledger.end(key, "committed", at)
    assert [ledger.ask(key, 3) for key in "abc"] == ["unknown", "committed", "committed"]


def test_a_call_that_ended_later_outlives_one_that_began_later() -> None:
    ledger = OutcomeLedger(2, LIFETIME)
    ledger.begin("long", 0)
    ledger.begin("short", 1)
    ledger.end("short", "not_started", 2)
    ledger.end("long", "committed", 900)
    ledger.begin("third", 901)
    assert ledger.ask("long", 902) == "committed"
    assert ledger.ask("short", 902) == "unknown"


steps = st.lists(
    st.tuples(st.sampled_from(["begin", "end", "ask"]), st.sampled_from("abcdef"), st.integers(0, 400)),
    max_size=60,
)


@given(steps)
def test_what_is_said_is_true(steps: list[tuple[str, str, int]]) -> None:
    """`not_started` never of a call that began, and `committed` only of one that ended so."""
    ledger, now = OutcomeLedger(3, LIFETIME), 0
    began: set[str] = set()
    ended: set[str] = set()
    for step, key, passed in steps:
        now += passed
        if step == "begin":
            if ledger.begin(key, now):
                began.add(key)
                ended.discard(key)
        elif step == "end":
            ledger.end(key, "committed", now)
            if key in began:
                ended.add(key)
        else:
            said = ledger.ask(key, now)
            if said == "not_started":
                assert key not in began
            if said == "committed":
                assert key in ended
