"""What every application action is held to: one policy value, and all destinations at once."""

from collections.abc import Iterable

from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.application.addresses import web_href
from tabwarden_adapters.application.policy import ApplicationPolicy
from tabwarden_adapters.application.ports import DestinationPolicy, PolicySource


class Judge:
    """Asks the policy, believes only clear answers, and asks again at the last moment before a change."""

    def __init__(self, policy: PolicySource, destination_allowed: DestinationPolicy) -> None:
        self._policy = policy
        self._destination_allowed = destination_allowed

    def policy(self, call: CallContext, policy_version: int) -> ApplicationPolicy:
        """The current policy for this caller. Raises `stale` when it is not at `policy_version`."""
        try:
            policy: object = self._policy(call.caller)
        except Exception:
            raise ActionError(Code.FAILURE, rule="application-policy") from None
        if not isinstance(policy, ApplicationPolicy):
            raise ActionError(Code.FAILURE, rule="application-policy")
        if policy.version != policy_version:
            raise ActionError(Code.STALE)
        return policy

    def require_destinations(self, call: CallContext, hrefs: Iterable[str]) -> None:
        """Raise `destination-denied` unless the caller has a right to every one of them."""
        # All are asked about: how long a refusal takes must not say which one it was.
        verdicts = [self._permits(call, href) for href in dict.fromkeys(hrefs)]
        if not all(verdicts):
            raise ActionError(Code.DESTINATION_DENIED, rule="application.destinations")

    def last_look(self, call: CallContext, policy: ApplicationPolicy, hrefs: Iterable[str]) -> None:
        """Right before a change: the call, the policy and the destinations still hold. Then effects begin."""
        call.check()
        if self.policy(call, policy.version) != policy:
            raise ActionError(Code.STALE)
        self.require_destinations(call, hrefs)
        call.effects_begin()

    def _permits(self, call: CallContext, href: str) -> bool:
        if web_href(href) != href:
            return False
        try:
            return self._destination_allowed(call.caller, href) is True
        except Exception:
            return False
