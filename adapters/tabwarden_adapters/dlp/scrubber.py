"""Text for the host's own log, without secrets: each becomes `[credential]`, `[card]` or `[iban]`.

A log line cannot be denied, so what could not be looked through is left out whole.
"""

from typing import Final

from tabwarden_adapters.dlp.catalogue import Catalogue
from tabwarden_adapters.dlp.corporate import NO_RULES
from tabwarden_adapters.dlp.findings import Finding, replaced
from tabwarden_adapters.dlp.looking import look

WITHHELD: Final = "[withheld]"
CUT: Final = "[cut]"
MARGIN: Final = 4096  # looked at beyond the cut, for what begins before it
_DIRECTION: Final = "to-log"  # nobody's: corporate rules have no say in a log


class Scrubber:
    """Callable from any thread, at any time: without a catalogue, our own detectors look alone."""

    def __init__(
        self, catalogue: Catalogue | None = None, *, characters: int = 16_384, seconds: float = 0.25
    ) -> None:
        """A text of more than `characters` is cut, and says so. `seconds` bounds one call."""
        self._catalogue = catalogue
        self._characters = characters
        self._seconds = seconds

    def __call__(self, text: str) -> str:
        """`text` with a placeholder in each place that a log must not keep. Never raises."""
        seen = look(text[: self._characters + MARGIN], _DIRECTION, self._catalogue, NO_RULES, self._seconds)
        if seen is None:
            return WITHHELD
        if len(text) <= self._characters:
            return replaced(text, seen.built_in)
        kept = [
            Finding(one.start, min(one.end, self._characters), one.kind)
            for one in seen.built_in
            if one.start < self._characters
        ]
        return replaced(text[: self._characters], kept) + CUT
