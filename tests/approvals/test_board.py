"""Questions that wait for whoever answers first."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Reach
from tabwarden.authority.approvals import ApprovalBook
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden_adapters.approvals import Ending, NotPending, PendingApprovals

from tests.approvals.support import request
from tests.support.fakes import ManualClock


class Board(PendingApprovals):
    def __init__(self) -> None:
        self.book, self.clock = ApprovalBook(), ManualClock()
        super().__init__(self.book, self.clock, lambda: 1)


class Asking:
    """A task that asks; `result` is what came of it."""

    def __init__(self, one: ApprovalRequest) -> None:
        self.request = one
        self.scope = trio.CancelScope()
        self.result: Any = None
        self.done = trio.Event()


@asynccontextmanager
async def asking(board: PendingApprovals, *requests: ApprovalRequest) -> AsyncIterator[list[Asking]]:
    tasks = [Asking(one) for one in requests]

    async def ask(task: Asking) -> None:
        with task.scope:
            try:
                task.result = await board.ask(task.request)
            except ActionError as error:
                task.result = error.code
        task.done.set()

    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(ask, task)
            await trio.testing.wait_all_tasks_blocked()
        yield tasks
        nursery.cancel_scope.cancel()


def not_pending(board: PendingApprovals, one: ApprovalRequest) -> Ending:
    with pytest.raises(NotPending) as caught:
        board.answer(one.ticket_id, one.allow())
    assert str(caught.value)
    assert board.ending(one.ticket_id) is caught.value.ending
    return caught.value.ending


async def test_the_first_answer_wins(autojump_clock: object) -> None:
    board, one = Board(), request()
    with board.attending():
        async with asking(board, one) as [task]:
            assert board.pending() == (one,)
            assert board.ending("t1") is None
            board.answer("t1", one.deny())
            assert board.pending() == ()
            assert not_pending(board, one) is Ending.ANSWERED
            await trio.testing.wait_all_tasks_blocked()
            assert task.result == one.deny()


async def test_answers_go_to_their_own_tickets_only(autojump_clock: object) -> None:
    board, one, other = Board(), request("t1"), request("t2", digest=b"\x01" * 48)
    with board.attending():
        async with asking(board, one, other) as [first, second]:
            assert board.pending() == (one, other)
            with pytest.raises(ConfigurationError, match="digest"):
                board.answer("t1", other.allow())
            narrow = request("t3", reaches=frozenset({Reach.ONCE}))
            async with asking(board, narrow):
                with pytest.raises(ConfigurationError, match="reach"):
                    board.answer("t3", ApprovalAnswer(narrow.digest, Reach.SESSION))
                assert board.ending("t3") is None
            board.answer("t2", other.allow(Reach.ORIGIN, 5))
            await trio.testing.wait_all_tasks_blocked()
            assert first.result is None
            assert second.result == ApprovalAnswer(other.digest, Reach.ORIGIN, 5)


async def test_a_cancelled_question_is_withdrawn_and_cannot_be_answered(autojump_clock: object) -> None:
    board = Board()
    for number, (cancel, ending) in enumerate(
        (
            (lambda task: task.scope.cancel(), Ending.WITHDRAWN),
            (lambda task: task.scope.cancel(reason=Ending.POLICY_CHANGED), Ending.POLICY_CHANGED),
            (lambda task: task.scope.cancel(reason="words of somebody"), Ending.WITHDRAWN),
            (lambda task: setattr(task.scope, "deadline", trio.current_time() + 1), Ending.TIMED_OUT),
        )
    ):
        one = request(f"t{number}")
        with board.attending():
            async with asking(board, one) as [task]:
                cancel(task)
                await task.done.wait()
                assert board.pending() == ()
                assert not_pending(board, one) is ending
                assert task.result is None


async def test_a_ticket_ends_by_the_clock_that_never_steps_even_if_the_machine_slept(
    autojump_clock: object,
) -> None:
    board, one = Board(), request()
    with board.attending():
        async with asking(board, one) as [task]:
            board.clock.wall += 10**12
            board.clock.boottime = one.expires_at_ms - 1
            assert board.pending() == (one,)
            board.clock.boottime += 1
            assert not_pending(board, one) is Ending.TIMED_OUT
            await trio.testing.wait_all_tasks_blocked()
            assert task.result is Code.APPROVAL_TIMEOUT


async def test_while_nobody_attends_there_is_nobody_to_ask(autojump_clock: object) -> None:
    board, one = Board(), request()
    async with asking(board, one) as [task]:
        assert task.result is Code.NO_APPROVER
        assert not_pending(board, one) is Ending.UNKNOWN
    with board.attending():
        with board.attending():
            pass
        async with asking(board, request("t2")) as [task]:
            assert task.result is None
            board.answer("t2", one.deny())
    with board.attending():
        pass
    async with asking(board, request("t3")) as [task]:
        assert task.result is Code.NO_APPROVER


async def test_when_the_last_one_leaves_what_is_open_ends(autojump_clock: object) -> None:
    board, one = Board(), request()
    attending = board.attending()
    with attending:
        async with asking(board, one) as [task]:
            attending.__exit__(None, None, None)
            await trio.testing.wait_all_tasks_blocked()
            assert task.result is Code.NO_APPROVER
            assert not_pending(board, one) is Ending.NOBODY_THERE
            board._attending += 1


async def test_changes_can_be_waited_for(autojump_clock: object) -> None:
    board, one = Board(), request()
    seen = board.revision
    with trio.move_on_after(5) as nothing:
        await board.changed(seen)
    assert nothing.cancelled_caught
    with board.attending():
        async with asking(board, one):
            now = await board.changed(seen)
            assert now > seen
            board.answer("t1", one.deny())
            assert await board.changed(now) > now
            # A change that was missed is not waited for again.
            assert await board.changed(seen) == board.revision


async def test_agreements_are_listed_and_taken_back() -> None:
    board, one = Board(), request()
    board.book.open(one, board.clock.boottime)
    kept = board.book.redeem(one, one.allow(Reach.SESSION), remember_as="r1", now_ms=board.clock.boottime)
    assert board.remembered() == (kept,)
    before = board.revision
    assert board.forget("r1")
    assert board.revision > before
    assert board.remembered() == ()
    assert not board.forget("r1")


async def test_how_old_questions_ended_is_forgotten(autojump_clock: object) -> None:
    board = Board()
    with board.attending():
        for number in range(200):
            one = request(f"t{number}")
            async with asking(board, one):
                board.answer(one.ticket_id, one.deny())
    assert len(board._endings) == 64
    assert board.ending("t0") is Ending.UNKNOWN
    assert board.ending("t199") is Ending.ANSWERED
