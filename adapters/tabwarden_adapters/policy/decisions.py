"""One question to a policy: may this caller do this, there, now? The broker and `explain` ask alike."""

from collections.abc import Iterable
from dataclasses import dataclass

from tabwarden.authority.rights import Decision
from tabwarden.errors import Code
from tabwarden.model import Caller

from tabwarden_adapters.policy.destination import Destination, DestinationRefused, parse_destination
from tabwarden_adapters.policy.layers import CompiledPolicy


@dataclass(frozen=True, slots=True)
class Verdict:
    """`code` is what an agent would be told, `rule` what the audit is, `objections` all rules that deny."""

    allowed: bool
    rule: str
    code: Code | None = None
    objections: tuple[str, ...] = ()


def may_act(
    policy: CompiledPolicy | None, caller: Caller, scope: str, urls: Iterable[str], now_ms: int
) -> Verdict:
    """The scope first, then each address: one that is denied denies all."""
    objection = standing(policy, caller, now_ms)
    if policy is None or objection is not None:
        return _denied(objection or "policy.none", Code.POLICY_DENIED)
    rights = policy.rights(caller.principal_id)
    decision = rights.scope(scope)
    if not decision.allowed:
        return _verdict(decision, Code.POLICY_DENIED)
    for url in urls:
        there = may_be_at(policy, caller, url, now_ms)
        if not there.allowed:
            return there
    return _verdict(decision, None)


def may_be_at(policy: CompiledPolicy | None, caller: Caller, href: str, now_ms: int) -> Verdict:
    """Whether a tab of this caller may be at an absolute URL."""
    objection = standing(policy, caller, now_ms)
    if policy is None or objection is not None:
        return _denied(objection or "policy.none", Code.DESTINATION_DENIED)
    try:
        destination = parse_destination(href)
    except DestinationRefused as refused:
        return _denied(refused.rule, Code.DESTINATION_DENIED)
    return _verdict(policy.rights(caller.principal_id).page(destination), Code.DESTINATION_DENIED)


def may_load(policy: CompiledPolicy | None, caller: Caller, place: Destination, now_ms: int) -> bool:
    """Whether a page of this caller's tab may load from there."""
    if policy is None or standing(policy, caller, now_ms) is not None:
        return False
    return policy.rights(caller.principal_id).resource(place).allowed


def standing(policy: CompiledPolicy | None, caller: Caller, now_ms: int) -> str | None:
    """The rule by which this caller may do nothing at all, or None."""
    return "policy.none" if policy is None else policy.identity_objection(caller, now_ms)


def _verdict(decision: Decision, code: Code | None) -> Verdict:
    return Verdict(decision.allowed, decision.rule, None if decision.allowed else code, decision.objections)


def _denied(rule: str, code: Code) -> Verdict:
    return Verdict(False, rule, code, (rule,))
