"""One question to a policy: may this caller do this, there, now? The broker and `explain` ask alike."""

from collections.abc import Iterable
from dataclasses import dataclass

from tabwarden.authority.rights import Decision
from tabwarden.errors import Code
from tabwarden.model import Caller

from tabwarden_adapters.policy.destination import DestinationRefused, parse_destination
from tabwarden_adapters.policy.layers import CompiledPolicy, DestinationRights


@dataclass(frozen=True, slots=True)
class Verdict:
    """`code` is what an agent would be told, `rule` what the audit is, `objections` all rules that deny.
    `ask` is the rule by which a person must agree to what is allowed."""

    allowed: bool
    rule: str
    code: Code | None = None
    objections: tuple[str, ...] = ()
    ask: str | None = None


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
    return Verdict(True, decision.rule, ask=rights.asks(scope))


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


def network_rights(policy: CompiledPolicy | None, caller: Caller, now_ms: int) -> DestinationRights | None:
    """The rights by which this caller's pages load things; None when it has none.

    Where everybody has a name, a caller without one is nobody's page in particular: the browser as a whole,
    whose proxy in a shared context is held to what holds for all.
    """
    if policy is None:
        return None
    if caller.principal_id is None and policy.document.agents.identity_mode == "individual":
        return None if policy.ended(now_ms) else policy.rights(None)
    return policy.rights(caller.principal_id) if standing(policy, caller, now_ms) is None else None


def standing(policy: CompiledPolicy | None, caller: Caller, now_ms: int) -> str | None:
    """The rule by which this caller may do nothing at all, or None."""
    return "policy.none" if policy is None else policy.identity_objection(caller, now_ms)


def _verdict(decision: Decision, code: Code | None) -> Verdict:
    return Verdict(decision.allowed, decision.rule, None if decision.allowed else code, decision.objections)


def _denied(rule: str, code: Code) -> Verdict:
    return Verdict(False, rule, code, (rule,))
