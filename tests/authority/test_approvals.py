"""Tickets and agreements as values: single use, bounded, and by the clock that never steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.actions import parse_arguments
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Reach, Remembered
from tabwarden.authority.approvals import ApprovalBook, approval_digest
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden.limits import ApprovalLimits
from tabwarden.model import Caller

from tests.approvals.support import ONE, OTHER_TAB, TAB, TWO, request

NOW = 1_000_000
MINUTE = 60_000


def agreed(book: ApprovalBook, one: ApprovalRequest, answer: ApprovalAnswer, now: int = NOW) -> Remembered:
    book.open(one, now)
    kept = book.redeem(one, answer, remember_as=f"r-{one.ticket_id}", now_ms=now)
    assert kept is not None
    return kept


def found(book: ApprovalBook, now: int = NOW, **changes: object) -> Remembered | None:
    call: dict[str, object] = {
        "caller": ONE,
        "policy_scope": "click",
        "session_id": TAB,
        "origin": "https://a.test",
        "policy_version": 1,
        "now_ms": now,
    }
    return book.find(**(call | changes))  # type: ignore[arg-type]


def refused(book: ApprovalBook, one: ApprovalRequest, answer: ApprovalAnswer, now: int = NOW) -> Code:
    with pytest.raises(ActionError) as caught:
        book.redeem(one, answer, remember_as="r", now_ms=now)
    return caught.value.code


def test_a_yes_is_used_once() -> None:
    book, one = ApprovalBook(), request()
    assert refused(book, one, one.allow()) is Code.FAILURE  # it was never asked
    book.open(one, NOW)
    assert book.redeem(one, one.allow(), remember_as="r", now_ms=NOW) is None
    assert refused(book, one, one.allow()) is Code.FAILURE
    assert found(book) is None


def test_an_answer_to_another_request_opens_nothing_and_ends_the_ticket() -> None:
    book, one = ApprovalBook(), request()
    other = request("t2", digest=bytes(48))
    book.open(one, NOW)
    assert refused(book, one, other.allow(Reach.SESSION)) is Code.FAILURE
    assert refused(book, one, one.allow(Reach.SESSION)) is Code.FAILURE
    assert found(book) is None


def test_a_no_ends_the_ticket() -> None:
    book, one = ApprovalBook(), request()
    book.open(one, NOW)
    assert refused(book, one, one.deny()) is Code.USER_DENIED
    assert refused(book, one, one.allow()) is Code.FAILURE


def test_after_a_no_the_same_call_is_not_asked_about_for_a_minute() -> None:
    book, one = ApprovalBook(), request()
    book.open(one, NOW)
    refused(book, one, one.deny())
    with pytest.raises(ActionError) as caught:
        book.open(request("t2"), NOW + MINUTE - 1)
    assert (caught.value.code, caught.value.rule) == (Code.USER_DENIED, "approval:just-refused")
    book.open(request("t3", digest=bytes(48)), NOW)
    book.open(request("t2"), NOW + MINUTE)
    for number in range(1000):
        other = request(f"n{number}", digest=number.to_bytes(48), caller=Caller(f"a{number}", 1))
        book.open(other, NOW)
        refused(book, other, other.deny())
    assert len(book._refused) == 256


def test_a_late_yes_is_none() -> None:
    book, one = ApprovalBook(), request()
    book.open(one, NOW)
    assert refused(book, one, one.allow(), one.expires_at_ms) is Code.APPROVAL_TIMEOUT


def test_a_withdrawn_ticket_opens_nothing_and_an_equal_one_is_not_it() -> None:
    book, one = ApprovalBook(), request()
    book.open(one, NOW)
    book.close(request())  # equal, but another question
    assert refused(book, request(), one.allow()) is Code.FAILURE
    book.close(one)
    assert refused(book, one, one.allow()) is Code.FAILURE


def test_a_reach_that_was_not_offered_is_no_answer() -> None:
    book, one = ApprovalBook(), request(reaches=frozenset({Reach.ONCE}))
    with pytest.raises(ConfigurationError, match="reach"):
        one.allow(Reach.SESSION)
    book.open(one, NOW)
    assert refused(book, one, ApprovalAnswer(one.digest, Reach.SESSION)) is Code.FAILURE


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((bytes(47), Reach.ONCE), "digest"),
        ((bytes(48), "once"), "reach"),
        ((bytes(48), Reach.ORIGIN), "minutes"),
        ((bytes(48), Reach.ONCE, 5), "minutes"),
        ((bytes(48), None, 5), "minutes"),
        ((bytes(48), Reach.ORIGIN, 0), "minutes"),
        ((bytes(48), Reach.ORIGIN, 481), "minutes"),
        ((bytes(48), Reach.ORIGIN, True), "minutes"),
        ((bytes(48), Reach.ORIGIN, 5.0), "minutes"),
    ],
)
def test_an_answer_that_cannot_be_is_refused(answer: tuple[object, ...], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        ApprovalAnswer(*answer)  # type: ignore[arg-type]


def test_an_agreement_for_a_tab_holds_for_that_tab_scope_agent_and_policy_only() -> None:
    book, one = ApprovalBook(), request()
    kept = agreed(book, one, one.allow(Reach.SESSION))
    assert found(book) is kept
    assert found(book, origin="https://elsewhere.test") is kept
    for other in (
        {"session_id": OTHER_TAB},
        {"session_id": None},
        {"policy_scope": "type"},
        {"caller": TWO},
        {"caller": Caller("one", 2)},
        {"caller": Caller(None, None)},
    ):
        assert found(book, **other) is None
    assert found(book, policy_version=2) is None
    assert found(book) is None  # another policy was seen: it does not come back with the first one


def test_an_agreement_for_an_origin_ends_by_the_minute() -> None:
    book, one = ApprovalBook(), request()
    kept = agreed(book, one, one.allow(Reach.ORIGIN, 10))
    assert found(book, session_id=None) is kept
    for other in ("http://a.test", "https://a.test:8443", "https://b.a.test", None):
        assert found(book, origin=other) is None
    assert found(book, NOW + 10 * MINUTE - 1) is kept
    assert found(book, NOW + 10 * MINUTE) is None
    assert found(book, NOW) is None


def test_nothing_that_was_agreed_to_outlives_a_working_day() -> None:
    book, one = ApprovalBook(), request()
    agreed(book, one, one.allow(Reach.SESSION))
    assert found(book, NOW + 480 * MINUTE - 1) is not None
    assert found(book, NOW + 480 * MINUTE) is None


def test_an_agreement_can_be_taken_back() -> None:
    book, one, other = ApprovalBook(), request(), request("t2", caller=TWO)
    kept = agreed(book, one, one.allow(Reach.SESSION))
    others = agreed(book, other, other.allow(Reach.SESSION))
    assert book.remembered(1, NOW) == (kept, others)
    assert book.holds(kept, 1, NOW)
    assert book.forget(kept.id)
    assert not book.forget(kept.id)
    assert not book.holds(kept, 1, NOW)
    book.end_principal("two")
    assert book.remembered(1, NOW) == ()


def test_the_end_of_a_principal_takes_its_open_tickets_too() -> None:
    book, one, other = ApprovalBook(), request(), request("t2", caller=TWO)
    book.open(one, NOW)
    book.open(other, NOW)
    book.end_principal("one")
    assert refused(book, one, one.allow(Reach.SESSION)) is Code.FAILURE
    assert book.redeem(other, other.allow(), remember_as="r", now_ms=NOW) is None
    book.open(other, NOW)
    book.end_all()
    assert refused(book, other, other.allow()) is Code.FAILURE


def too_many(book: ApprovalBook, one: ApprovalRequest, now: int = NOW) -> None:
    with pytest.raises(ActionError) as caught:
        book.open(one, now)
    assert (caught.value.code, caught.value.rule) == (Code.RATE_LIMITED, "approval:too-many")


def test_one_agent_has_three_questions_open_and_takes_no_others_place() -> None:
    book = ApprovalBook()
    mine = [request(f"t{number}") for number in range(4)]
    for one in mine[:3]:
        book.open(one, NOW)
    too_many(book, mine[3])
    book.open(request("t9", caller=TWO), NOW)
    book.close(mine[0])
    book.open(mine[3], NOW)


def test_all_together_have_sixteen() -> None:
    book = ApprovalBook()
    for number in range(16):
        book.open(request(f"t{number}", caller=Caller(f"a{number}", 1)), NOW)
    too_many(book, request("t16", caller=Caller("a16", 1)))


def test_six_questions_in_a_minute_are_enough_even_when_each_is_answered_at_once() -> None:
    book = ApprovalBook()
    for number in range(6):
        one = request(f"t{number}")
        book.open(one, NOW + number)
        book.close(one)
    too_many(book, request("t7"), NOW + MINUTE - 1)
    book.end_principal("one")  # a new credential refills nothing
    too_many(book, request("t7"), NOW + MINUTE - 1)
    book.open(request("t7"), NOW + MINUTE)
    too_many(book, request("t8"), NOW + MINUTE)


def test_what_is_remembered_is_bounded_and_the_oldest_gives_way() -> None:
    limits = ApprovalLimits(asks_per_minute=1000, remembered_per_principal=2, remembered=3)
    book = ApprovalBook(limits)
    names = []
    for number, caller in enumerate((ONE, TWO, ONE, ONE, Caller("three", 1))):
        one = request(f"t{number}", caller=caller)
        agreed(book, one, one.allow(Reach.ORIGIN, 60))
        names.append([kept.id for kept in book.remembered(1, NOW)])
    assert names[2] == ["r-t0", "r-t1", "r-t2"]
    assert names[3] == ["r-t1", "r-t2", "r-t3"]
    assert names[4] == ["r-t2", "r-t3", "r-t4"]


def test_agents_that_no_longer_ask_are_forgotten() -> None:
    book = ApprovalBook()
    for number in range(1000):
        one = request(f"t{number}", caller=Caller(f"a{number}", 1))
        book.open(one, NOW + number * MINUTE)
        book.close(one)
    assert len(book._asked) == 1


CALLS = st.tuples(
    st.sampled_from(
        [
            ("click", {"selector": "#a"}),
            ("click", {"selector": "#b"}),
            ("type", {"selector": "#a", "text": "x"}),
            ("type", {"selector": "#a", "text": ""}),
            ("type", {"selector": "#ax", "text": ""}),
            ("scroll", {}),
            ("scroll", {"x": 1}),
            ("scroll", {"y": 1}),
        ]
    ),
    st.sampled_from([None, TAB, OTHER_TAB]),
    st.sampled_from([ONE, TWO, Caller("one", 2), Caller(None, None), Caller("o", 1), Caller("ne", 1)]),
    st.integers(1, 3),
)


@given(CALLS, CALLS)
def test_two_calls_have_the_same_digest_only_if_they_are_the_same(one: object, other: object) -> None:
    assert (_digest(one) == _digest(other)) == (one == other)


def _digest(call: object) -> bytes:
    (action, args), session_id, caller, version = call  # type: ignore[misc]
    _, arguments = parse_arguments(action, args)
    digest = approval_digest(action, arguments, session_id, caller, version)
    assert len(digest) == 48
    return digest


def test_nothing_that_a_person_is_shown_or_answers_is_in_a_repr() -> None:
    from tabwarden.authority.describing import describe

    _, arguments = parse_arguments("type", {"selector": "#secret-field", "text": "hunter2"})
    one = request(facts=describe(arguments, 100))
    for text in (repr(one), repr(one.facts), repr(one.allow()), str(one.facts)):
        assert "hunter2" not in text
        assert "secret-field" not in text
        assert repr(one.digest) not in text
