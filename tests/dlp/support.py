"""Catalogues in place of the bundled one, which takes seconds to load. They find nothing until told."""

import threading
from collections.abc import Sequence
from typing import Any

from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller
from tabwarden_adapters.dlp import CorporateRule, Finding, compile_rules
from tabwarden_adapters.dlp.detecting import Deadline, find
from tabwarden_adapters.dlp.folding import fold

CALLER = Caller("agent-1", 1)
OTHER = Caller("agent-2", 1)
EVERYWHERE = ("from-page", "to-page", "from-model", "to-model", "to-site")


class FakeCatalogue:
    """Implements `Catalogue`: finds `words`; with `held`, only once that is set; or raises `instead`."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.looks = 0
        self.begun = threading.Event()
        self.held: threading.Event | None = None
        self.instead: BaseException | None = None

    def places(self, text: bytes, seconds: float) -> list[tuple[int, int]]:
        self.looks += 1
        self.begun.set()
        if self.held is not None:
            self.held.wait(20)
        if self.instead is not None:
            raise self.instead
        return [(at, at + len(word)) for word in self.words if (at := text.find(word.encode())) >= 0]


def found(text: str, seconds: float = 30.0) -> list[Finding]:
    """What our own detectors find."""
    return find(fold(text), None, Deadline(seconds))


def kinds(text: str) -> set[str]:
    return {one.kind for one in found(text)}


def parts(text: str) -> list[str]:
    return [text[one.start : one.end] for one in found(text)]


def rule(kind: str, *values: str, **more: Any) -> CorporateRule:
    made: dict[str, Any] = {"id": "r-1", "kind": kind, "values": values, "directions": EVERYWHERE}
    return CorporateRule(**{**made, **more})


def matches(rules: Sequence[CorporateRule], text: str, direction: str = "from-page") -> list[str]:
    """The parts of `text` that corporate rules find."""
    hits = compile_rules(rules).find(fold(text), direction)
    return [text[one.start : one.end] for _, one in sorted(hits, key=lambda hit: hit[1].start)]


def denial(error: BaseException) -> tuple[str, str | None]:
    """The code and the audit's rule. The caller is told the rule's class, and not which rule it was."""
    assert isinstance(error, ActionError)
    if error.code is Code.CONTENT_DENIED and error.rule != "dlp.ended":
        assert error.rule is not None
        assert error.content_class is not None
        assert error.content_class.value == error.rule.removeprefix("dlp.").partition(":")[0]
    return error.code, error.rule
