"""What a document decides for one grant, one action and one place, and by which rule."""

from dataclasses import dataclass

from tabwarden.errors import ConfigurationError
from tabwarden.model import Caller
from tabwarden.protocol.proof import LEGACY_ID

from tabwarden_adapters.policy.checks import SCOPES
from tabwarden_adapters.policy.decisions import Verdict, may_act, may_be_at
from tabwarden_adapters.policy.layers import CompiledPolicy
from tabwarden_adapters.policy.names import nearest

_SAYS = {
    "scopes": "does not list this scope",
    "allowedHosts": "does not list this host",
    "additionalHosts": "does not list this host",
    "allow": "does not list this host",
    "block": "lists this host",
    "disabled": "is not enabled",
    "expired": "has ended",
    "unknown": "has no such grant",
    "none": "there is none",
    "individual": "agents have grants of their own, and this is none of them",
    "legacy": "all agents share one pairing (called legacy here), and grants have no meaning",
    "invalid": "this is not an address",
    "scheme": "only http and https",
    "credentials": "no user names and passwords in addresses",
    "host": "this is not a host",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """`reasons` says of each objection what it means."""

    verdict: Verdict
    reasons: tuple[str, ...]


def explain(
    policy: CompiledPolicy, grant_id: str, action: str, place: str | None, now_ms: int
) -> Explanation:
    """`grant_id` may be `legacy` for shared pairing; `place` is a host as in a pattern, or a URL.

    Raises `ConfigurationError` for an action that does not exist; an unknown grant is simply denied.
    """
    if action not in SCOPES:
        raise ConfigurationError(f"there is no action {action!a}{nearest(action, sorted(SCOPES))}")
    caller = caller_of(policy, grant_id)
    verdict = may_act(policy, caller, action, (), now_ms)
    if place is not None:
        there = may_be_at(policy, caller, place if "://" in place else f"https://{place}/", now_ms)
        objections = tuple(dict.fromkeys((*verdict.objections, *there.objections)))
        first = there if verdict.allowed else verdict
        ask = verdict.ask if first.allowed else None
        verdict = Verdict(first.allowed, first.rule, first.code, objections, ask)
    return Explanation(verdict, tuple(_reason(rule) for rule in verdict.objections))


def caller_of(policy: CompiledPolicy, grant_id: str) -> Caller:
    """A caller with a credential of this grant's current generation."""
    if grant_id == LEGACY_ID:
        return Caller(None, None)
    grant = policy.grant(grant_id)
    return Caller(grant_id, 1 if grant is None else grant.generation)


def _reason(rule: str) -> str:
    layer, _, what = rule.rpartition(".")
    return f"{layer} {_SAYS.get(what, what)}"
