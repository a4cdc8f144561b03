"""Many RE2 expressions at once: one pass says which of them match; only those are then located.

RE2 runs in time linear in the text, whatever the expression (https://github.com/google/re2/wiki/WhyRE2). A
set whose automaton does not fit into its memory answers that nothing matches, so each set proves once that it
finds something before it is used.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import re2
from tabwarden.errors import ConfigurationError

MEMORY: Final = 32 << 20  # of one set's automaton, at the most; hostile text can fill it
INSTRUCTIONS: Final = 8_000  # of one set: more sets instead, so that a step stays cheap
PROOF: Final = "\x01tabwarden proof\x01"  # matches no text: controls are folded away


def options(*, latin1: bool = False) -> re2.Options:
    """Quiet, bounded; `latin1` for text of one byte a character."""
    made = re2.Options()
    made.log_errors = False
    made.max_mem = MEMORY
    if latin1:
        made.encoding = re2.Options.Encoding.LATIN1
    return made


class PatternSet:
    """Expressions that were each compiled before. Immutable, and safe to use from several threads."""

    def __init__(self, patterns: Sequence[bytes], *, latin1: bool) -> None:
        """Raises `ConfigurationError` when they do not fit into memory."""
        chosen = options(latin1=latin1)
        self._singles = [re2.compile(pattern, chosen) for pattern in patterns]
        self._sets: list[tuple[re2.Set, list[int]]] = []
        group: list[int] = []
        size = 0
        for number, single in enumerate(self._singles):
            if group and size + single.programsize > INSTRUCTIONS:
                self._sets.append((self._set(patterns, group, chosen), group))
                group, size = [], 0
            group.append(number)
            size += single.programsize
        if group:
            self._sets.append((self._set(patterns, group, chosen), group))

    @staticmethod
    def _set(patterns: Sequence[bytes], group: list[int], chosen: re2.Options) -> re2.Set:
        made = re2.Set.SearchSet(chosen)
        for number in group:
            made.Add(patterns[number])
        proof = made.Add(re2.escape(PROOF.encode()))
        made.Compile()
        if proof not in (made.Match(PROOF.encode()) or ()):
            raise ConfigurationError("expressions are too large together: shorten their repetitions")
        return made

    def matching(self, text: bytes) -> Iterator[int]:
        """The numbers of those that match somewhere."""
        for made, group in self._sets:
            for index in made.Match(text) or ():
                yield group[index]

    def places(self, number: int, text: bytes) -> Iterator[tuple[int, int]]:
        """Where expression `number` matches, in bytes, from left to right and without overlaps."""
        for found in self._singles[number].finditer(text):
            yield found.span()
