"""The questions of a host: asked, answered once, withdrawn, and not too many of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden_adapters.host import (
    ApprovalKind,
    ApprovalRequest,
    HandoffRequest,
    QuestionCounts,
    QuestionEnd,
    Questions,
    Reply,
)
from tabwarden_adapters.host.limits import PERSON_WAIT_S
from tabwarden_adapters.host.questions import A_MINUTE, MINUTE_S, REFUSED_KEPT

from tests.host.support import until

SITE = "https://shop.test"
Replies = list[Reply]


def approval(summary: str = "words", kind: ApprovalKind = ApprovalKind.SITE) -> ApprovalRequest:
    return ApprovalRequest(kind, SITE, summary)


@asynccontextmanager
async def asking(questions: Questions, *requests: Any) -> AsyncIterator[Replies]:
    """The requests, asked one after the other before the block begins; answered by its end."""
    replies: Replies = []
    with trio.fail_after(1000):
        async with trio.open_nursery() as nursery:

            async def ask(request: Any) -> None:
                replies.append(await questions.ask(request))

            for number, request in enumerate(requests, 1):
                nursery.start_soon(ask, request)
                await until(lambda number=number: questions.counts.asked == number)  # type: ignore[misc]
            yield replies


@pytest.mark.parametrize("reply", [Reply.YES, Reply.NO, Reply.CONFIRM])
async def test_the_first_answer_counts(reply: Reply) -> None:
    questions = Questions()
    with questions.attending():
        async with asking(questions, approval()) as replies:
            (question,) = questions.pending()
            assert questions.end_of(question) is None
            assert questions.answer(question, reply) is True
            assert questions.answer(question, Reply.NO) is False
        assert replies == [reply]
        assert questions.end_of(question) is QuestionEnd.ANSWERED
        assert questions.pending() == ()


async def test_a_handoff_has_other_answers() -> None:
    questions = Questions()
    with questions.attending():
        async with asking(questions, HandoffRequest("log in", SITE), approval()) as replies:
            handoff, other = questions.pending()
            for question, reply in (
                (handoff, Reply.YES),
                (handoff, Reply.CONFIRM),
                (other, Reply.DONE),
            ):
                with pytest.raises(ValueError, match="reply"):
                    questions.answer(question, reply)
            assert replies == []
            questions.answer(handoff, Reply.DONE)
            questions.answer(other, Reply.YES)
        assert sorted(replies) == [Reply.DONE, Reply.YES]


async def test_when_nobody_is_there_it_is_no_at_once() -> None:
    questions = Questions()
    assert await questions.ask(approval()) is Reply.NO
    assert questions.counts == QuestionCounts(asked=0, unasked=1)


async def test_when_the_last_one_leaves_open_questions_are_answered_no() -> None:
    questions, replies = Questions(), []

    async def ask() -> None:
        replies.append(await questions.ask(approval()))

    async with trio.open_nursery() as nursery:
        with questions.attending():
            with questions.attending():
                nursery.start_soon(ask)
                await until(questions.pending)
            (question,) = questions.pending()  # one is there still
    assert replies == [Reply.NO]
    assert questions.end_of(question) is QuestionEnd.NOBODY


async def test_cancelling_withdraws_it_and_no_answer_counts(autojump_clock: trio.testing.MockClock) -> None:
    questions = Questions()
    for wait, end in ((2.0, QuestionEnd.WITHDRAWN), (PERSON_WAIT_S, QuestionEnd.TIMED_OUT)):
        with questions.attending():
            with trio.move_on_after(wait):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(questions.ask, approval(str(wait)))
                    await until(questions.pending)
                    (question,) = questions.pending()
                    await trio.sleep_forever()
            assert questions.pending() == ()
            assert questions.end_of(question) is end
            assert questions.answer(question, Reply.YES) is False


async def test_all_can_be_withdrawn() -> None:
    questions = Questions()
    with questions.attending():
        async with asking(questions, approval("a"), HandoffRequest("b", SITE)) as replies:
            questions.withdraw_all()
            assert questions.pending() == ()
        assert replies == [Reply.NO, Reply.NO]


async def test_what_was_just_refused_is_not_asked_again(autojump_clock: trio.testing.MockClock) -> None:
    questions = Questions()
    with questions.attending():
        async with asking(questions, approval()):
            questions.answer(questions.pending()[0], Reply.NO)
        assert await questions.ask(approval()) is Reply.NO
        assert questions.counts == QuestionCounts(asked=1, unasked=1)
        other = approval(kind=ApprovalKind.RISK)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(questions.ask, other)
            await until(questions.pending)
            questions.answer(questions.pending()[0], Reply.YES)
        autojump_clock.jump(MINUTE_S)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(questions.ask, approval())
            await until(questions.pending)
            questions.answer(questions.pending()[0], Reply.YES)
        assert questions.counts == QuestionCounts(asked=3, unasked=1)


async def test_more_than_a_person_can_think_about_in_a_minute_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    questions = Questions()
    with questions.attending():

        async def asked(number: int) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(questions.ask, approval(str(number)))
                await until(questions.pending)
                questions.answer(questions.pending()[0], Reply.YES)

        await asked(0)
        autojump_clock.jump(MINUTE_S - 1)
        for number in range(1, A_MINUTE):
            await asked(number)
        assert await questions.ask(approval("too much")) is Reply.NO
        assert questions.counts == QuestionCounts(asked=A_MINUTE, unasked=1)
        autojump_clock.jump(1)
        await asked(A_MINUTE)  # the first one is a minute ago
        assert await questions.ask(approval("too much")) is Reply.NO


async def test_what_is_remembered_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    questions = Questions()
    with questions.attending():
        for number in range(REFUSED_KEPT + 5):
            autojump_clock.jump(MINUTE_S)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(questions.ask, approval(str(number)))
                await until(questions.pending)
                questions.answer(questions.pending()[0], Reply.NO)
    assert len(questions._refused) == len(questions._ends) == REFUSED_KEPT
