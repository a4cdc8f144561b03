"""All built-in detectors over one text, in all the ways in which it is spelt."""

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

import re2

from tabwarden_adapters.dlp.catalogue import Catalogue
from tabwarden_adapters.dlp.decoding import decoded_runs
from tabwarden_adapters.dlp.faults import TooSlow
from tabwarden_adapters.dlp.findings import CARD, CREDENTIAL, IBAN, Finding
from tabwarden_adapters.dlp.folding import Folded, fold
from tabwarden_adapters.dlp.keyword_values import keyword_values
from tabwarden_adapters.dlp.payment_numbers import account_numbers, card_numbers
from tabwarden_adapters.dlp.re2_set import PatternSet, options
from tabwarden_adapters.dlp.token_formats import EXAMPLE, MADE_UP, TOKEN_FORMATS, WORDLIKE

Clock = Callable[[], float]

# What a token goes on with: of one that is longer than its format says, nothing is left over.
_REST: Final = re2.compile(rb"[A-Za-z0-9_+/=~-]*", options(latin1=True))
_EXAMPLE: Final = EXAMPLE.encode("ascii")
_MADE_UP: Final = tuple(one.encode("ascii") for one in MADE_UP)
_WORDLIKE: Final = tuple(one.encode("ascii") for one in WORDLIKE)
_TAIL, _DISTINCT = 16, 5  # "xxxx…": fewer different characters at its end than anything random has
_BEGIN, _END = b"-----BEGIN ", b"PRIVATE KEY"
_KEY_CHARACTERS: Final = 20_000  # of a private key whose end is missing


class Deadline:
    """A time until which to be done."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._until = clock() + seconds

    def left(self) -> float:
        """Seconds. Raises `TooSlow` when there are none."""
        left = self._until - self._clock()
        if left <= 0:
            raise TooSlow
        return left


def find(folded: Folded, catalogue: Catalogue | None, deadline: Deadline) -> list[Finding]:
    """Every place of a built-in class. Raises `Incomplete`, or what a catalogue raises."""
    text = folded.text
    found = [Finding(*folded.origin(*place), kind) for kind, place in _plain(text, catalogue, deadline)]
    runs = decoded_runs(text)
    if runs:
        # One text of all of them: a detector's own costs are then paid once.
        spelt = [fold(run.plain).text for run in runs]
        joined = "\n\n".join(spelt)
        starts, at = [], 0
        for one in spelt:
            starts.append(at)
            at += len(one) + 2
        for kind, (start, end) in _plain(joined, catalogue, deadline):
            for begin, one, run in zip(starts, spelt, runs, strict=True):
                if start < begin + len(one) and end > begin:
                    found.append(Finding(*folded.origin(run.start, run.end), kind))
    return found


def _plain(
    text: str, catalogue: Catalogue | None, deadline: Deadline
) -> Iterator[tuple[str, tuple[int, int]]]:
    # One byte a character: what is no ASCII is in no credential, and a place in one is a place in the other.
    encoded = text.encode("ascii", "replace")
    for place in _tokens(encoded):
        yield CREDENTIAL, place
    deadline.left()
    for place in keyword_values(encoded):
        yield CREDENTIAL, place
    for place in card_numbers(encoded):
        yield CARD, place
    for place in account_numbers(encoded):
        yield IBAN, place
    if catalogue is not None:
        for start, end in catalogue.places(encoded, deadline.left()):
            yield CREDENTIAL, (start, max(end, start + 1))
    deadline.left()


@cache
def _formats() -> PatternSet:
    return PatternSet([pattern.encode("ascii") for pattern in TOKEN_FORMATS], latin1=True)


def prepare() -> None:
    """Make the tables and automata, which otherwise the first text waits for."""
    fold("\u200b")
    _formats()


def _tokens(text: bytes) -> Iterator[tuple[int, int]]:
    for number in _formats().matching(text):
        for start, end in _formats().places(number, text):
            token = text[start:end]
            if _made_up(token):
                continue
            if token.startswith(_WORDLIKE) and _word(text, start, end):
                continue
            yield start, _end_of(text, start, end)


def _made_up(token: bytes) -> bool:
    """What documentation writes in place of a token, and what is padding."""
    return (
        token.endswith(_EXAMPLE)
        or token[:-1].lower().endswith(_MADE_UP)
        or len(set(token[-_TAIL:])) < _DISTINCT
        or max(map(token.count, set(token))) * 2 > len(token)
    )


def _word(text: bytes, start: int, end: int) -> bool:
    """Whether what looks like a token is a part of a word, or a name in camel case."""
    token = text[start:end]
    if any(48 <= one < 58 for one in token):
        return False
    if token.isupper():
        around = (text[start - 1 : start] if start else b"", text[end : end + 1])
        return any(one.isalpha() for one in around)
    letters = [one for one in token if chr(one).isalpha()]
    capital = sum(1 for one in letters if one < 91)
    return not 0.25 <= capital / max(len(letters), 1) <= 0.75


def _end_of(text: bytes, start: int, end: int) -> int:
    if text.startswith(_BEGIN, start):
        closing = text.find(b"-----END ", end, end + _KEY_CHARACTERS)
        if closing < 0:
            return min(len(text), end + _KEY_CHARACTERS)
        last = text.find(b"-----", closing + 9)
        return len(text) if last < 0 else last + 5
    rest = _REST.match(text, end)
    return end if rest is None else rest.end()
