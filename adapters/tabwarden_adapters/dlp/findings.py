"""What an inspection says: the findings, and one result for the whole text."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tabwarden.errors import ActionError, Code, ContentClass

CREDENTIAL: Final = "credential"
CARD: Final = "card"
IBAN: Final = "iban"
INCOMPLETE: Final = "incomplete"
CORPORATE: Final = "corporate:"  # and the rule's id

RULE: Final = "dlp."  # and the class: the audit's rule for a denial

DETECTORS: Final = frozenset({CREDENTIAL, CARD, IBAN})
"""The built-in detectors, by the name that policies use."""


class Result(StrEnum):
    """What a text is. Only `clean` goes on by itself."""

    CLEAN = "clean"
    CLASSIFIED = "classified"
    """Nothing but classes that policy calls sensitive: `allowSensitiveRead` may let it through."""
    BLOCKED = "blocked"
    INCOMPLETE = "incomplete"
    """Not everything was looked at: too long, too slow, not loaded, or a detector failed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A place in the text as it was given: characters from `start` to before `end`.

    `kind` is the class: `credential`, `card`, `iban`, or `corporate:` and a rule's id. Nothing of the text is
    in here.
    """

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """`findings` are all places, in order; `masks` those of them that policy wants masked; `classes` what
    decided `result`, worst first. `readable`: this caller may read what is classified."""

    result: Result
    findings: tuple[Finding, ...] = ()
    masks: tuple[Finding, ...] = ()
    classes: tuple[str, ...] = ()
    readable: bool = False

    @property
    def passes(self) -> bool:
        """Whether the text may go on, with its `masks` in place."""
        return self.result is Result.CLEAN or (self.result is Result.CLASSIFIED and self.readable is True)


def denied(kind: str) -> ActionError:
    """The denial for a class: the audit is told all of `kind`, the agent not which of the policy's rules."""
    told = ContentClass.CORPORATE if kind.startswith(CORPORATE) else ContentClass(kind)
    return ActionError(Code.CONTENT_DENIED, rule=RULE + kind, content_class=told)


def merged(findings: Iterable[Finding]) -> list[tuple[int, int, str]]:
    """Places without overlaps, in order; one that two findings share has the kind of the earlier."""
    places: list[tuple[int, int, str]] = []
    for one in sorted(findings, key=lambda one: (one.start, -one.end)):
        if places and one.start < places[-1][1]:
            start, end, kind = places[-1]
            places[-1] = (start, max(end, one.end), kind)
        else:
            places.append((one.start, one.end, one.kind))
    return places


def replaced(text: str, findings: Iterable[Finding]) -> str:
    """`text` with `[kind]` in each place of `findings`."""
    return _with(text, findings, lambda kind, width: f"[{kind}]")


def masked(text: str, findings: Iterable[Finding], start: int = 0, end: int | None = None) -> str:
    """The characters from `start` to before `end`, and in each place of `findings` `[kind]`, or `█` where
    that would be longer than the place: what was bounded before stays so. One across an edge is in each part.
    """
    stop = len(text) if end is None else end
    within = [
        Finding(max(one.start, start) - start, min(one.end, stop) - start, one.kind)
        for one in findings
        if one.start < stop and one.end > start
    ]
    return _with(text[start:stop], within, _bounded)


def _bounded(kind: str, width: int) -> str:
    said = f"[{kind}]"
    return said if len(said) <= width else "█" * width


def _with(text: str, findings: Iterable[Finding], placeholder: Callable[[str, int], str]) -> str:
    out, at = [], 0
    for start, end, kind in merged(findings):
        out += [text[at:start], placeholder(kind, end - start)]
        at = end
    out.append(text[at:])
    return "".join(out)
