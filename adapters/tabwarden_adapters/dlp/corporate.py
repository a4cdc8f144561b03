"""A company's own rules for text, compiled: words, RE2 expressions, and what to do with built-in classes.

Rules come as plain values; who reads them from a policy names the field in messages by `name`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

import re2
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.dlp.faults import TooManyPlaces
from tabwarden_adapters.dlp.findings import CORPORATE, CREDENTIAL, DETECTORS, Finding
from tabwarden_adapters.dlp.folding import Folded, fold
from tabwarden_adapters.dlp.re2_set import PatternSet, options

Direction = Literal["from-page", "to-page", "from-model", "to-model", "to-site"]

VALUES: Final = 10_000  # of all rules together: some seconds to compile
PATTERN_INSTRUCTIONS: Final = 10_000  # of one expression, as RE2 counts: `\\pL{1,8}` has as many
INSTRUCTIONS: Final = 400_000  # of all together; each character of a text may cost a look at all of them
QUICK: Final = 5_000
PLACES: Final = 20_000  # in one text


@dataclass(frozen=True, slots=True, kw_only=True)
class CorporateRule:
    """One rule. `words` are looked for as they stand, whole, without regard to case; `pattern` values are RE2
    expressions, in which `^` and `$` are the ends of lines; `detector` values are `card`, `iban` or
    `credential`. `sensitive`: a class that `allowSensitiveRead` may let through."""

    id: str
    kind: Literal["detector", "words", "pattern"]
    values: tuple[str, ...]
    directions: tuple[str, ...]
    action: Literal["deny", "mask"] = "deny"
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class CorporateRules:
    """Rules that can be used. Immutable: another policy is another one of these."""

    detectors: tuple[CorporateRule, ...] = ()
    _texts: tuple[CorporateRule, ...] = ()
    _patterns: PatternSet | None = field(default=None, repr=False)
    quick: bool = True
    """Few enough for short texts to be looked at between two steps of the loop."""

    def ask_for(self, direction: str) -> bool:
        """Whether a rule, of whatever kind, names this direction."""
        return any(direction in rule.directions for rule in (*self.detectors, *self._texts))

    def find(self, folded: Folded, direction: str) -> list[tuple[CorporateRule, Finding]]:
        """Where the rules for `direction` find something. Raises `TooManyPlaces`."""
        if self._patterns is None:
            return []
        encoded = folded.text.encode("utf-8")
        found: list[tuple[CorporateRule, Finding]] = []
        for number in self._patterns.matching(encoded):
            rule = self._texts[number]
            if direction not in rule.directions:
                continue
            byte = at = 0  # the same place, in bytes and in characters
            for start, end in self._patterns.places(number, encoded):
                if len(found) >= PLACES:
                    raise TooManyPlaces
                at += len(encoded[byte:start].decode("utf-8", "ignore"))
                byte = start
                # A rule that matches between two characters has found one all the same.
                stop = at + max(1, len(encoded[start:end].decode("utf-8", "ignore")))
                stop = min(stop, len(folded.text))
                if at < stop and (rule.kind != "words" or _whole(folded.text, at, stop)):
                    place = folded.origin(at, stop)
                    found.append((rule, Finding(*place, CORPORATE + rule.id)))
        return found


NO_RULES: Final = CorporateRules()


def compile_rules(rules: Iterable[CorporateRule], name: str = "dlp") -> CorporateRules:
    """Make rules that can be used; takes up to seconds for thousands.

    Raises `ConfigurationError` for the first that cannot be, by its field (`dlp[3].values[0]`).
    """
    detectors: list[CorporateRule] = []
    texts: list[CorporateRule] = []
    patterns: list[bytes] = []
    size = 0
    for number, rule in enumerate(rules):
        if rule.kind == "detector":
            _check_detector(rule, f"{name}[{number}]")
            detectors.append(rule)
            continue
        for index, value in enumerate(rule.values):
            where = f"{name}[{number}].values[{index}]"
            pattern = _words(value, where) if rule.kind == "words" else value
            compiled, instructions = _compiled(pattern, where)
            size += instructions
            if size > INSTRUCTIONS or len(patterns) >= VALUES:
                raise ConfigurationError(f"{where}: more than can be looked for in time: leave some out")
            texts.append(rule)
            patterns.append(compiled)
    if not patterns:
        return CorporateRules(tuple(detectors))
    compiled_set = PatternSet(patterns, latin1=False)
    return CorporateRules(tuple(detectors), tuple(texts), compiled_set, size <= QUICK)


def _check_detector(rule: CorporateRule, where: str) -> None:
    for index, detector in enumerate(rule.values):
        if detector not in DETECTORS:
            known = ", ".join(sorted(DETECTORS))
            raise ConfigurationError(
                f"{where}.values[{index}]: there is no detector {detector!a}; known: {known}"
            )
        if detector == CREDENTIAL and (rule.sensitive or rule.action == "mask"):
            raise ConfigurationError(
                f"{where}.values[{index}]: credentials are always denied: leave sensitive and mask out"
            )


def _words(value: str, where: str) -> str:
    """An expression for words as they stand, in the spelling that texts are looked at in."""
    words = fold(value).text.split()
    if not words:
        raise ConfigurationError(f"{where}: has nothing that shows: leave it out")
    # What may stand beside them is asked of each place: in an expression it would be most of its size.
    return "(?i)" + r"\s+".join(re2.escape(word) for word in words)


def _whole(text: str, start: int, end: int) -> bool:
    """Whether what was found is no part of a longer word."""
    return not (
        (start > 0 and _letter(text[start]) and _letter(text[start - 1]))
        or (end < len(text) and _letter(text[end - 1]) and _letter(text[end]))
    )


def _letter(character: str) -> bool:
    return character.isalnum() or character == "_"


def _compiled(pattern: str, where: str) -> tuple[bytes, int]:
    try:
        made = re2.compile(pattern, options())
    except UnicodeEncodeError:
        raise ConfigurationError(f"{where}: has a lone surrogate: leave it out") from None
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace") if error.args else "unknown"
        raise ConfigurationError(
            f"{where}: is no RE2 expression ({said}); see https://github.com/google/re2/wiki/Syntax"
        ) from None
    if made.programsize > PATTERN_INSTRUCTIONS:
        raise ConfigurationError(f"{where}: is too large: shorten its repetitions and classes")
    if made.search("") is not None:
        raise ConfigurationError(f"{where}: matches an empty text, and so every text: ask for a character")
    # Compiled by itself before, so the brackets are its own.
    whole = f"(?m:{pattern})"
    return whole.encode("utf-8"), made.programsize
