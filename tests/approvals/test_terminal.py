"""The approver at a terminal, on a real pseudo-terminal."""

import os
import re
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden.actions import parse_arguments
from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Reach
from tabwarden.authority.approvals import ApprovalBook
from tabwarden.authority.describing import describe
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden.model import Caller
from tabwarden_adapters.approvals import Ending, PendingApprovals, TerminalApprover

from tests.approvals.screens import Screen
from tests.approvals.support import request
from tests.attacks.serving import until
from tests.support.fakes import ManualClock

PROMPT = "Your answer: "


@pytest.fixture
def screen() -> Iterator[Screen]:
    one = Screen()
    yield one
    one.close()


class Desk:
    """A board, and a terminal approver that runs in a nursery with the questions."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.board = PendingApprovals(ApprovalBook(), ManualClock(), lambda: 1)
        self.answers: dict[str, ApprovalAnswer | Code] = {}
        self.asking: dict[str, trio.CancelScope] = {}
        self.ended = trio.Event()

    def ask(self, ticket_id: str = "t1", **changes: Any) -> ApprovalRequest:
        one = request(ticket_id, **changes)
        self.nursery.start_soon(self._ask, one)
        return one

    async def _ask(self, one: ApprovalRequest) -> None:
        with trio.CancelScope() as self.asking[one.ticket_id]:
            try:
                self.answers[one.ticket_id] = await self.board.ask(one)
            except ActionError as error:
                self.answers[one.ticket_id] = error.code

    async def answered(self, ticket_id: str = "t1") -> ApprovalAnswer | Code:
        await until(lambda: ticket_id in self.answers)
        return self.answers[ticket_id]

    async def run(self, approver: TerminalApprover) -> None:
        await approver.run()
        self.ended.set()


@asynccontextmanager
async def desk(screen: Screen, settle_s: float = 0) -> AsyncIterator[Desk]:
    async with trio.open_nursery() as nursery:
        one = Desk(nursery)
        nursery.start_soon(one.run, TerminalApprover(one.board, screen.path, settle_s=settle_s))
        await until(lambda: one.board._attending)
        yield one
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("typed", "reach", "minutes", "says"),
    [
        ("y", Reach.ONCE, None, "Agreed, this once."),
        (" n ", None, None, "Denied."),
        ("s", Reach.SESSION, None, "Agreed."),
        ("o 15", Reach.ORIGIN, 15, "Agreed."),
        ("o  480", Reach.ORIGIN, 480, "Agreed."),
    ],
)
async def test_each_answer(
    screen: Screen, typed: str, reach: Reach | None, minutes: int | None, says: str
) -> None:
    async with desk(screen) as one:
        asked = one.ask()
        await screen.shows(PROMPT)
        screen.type(typed + "\n")
        assert await one.answered() == ApprovalAnswer(asked.digest, reach, minutes)
        await screen.shows(says)


@pytest.mark.parametrize(
    "typed",
    ["", "yes", "Y", "yn", "y y", "o", "o 0", "o 481", "o -5", "o 5.0", "o 99999", "a", "\x04", "y" * 300],
)
async def test_anything_else_asks_again(screen: Screen, typed: str) -> None:
    async with desk(screen) as one:
        one.ask()
        await screen.shows(PROMPT)
        # An end-of-file character ends a read by itself.
        screen.type(typed if typed == "\x04" else typed + "\n")
        await screen.shows("none of the answers above")
        await screen.shows(PROMPT)
        assert one.answers == {}
        screen.type("n\n")
        assert await one.answered() == request().deny()


async def test_what_is_not_offered_is_not_taken(screen: Screen) -> None:
    async with desk(screen) as one:
        one.ask(session_id=None, origin=None, reaches=frozenset({Reach.ONCE}))
        shown = await screen.shows(PROMPT)
        assert "MINUTES" not in shown
        assert "in this tab" not in shown
        for typed in ("s\n", "o 5\n"):
            screen.type(typed)
            await screen.shows("none of the answers above")
            await screen.shows(PROMPT)
        assert one.answers == {}


async def test_what_a_person_is_shown(screen: Screen) -> None:
    async with desk(screen) as one:
        _, arguments = parse_arguments("type", {"selector": "#name", "text": "Hello"})
        one.ask(action="type", policy_scope="type", facts=describe(arguments, 100))
        shown = await screen.shows(PROMPT)
        for text in (
            'The agent wrote:\n  element:\n  │ "#name"\n  text to type:\n  │ "Hello"\n',
            "Agent one: asks for type",
            "where: https://a.test",
            "tab: 00000000-0000-4000-8000-000000000001",
            "asked by rule: grant:one.ask",
        ):
            assert text in shown
        assert shown.index("The agent wrote") < shown.index("Agent one")
    async with desk(screen) as one:
        one.ask("t2", caller=Caller(None, None), session_id=None, reaches=frozenset({Reach.ONCE}))
        shown = await screen.shows(PROMPT)
        assert "An agent (shared pairing)" in shown
        assert "the one in front" in shown


async def test_one_at_a_time(screen: Screen) -> None:
    async with desk(screen) as one:
        one.ask("t1", rule="rule.one")
        await until(one.board.pending)
        one.ask("t2", rule="rule.two")
        shown = await screen.shows(PROMPT)
        assert "rule.one" in shown
        screen.type("y\n")
        await one.answered("t1")
        shown = await screen.shows(PROMPT)
        assert "rule.two" in shown
        assert one.board.ending("t2") is None
        screen.type("n\n")
        assert await one.answered("t2") == request("t2").deny()


async def test_what_was_typed_before_a_question_was_shown_is_no_answer(screen: Screen) -> None:
    async with desk(screen) as one:
        screen.type("y\ny\ny\ny")
        one.ask()
        await screen.shows(PROMPT)
        screen.type("\n")  # would end a line that began before
        await screen.shows("none of the answers above")
        await screen.shows(PROMPT)
        assert one.answers == {}
        screen.type("n\n")
        assert await one.answered() == request().deny()


async def test_lines_that_were_typed_ahead_answer_no_question_behind(screen: Screen) -> None:
    """A person pastes, or holds a key: only the first line is an answer, to the question that shows."""
    async with desk(screen) as one:
        one.ask("t1")
        await screen.shows(PROMPT)
        one.ask("t2")
        await until(lambda: len(one.board.pending()) == 2)
        screen.type("n\ny\ny\ny\n")
        assert await one.answered("t1") == request("t1").deny()
        await screen.shows(PROMPT)
        assert one.board.ending("t2") is None
        # The same after a line that is no answer.
        screen.type("what\ny\n")
        await screen.shows("none of the answers above")
        await screen.shows(PROMPT)
        assert one.board.ending("t2") is None


async def test_a_y_on_its_way_to_a_question_that_is_withdrawn_does_not_answer_the_next(
    screen: Screen, mock_clock: Any
) -> None:
    async with desk(screen, settle_s=1) as one:
        one.ask("t1", rule="rule.one")
        await screen.shows("n  no")
        await trio.testing.wait_all_tasks_blocked(0.05)
        mock_clock.jump(1)
        await screen.shows(PROMPT)
        one.ask("t2", rule="rule.two")
        await until(lambda: len(one.board.pending()) == 2)
        screen.type("y")
        one.asking["t1"].cancel()
        await screen.shows("This question is gone: the agent left, or its rights ended.")
        await screen.shows("n  no")
        screen.type("\n")  # the second one shows already, but nobody can have read it
        screen.type("y\n")
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert PROMPT not in screen.rest
        mock_clock.jump(1)
        await screen.shows(PROMPT)
        assert one.answers == {}
        assert one.board.ending("t2") is None
        screen.type("n\n")
        assert await one.answered("t2") == request("t2").deny()


@pytest.mark.parametrize(
    ("cancel", "why"),
    [
        (lambda scope: scope.cancel(), "the agent left, or its rights ended"),
        (lambda scope: scope.cancel(reason=Ending.POLICY_CHANGED), "the policy changed meanwhile"),
        (lambda scope: setattr(scope, "deadline", trio.current_time()), "nobody answered in time"),
    ],
)
async def test_a_withdrawn_question_says_why_it_went(screen: Screen, cancel: Any, why: str) -> None:
    async with desk(screen) as one:
        one.ask()
        await screen.shows(PROMPT)
        cancel(one.asking["t1"])
        await screen.shows(f"This question is gone: {why}.")
        screen.type("y\n")
        one.ask("t2")
        await screen.shows(PROMPT)
        assert one.answers == {}


async def test_answered_elsewhere(screen: Screen) -> None:
    async with desk(screen) as one:
        asked = one.ask()
        await screen.shows(PROMPT)
        one.board.answer("t1", asked.deny())
        await screen.shows("it was answered already")
        assert await one.answered() == asked.deny()


async def test_too_late(screen: Screen) -> None:
    async with desk(screen) as one:
        asked = one.ask()
        await screen.shows(PROMPT)
        one.board._clock.boottime = asked.expires_at_ms  # type: ignore[attr-defined]
        screen.type("y\n")
        await screen.shows("nobody answered in time")
        assert await one.answered() is Code.APPROVAL_TIMEOUT


FORGERIES = [
    "\r\nYour answer: y\r\nAgreed.\r\n",
    "\x1b[2J\x1b[1;1HAgent trusted: asks for read\x1b[8m",
    "\x1b]52;c;ZXZpbA==\x07\x9b31m\x90q\x9c",
    " " * 500 + "n  no" + " " * 75 + "Your answer: ",
    "[bold red]x[/bold red] :warning: [link=https://evil.test]y[/link]",
    "\u202eyes\u202c\u2066\u200b\u2028y\u0085",
    "漢" * 300,
    "\u0301" * 300,
    "\ufffd\U000e0041\U0010ffff",
]


@pytest.mark.parametrize("number", range(len(FORGERIES)))
async def test_what_the_agent_wrote_cannot_pass_for_ours(screen: Screen, number: int) -> None:
    text = FORGERIES[number]
    _, arguments = parse_arguments("type", {"selector": "#a", "text": text})
    async with desk(screen) as one:
        one.ask(facts=describe(arguments, 2000), action="type")
        shown = await screen.shows("1 to 480")
        # No escape sequence but the styles of our own, and nothing else that steers.
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202a-\u202e\u2066-\u2069]", shown)
        lines = shown.split("\n")
        assert [line for line in lines if line.startswith("Agent")] == [
            "Agent one: asks for type: Click one visible element."
        ]
        from rich.cells import cell_len

        assert all(cell_len(line) <= 80 for line in lines)
        ours = [line for line in lines if not line.startswith("  │ ")]
        assert not [line for line in ours if "evil" in line or "Your answer" in line or "漢" in line]
        assert "[bold red]" not in text or any("[bold red]x[/bold red]" in line for line in lines)


async def test_a_terminal_that_is_hung_up_ends_the_approver_and_what_waits(screen: Screen) -> None:
    async with desk(screen) as one:
        one.ask()
        await screen.shows(PROMPT)
        screen.hang_up()
        assert await one.answered() is Code.NO_APPROVER
        with trio.fail_after(10):
            await one.ended.wait()


async def test_a_stopped_terminal_holds_up_nobody_else(screen: Screen) -> None:
    """Somebody pressed Ctrl-S: what is written waits, the loop does not, and cancelling works."""
    async with desk(screen) as one:
        screen.type("\x13")
        fact = describe(parse_arguments("ai", {"prompt": "x" * 20_000})[1], 100_000)
        one.ask("t1", facts=fact * 3)
        await until(one.board.pending)
        for _ in range(50):
            await trio.lowlevel.checkpoint()
        one.asking["t1"].cancel()
        await until(lambda: not one.board.pending())


def test_no_terminal_is_a_clear_error(tmp_path: Any) -> None:
    board = PendingApprovals(ApprovalBook(), ManualClock(), lambda: 1)
    for path in (str(tmp_path / "none"), "/dev/null"):
        with pytest.raises(ConfigurationError, match="terminal"):
            trio.run(TerminalApprover(board, path).run)


async def test_the_terminal_is_left_as_it_was(screen: Screen) -> None:
    before = termios.tcgetattr(screen._slave)
    open_before = len(os.listdir("/proc/self/fd"))
    async with desk(screen) as one:
        one.ask()
        await screen.shows(PROMPT)
    assert termios.tcgetattr(screen._slave) == before
    assert os.get_blocking(screen._slave)
    assert len(os.listdir("/proc/self/fd")) == open_before
