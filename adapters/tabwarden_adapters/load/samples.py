"""Every call of a run, in columns: an hour of load is a million rows, and a row of objects takes ten times
the room."""

from array import array
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tabwarden_adapters.load.outcomes import Kind
from tabwarden_adapters.load.timed_client import PHASES

_ABSENT: Final = -1
_TAKEN: Final = {True: 1, False: 0, None: _ABSENT}
_WAS_TAKEN: Final = {1: True, 0: False, _ABSENT: None}


class Sample(NamedTuple):
    """One call. Times are nanoseconds since the start of the run.

    `intended` is when the plan had it start, `begun` when it did, `asked` when its sealed request went out
    (None: it did not come to that), `ended` when its end was known. `taken` says whether the limiter took a
    unit for it (None: not known). `phases` has nanoseconds in the order of `PHASES`.
    """

    agent: int
    kind: Kind
    code: str
    taken: bool | None
    intended: int
    begun: int
    asked: int | None
    ended: int
    phases: tuple[int | None, ...]


class Samples:
    """Append and iterate; there is nothing else to do with them."""

    def __init__(self) -> None:
        self._codes: list[str] = []
        self._numbers: dict[str, int] = {}
        self._agent, self._code = array("H"), array("H")
        self._kind, self._taken = array("B"), array("b")
        self._times = tuple(array("q") for _ in range(4))
        self._phases = tuple(array("q") for _ in PHASES)

    def __len__(self) -> int:
        return len(self._agent)

    def add(self, sample: Sample) -> None:
        """Keep one. Never waits."""
        number = self._numbers.setdefault(sample.code, len(self._codes))
        if number == len(self._codes):
            self._codes.append(sample.code)
        self._agent.append(sample.agent)
        self._code.append(number)
        self._kind.append(sample.kind)
        self._taken.append(_TAKEN[sample.taken])
        for column, value in zip(
            self._times, (sample.intended, sample.begun, sample.asked, sample.ended), strict=True
        ):
            column.append(_ABSENT if value is None else value)
        for column, value in zip(self._phases, sample.phases, strict=True):
            column.append(_ABSENT if value is None else value)

    def __iter__(self) -> Iterator[Sample]:
        rows = zip(
            self._agent,
            self._kind,
            self._code,
            self._taken,
            zip(*self._times, strict=True),
            zip(*self._phases, strict=True),
            strict=True,
        )
        for agent, kind, code, taken, (intended, begun, asked, ended), phases in rows:
            yield Sample(
                agent,
                Kind(kind),
                self._codes[code],
                _WAS_TAKEN[taken],
                intended,
                begun,
                None if asked < 0 else asked,
                ended,
                tuple(None if value < 0 else value for value in phases),
            )


Calls = Samples | Sequence[Sample]
"""What is read more than once, in whatever form."""
