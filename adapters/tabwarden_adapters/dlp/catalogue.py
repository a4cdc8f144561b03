"""The bundled rules of kingfisher, in our process: 488 credentials of other companies' products.

Nothing is fetched and nothing is tried out at an issuer's: only its scanner is used, never its validation.
Its cache on disk is off, so compiling the rules takes seconds of one core. Source: the package
`kingfisher-secret-scanner`, whose wheel carries the rules.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from tabwarden_adapters.dlp.faults import TooSlow

CONFIDENCE: Final = "low"  # all rules: a token too many is a denial, one too few is out


class Catalogue(Protocol):
    """Finds credentials in text of one byte a character. Safe to use from several threads."""

    def places(self, text: bytes, seconds: float) -> list[tuple[int, int]]:
        """Where credentials stand, in bytes. Raises `TooSlow`, or anything when it cannot look."""
        ...


class Kingfisher:
    """The compiled catalogue. Making one blocks for seconds, without the interpreter's lock."""

    def __init__(self, files: Sequence[str] = (), *, builtins: bool = True) -> None:
        """`files` are more rules, in kingfisher's format; without `builtins` there are no others."""
        # Only here: the import alone costs as much as the rest of a start.
        from kingfisher_sdk import Rules, Scanner

        rules = Rules(files, builtins=builtins, confidence=CONFIDENCE, cache=False)
        # Without a policy there are no inline comments by which a page could have a line left out.
        self._scanner = Scanner(rules, base64=False)
        self._known = len(rules)

    def __len__(self) -> int:
        return self._known

    def places(self, text: bytes, seconds: float) -> list[tuple[int, int]]:
        """See `Catalogue`."""
        try:
            found = self._scanner.scan(text, timeout=seconds)
        except TimeoutError:
            raise TooSlow from None
        locations = [one.to_dict()["location"] for one in found if one.visible]
        return sorted((place["start_offset"], place["end_offset"]) for place in locations)
