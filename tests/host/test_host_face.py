"""The host's terminal, on a real pseudo-terminal."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.cli.host_face import HostFace
from tabwarden_adapters.host import (
    ApprovalKind,
    ApprovalRequest,
    HandoffRequest,
    HostLimits,
    QuestionEnd,
    Questions,
    Reply,
    SeenLog,
)
from tabwarden_adapters.host.values import LogBody

from tests.approvals.screens import Screen
from tests.host.support import until

PROMPT = "Your answer: "
SITE = "https://shop.test"
HELP = "Keys, each with Enter:"


@pytest.fixture
def screen() -> Iterator[Screen]:
    one = Screen()
    yield one
    one.close()


async def without_cards(text: str) -> str:
    return text.replace("4111111111111111", "[card]")


class FakeKeys:
    """Implements `Keys`; opens no window until it is told otherwise."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.pressed: list[str] = []
        self.opens = False

    def revoke(self) -> None:
        self.pressed.append("revoke")
        self.questions.withdraw_all()

    def quit(self) -> None:
        self.pressed.append("quit")

    async def open_private(self) -> bool:
        self.pressed.append("private")
        return self.opens


class Desk:
    """A face that runs in a nursery with the questions."""

    def __init__(self, nursery: trio.Nursery, screen: Screen, limits: HostLimits, settle_s: float) -> None:
        self.nursery = nursery
        self.questions = Questions()
        self.log = SeenLog(without_cards, limits)
        self.keys = FakeKeys(self.questions)
        self.face = HostFace(
            self.questions,
            self.log,
            self.keys,
            [("browser", "Chrome/1")],
            terminal=screen.path,
            settle_s=settle_s,
        )
        self.replies: list[Reply] = []
        self.asking = trio.CancelScope()
        self.ended = trio.Event()

    async def run(self) -> None:
        await self.face.run()
        self.ended.set()

    async def ask(self, request: Any = None) -> None:
        """Ask, and return when the question waits."""
        before = self.questions.counts
        self.asking = trio.CancelScope()
        self.nursery.start_soon(self._ask, request or approval(), self.asking)
        await until(lambda: self.questions.counts != before)

    async def _ask(self, request: Any, scope: trio.CancelScope) -> None:
        with scope:
            self.replies.append(await self.questions.ask(request))

    async def record(self, text: str, **changes: Any) -> None:
        fields = {"type": "prompt", "tokens": 12, "at": 0, **changes}
        await self.log.take(LogBody(origin=SITE, text=text, **fields), SITE, fields["at"])


def approval(summary: str = "words", kind: ApprovalKind = ApprovalKind.SITE) -> ApprovalRequest:
    return ApprovalRequest(kind, SITE, summary)


@asynccontextmanager
async def desk(screen: Screen, limits: HostLimits | None = None, settle_s: float = 0) -> AsyncIterator[Desk]:
    async with trio.open_nursery() as nursery:
        one = Desk(nursery, screen, limits or HostLimits(), settle_s)
        nursery.start_soon(one.run)
        await screen.shows("browser: Chrome/1\n")
        await screen.shows(HELP)
        yield one
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("handoff", "typed", "reply", "says"),
    [
        (False, "y", Reply.YES, "Agreed."),
        (False, " n ", Reply.NO, "Denied."),
        (False, "c", Reply.CONFIRM, "asked again before each risky action."),
        (True, "d", Reply.DONE, "told that it is done."),
        (True, "n", Reply.NO, "Denied."),
    ],
)
async def test_each_answer(screen: Screen, handoff: bool, typed: str, reply: Reply, says: str) -> None:
    async with desk(screen) as one:
        await one.ask(HandoffRequest("log in", SITE) if handoff else None)
        await screen.shows(PROMPT)
        screen.type(typed + "\n")
        await screen.shows(says)
        await until(lambda: one.replies == [reply])


@pytest.mark.parametrize("typed", ["", "yes", "Y", "d", "p", "yy", "y y", "\x04", "y" * 300])
async def test_anything_else_asks_again(screen: Screen, typed: str) -> None:
    async with desk(screen) as one:
        await one.ask()
        await screen.shows(PROMPT)
        # An end-of-file character ends a read by itself.
        screen.type(typed if typed == "\x04" else typed + "\n")
        await screen.shows("none of the answers above")
        await screen.shows(PROMPT)
        assert one.replies == []
        screen.type("n\n")
        await until(lambda: one.replies == [Reply.NO])


@pytest.mark.parametrize("typed", ["y", "c"])
async def test_a_handoff_is_not_agreed_to(screen: Screen, typed: str) -> None:
    async with desk(screen) as one:
        await one.ask(HandoffRequest("log in", SITE))
        await screen.shows(PROMPT)
        screen.type(f"{typed}\n")
        await screen.shows("none of the answers above")
        assert one.replies == []


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        (ApprovalKind.SITE, "whether it may work on a site"),
        (ApprovalKind.RISK, "whether it may do something risky"),
        (ApprovalKind.NAVIGATE, "whether it may go to a site"),
    ],
)
async def test_what_a_person_is_shown(screen: Screen, kind: ApprovalKind, ours: str) -> None:
    async with desk(screen) as one:
        await one.ask(approval("Buy the blue shoes\nsite: https://harmless.test", kind))
        shown = await screen.shows(PROMPT)
        # The agent's words are on lines with a bar, ours come after them and name what they are.
        said = 'The agent says:\n  │ "Buy the blue shoes\\nsite: https://harmless.test"\n'
        assert said in shown
        after = shown.partition(said)[2]
        assert ours in after
        assert f"site, as the engine names it: {SITE}\n" in after


async def test_words_cannot_steer_the_terminal_nor_fill_it(screen: Screen) -> None:
    async with desk(screen) as one:
        await one.ask(HandoffRequest("\x1b[2J\u202e" + "x" * 4000, f"https://{'a' * 900}.evil.test"))
        shown = await screen.shows(PROMPT)
        assert "\x1b[2J" not in screen.raw
        assert "\u202e" not in shown
        assert '"\\x1b[2J\\u202exxx' in shown
        assert "characters left out" in shown
        assert ".evil.test\n" in shown  # of a long name the end is what counts
        assert len(shown.splitlines()) < 40


async def test_only_what_is_typed_after_the_prompt_is_an_answer(screen: Screen, mock_clock: Any) -> None:
    async with desk(screen, settle_s=1) as one:
        screen.type("y")  # not finished when the question comes
        await one.ask()
        await screen.shows("site, as the engine names it")
        screen.type("\ny\n")  # it shows already, but nobody can have read it
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert PROMPT not in screen.rest
        mock_clock.jump(1)
        await screen.shows(PROMPT)
        assert one.replies == []
        assert one.questions.pending()
        screen.type("n\n")
        await until(lambda: one.replies == [Reply.NO])


async def test_a_question_that_is_withdrawn_says_so_and_the_next_takes_no_answer_of_its(
    screen: Screen,
) -> None:
    async with desk(screen) as one:
        await one.ask()
        await screen.shows(PROMPT)
        screen.type("y")
        one.asking.cancel()
        await screen.shows("This question is gone: whoever asked went away")
        await one.ask(approval("the next"))
        await screen.shows("the next")
        await screen.shows(PROMPT)
        screen.type("\n")  # what was begun is not there any more
        await screen.shows("none of the answers above")
        assert one.replies == []


async def test_questions_come_one_by_one(screen: Screen) -> None:
    async with desk(screen) as one:
        await one.ask(approval("first"))
        await screen.shows(PROMPT)
        await one.ask(approval("second"))
        await one.ask(approval("third"))
        screen.type("y\n")
        shown = await screen.shows(PROMPT)
        assert "second" in shown
        assert "1 more wait behind this one." in shown
        screen.type("c\n")
        assert "third" in await screen.shows(PROMPT)
        screen.type("n\n")
        await until(lambda: one.replies == [Reply.YES, Reply.CONFIRM, Reply.NO])


async def test_the_keys(screen: Screen) -> None:
    async with desk(screen) as one:
        screen.type("p\n")
        await screen.shows("did not open a window")
        one.keys.opens = True
        screen.type("p\n")
        await screen.shows("A private window is open.")
        screen.type("y\n")
        await screen.shows("Nothing is asked. Keys, each")
        screen.type("r\n")
        await screen.shows("Revoked: every engine is told no")
        screen.type("q\n")
        await until(lambda: one.keys.pressed == ["private", "private", "revoke", "quit"])


async def test_revoking_at_a_question_ends_it(screen: Screen) -> None:
    async with desk(screen) as one:
        await one.ask()
        await screen.shows(PROMPT)
        screen.type("r\n")
        await screen.shows("This question is gone")
        await screen.shows("Revoked:")
        await until(lambda: one.replies == [Reply.NO])


async def test_the_log_shows_each_entry_and_what_was_scrubbed_here(screen: Screen) -> None:
    async with desk(screen) as one:
        await one.record("two\nlines", at=2**53)
        shown = await screen.shows("  │ lines\n")
        assert f'--:--:--  sent to a model: "prompt"  12 tokens  {SITE}\n  │ two\n' in shown
        await one.record("pay with 4111111111111111", type="evil\x1b[2J\ntype")
        shown = await screen.shows("let through (1 so far).")
        assert "  │ pay with [card]\n" in shown
        assert "4111111111111111" not in screen.raw
        assert '"evil' in shown
        assert "\x1b[2J" not in screen.raw
        await one.record("4111111111111111")
        await screen.shows("let through (2 so far).")


async def test_a_text_that_was_not_looked_through_is_not_shown(screen: Screen) -> None:
    async def broken(text: str) -> str:
        raise RuntimeError("4111111111111111")

    async with desk(screen) as one:
        one.log._scrubber = broken
        await one.record("4111111111111111")
        await screen.shows("The text is withheld")
        assert "4111" not in screen.raw


@pytest.mark.parametrize("text", ["line\n" * 400, "x" * 20_000, "\x1b[2J\u202e" * 3000])
async def test_a_text_is_bounded_and_readable(screen: Screen, text: str) -> None:
    async with desk(screen) as one:
        await one.record(text)
        shown = await screen.shows(f"cut here; {len(text)} characters in all\n")
        assert len(shown.splitlines()) < 18
        assert "\x1b[2J" not in screen.raw
        assert "\u202e" not in screen.raw


async def test_a_question_goes_before_the_log_and_what_fell_out_is_said(screen: Screen) -> None:
    async with desk(screen, HostLimits(log_entries=2)) as one:
        await one.ask()
        await screen.shows(PROMPT)
        for number in range(5):
            await one.record(f"entry {number}")
        await one.ask(approval("second"))
        screen.type("y\n")
        assert "sent to a model" not in await screen.shows(PROMPT)
        screen.type("y\n")
        shown = await screen.shows("entry 4")
        assert "3 entries were not shown" in shown
        assert "entry 3" in shown
        assert "entry 2" not in shown


async def test_questions_that_nobody_saw_are_counted_now_and_then(screen: Screen) -> None:
    async with desk(screen) as one:
        await one.ask()
        await screen.shows(PROMPT)
        screen.type("n\n")
        await until(lambda: one.replies)
        await one.ask()  # the same again
        await screen.shows("without asking you: 1 (")
        await one.ask()
        await screen.shows("without asking you: 2 (")
        await one.ask()
        await one.ask()
        assert "you: 3" not in await screen.shows("without asking you: 4 (")
        await until(lambda: len(one.replies) == 5)
        assert one.replies == [Reply.NO] * 5


async def test_notices_are_shown_once_no_question_is_open(screen: Screen) -> None:
    async with desk(screen) as one:
        await one.ask()
        await screen.shows(PROMPT)
        one.face.tell("something new")
        screen.type("y\n")
        await screen.shows("Agreed.\nsomething new\n")
        one.face.tell("and more")
        await screen.shows("and more\n")


async def test_when_the_terminal_is_gone_nobody_is_there(screen: Screen) -> None:
    async with desk(screen) as one:
        await one.ask()
        await screen.shows(PROMPT)
        (question,) = one.questions.pending()
        screen.hang_up()
        with trio.fail_after(20):
            await one.ended.wait()
        await until(lambda: one.replies == [Reply.NO])
        assert one.questions.end_of(question) is QuestionEnd.NOBODY
        assert await one.questions.ask(approval("later")) is Reply.NO


async def test_without_a_terminal_it_says_what_to_do() -> None:
    questions = Questions()
    face = HostFace(questions, SeenLog(None, HostLimits()), FakeKeys(questions), terminal="/dev/null")
    with pytest.raises(ConfigurationError, match="is no terminal"):
        await face.run()
