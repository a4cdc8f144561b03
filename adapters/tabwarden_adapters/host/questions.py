"""The questions that wait for the person at the host, for whatever shows them."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import trio

from tabwarden_adapters.host.limits import PERSON_WAIT_S
from tabwarden_adapters.host.values import ApprovalRequest, HandoffRequest

MINUTE_S = 60.0
A_MINUTE = 12  # an answer that somebody thought about takes five seconds
REFUSED_KEPT = 64  # of so many questions it is remembered that they were refused


class Reply(StrEnum):
    """What a person can say. `DONE` goes with a handoff, `YES` and `CONFIRM` with an approval."""

    YES = "yes"
    NO = "no"
    CONFIRM = "confirm"
    DONE = "done"


class QuestionEnd(StrEnum):
    """Why a question is not open any more, for a person to read."""

    ANSWERED = "it was answered"
    NOBODY = "nobody is there to be asked"
    TIMED_OUT = "nobody answered in five minutes"
    WITHDRAWN = "whoever asked went away, or the host ended it"


@dataclass(frozen=True, slots=True)
class Question:
    """One open question. `number` starts at 1 and never repeats."""

    number: int
    request: ApprovalRequest | HandoffRequest

    @property
    def replies(self) -> frozenset[Reply]:
        """The answers that there are."""
        if isinstance(self.request, HandoffRequest):
            return frozenset({Reply.DONE, Reply.NO})
        return frozenset({Reply.YES, Reply.NO, Reply.CONFIRM})


@dataclass(frozen=True, slots=True)
class QuestionCounts:
    """Since the start. `unasked` ones were answered no without showing them to anybody."""

    asked: int = 0
    unasked: int = 0


class Questions:
    """Asked from one side, shown and answered from the other. Whoever shows them is `attending`."""

    def __init__(self) -> None:
        self._open: dict[int, _Entry] = {}
        self._ends: OrderedDict[int, QuestionEnd] = OrderedDict()
        self._times: deque[float] = deque(maxlen=A_MINUTE)
        self._refused: OrderedDict[ApprovalRequest | HandoffRequest, float] = OrderedDict()
        self._attending = 0
        self._last = 0
        self._changed = trio.Event()
        self.revision = 0
        """Goes up with each change of what is open."""
        self.counts = QuestionCounts()

    async def ask(self, request: ApprovalRequest | HandoffRequest) -> Reply:
        """What the person says. Cancelling it withdraws the question.

        `NO` at once when nobody is attending, when too much was asked in the last minute, and for what was
        answered no in the last minute; `NO` also when everybody leaves meanwhile.
        """
        await trio.lowlevel.checkpoint()
        now = trio.current_time()
        if not self._attending or self._too_many(now) or self._just_refused(request, now):
            self.counts = QuestionCounts(self.counts.asked, self.counts.unasked + 1)
            self._tell()
            return Reply.NO
        self._times.append(now)
        self._last += 1
        entry = _Entry(Question(self._last, request))
        self._open[self._last] = entry
        self.counts = QuestionCounts(self.counts.asked + 1, self.counts.unasked)
        self._tell()
        try:
            await entry.ended.wait()
        finally:
            # Without effect on one that has ended.
            late = trio.current_time() - now >= PERSON_WAIT_S
            self._end(entry, QuestionEnd.TIMED_OUT if late else QuestionEnd.WITHDRAWN)
        return entry.reply

    def pending(self) -> tuple[Question, ...]:
        """The open ones, the oldest first."""
        return tuple(entry.question for entry in self._open.values())

    def answer(self, question: Question, reply: Reply) -> bool:
        """The first answer counts. False when the question is not open any more.

        Raises ValueError for a reply that is none to this question, which then stays open.
        """
        entry = self._open.get(question.number)
        if entry is None:
            return False
        if reply not in question.replies:
            raise ValueError("reply")
        entry.reply = reply
        if reply is Reply.NO:
            self._refused[question.request] = trio.current_time()
            self._refused.move_to_end(question.request)
            if len(self._refused) > REFUSED_KEPT:
                self._refused.popitem(last=False)
        self._end(entry, QuestionEnd.ANSWERED)
        return True

    def withdraw_all(self) -> None:
        """End all that are open, with `NO`."""
        for entry in list(self._open.values()):
            self._end(entry, QuestionEnd.WITHDRAWN)

    def end_of(self, question: Question) -> QuestionEnd | None:
        """How it ended, None while it is open."""
        if question.number in self._open:
            return None
        return self._ends.get(question.number, QuestionEnd.WITHDRAWN)

    @contextmanager
    def attending(self) -> Iterator[None]:
        """Say that a person can be asked while the block runs. When the last one leaves, what is open ends
        with `NO`."""
        self._attending += 1
        try:
            yield
        finally:
            self._attending -= 1
            if not self._attending:
                for entry in list(self._open.values()):
                    self._end(entry, QuestionEnd.NOBODY)

    async def changed(self, after: int) -> None:
        """Return as soon as `revision` is higher than `after`."""
        while self.revision <= after:
            await self._changed.wait()
        await trio.lowlevel.checkpoint()

    def _too_many(self, now: float) -> bool:
        return len(self._times) == A_MINUTE and now - self._times[0] < MINUTE_S

    def _just_refused(self, request: ApprovalRequest | HandoffRequest, now: float) -> bool:
        at = self._refused.get(request)
        return at is not None and now - at < MINUTE_S

    def _end(self, entry: "_Entry", end: QuestionEnd) -> None:
        number = entry.question.number
        if self._open.pop(number, None) is None:
            return
        self._ends[number] = end
        if len(self._ends) > REFUSED_KEPT:
            self._ends.popitem(last=False)
        entry.ended.set()
        self._tell()

    def _tell(self) -> None:
        self.revision += 1
        self._changed.set()
        self._changed = trio.Event()


class _Entry:
    __slots__ = ("ended", "question", "reply")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.reply = Reply.NO
        self.ended = trio.Event()
