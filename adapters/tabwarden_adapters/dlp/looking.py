"""One look at one text, in the thread where it happens. Pure, so a look can be given up at any time."""

from dataclasses import dataclass

from tabwarden_adapters.dlp.catalogue import Catalogue
from tabwarden_adapters.dlp.corporate import CorporateRule, CorporateRules
from tabwarden_adapters.dlp.detecting import Deadline, find
from tabwarden_adapters.dlp.findings import Finding
from tabwarden_adapters.dlp.folding import fold


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found: places of built-in classes, and of corporate rules."""

    built_in: list[Finding]
    corporate: list[tuple[CorporateRule, Finding]]


def look(
    text: str, direction: str, catalogue: Catalogue | None, rules: CorporateRules, seconds: float
) -> Seen | None:
    """Everything in `text`; None when it could not be looked through to its end, whatever the reason."""
    deadline = Deadline(seconds)
    try:
        folded = fold(text)
        seen = Seen(find(folded, catalogue, deadline), rules.find(folded, direction))
        deadline.left()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic in native code is no Exception
        return None
    return seen
