"""What findings mean under rules: clean, classified or blocked, and which places are masked."""

from collections.abc import Sequence

from tabwarden_adapters.dlp.corporate import CorporateRule, CorporateRules
from tabwarden_adapters.dlp.findings import CREDENTIAL, INCOMPLETE, Finding, Inspection, Result

UNFINISHED = Inspection(Result.INCOMPLETE, classes=(INCOMPLETE,))


def judge(
    built_in: Sequence[Finding],
    corporate: Sequence[tuple[CorporateRule, Finding]],
    rules: CorporateRules,
    direction: str,
    *,
    sensitive_read: bool = False,
) -> Inspection:
    """A built-in class is blocked unless a rule for it says otherwise; credentials whatever rules say.

    `sensitive_read`: the caller may read what rules call sensitive, so those are masked for others only.
    """
    blocked: list[str] = []
    classified: list[str] = []
    masks: list[Finding] = []
    pairs = [(_rule_for(found, rules, direction), found) for found in built_in]
    for rule, found in [*pairs, *corporate]:
        if rule is None:
            blocked.append(found.kind)
        elif rule.sensitive and (sensitive_read or rule.action == "deny"):
            classified.append(found.kind)
        elif rule.action == "mask":
            masks.append(found)
        else:
            blocked.append(found.kind)
    findings = tuple(sorted({found for _, found in pairs} | {found for _, found in corporate}, key=_place))
    if blocked:
        # Credentials first: the worst class is the one that is told.
        blocked.sort(key=lambda kind: kind != CREDENTIAL)
        return Inspection(Result.BLOCKED, findings, tuple(masks), tuple(dict.fromkeys(blocked)))
    result = Result.CLASSIFIED if classified else Result.CLEAN
    return Inspection(result, findings, tuple(masks), tuple(dict.fromkeys(classified)), sensitive_read)


def _rule_for(found: Finding, rules: CorporateRules, direction: str) -> CorporateRule | None:
    """The strictest rule about a built-in class; None when there is none, or when none may say anything."""
    if found.kind == CREDENTIAL:
        return None
    about = [one for one in rules.detectors if found.kind in one.values and direction in one.directions]
    return min(about, key=_leniency, default=None)


def _leniency(rule: CorporateRule) -> tuple[bool, bool]:
    return rule.sensitive, rule.action == "mask"


def _place(found: Finding) -> tuple[int, int, str]:
    return found.start, found.end, found.kind
