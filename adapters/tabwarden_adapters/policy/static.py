"""A policy that stays as it is while the broker runs: what is enabled, and where. All else is denied."""

import difflib
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from tabwarden.actions import ACTIONS
from tabwarden.errors import Code, ConfigurationError
from tabwarden.model import Authorization, Caller
from tabwarden.ports import PersonWait

from tabwarden_adapters.policy.denials import note_denial
from tabwarden_adapters.policy.destination import Destination, DestinationRefused, parse_destination
from tabwarden_adapters.policy.hosts import HostPattern, parse_host_pattern

_FIELDS = ("scopes", "ask", "allowed_hosts", "resource_hosts", "policy_version")
_SCOPES = tuple(dict.fromkeys(spec.policy_scope for spec in ACTIONS.values()))


class StaticPolicy:
    """Implements `tabwarden.ports.Authorizer`, for all callers alike.

    `settings`:
    * `scopes`: names of policy scopes (the action table's); without it nothing is allowed;
    * `ask`: the policy scopes for which a person is asked as well;
    * `allowed_hosts`: patterns (see `hosts`); without it no destination is allowed;
    * `resource_hosts`: patterns of hosts that pages may load from as well, where no tab may be;
    * `policy_version`: an integer from 1 on, default 1.

    Raises `ConfigurationError` naming the field, and the nearest valid name where there is one.
    """

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        settings = {} if settings is None else settings
        for name in settings:
            if name not in _FIELDS:
                raise ConfigurationError(f"policy: there is no field {name!a}{_nearest(name, _FIELDS)}")
        self._scopes = frozenset(_scope(name, "scopes") for name in _texts(settings, "scopes"))
        self._ask = frozenset(_scope(name, "ask") for name in _texts(settings, "ask"))
        self._hosts: tuple[HostPattern, ...] = tuple(
            parse_host_pattern(text, "policy.allowed_hosts") for text in _texts(settings, "allowed_hosts")
        )
        self._resources: tuple[HostPattern, ...] = self._hosts + tuple(
            parse_host_pattern(text, "policy.resource_hosts") for text in _texts(settings, "resource_hosts")
        )
        version = settings.get("policy_version", 1)
        if type(version) is not int or not 1 <= version <= 2**53:
            raise ConfigurationError("policy.policy_version must be an integer from 1 to 2^53")
        self._version = version

    @property
    def policy_version(self) -> int:
        """Shown by `application:state`, and demanded back by changes that depend on the policy."""
        return self._version

    async def __call__(
        self,
        action: str,
        args: msgspec.Struct,
        scope: str,
        session_id: str | None,
        *,
        caller: Caller,
        waiting_for_person: PersonWait,
    ) -> Authorization:
        """Decide one call. Never waits, never raises for what an agent sent.

        Rules for the audit: `actions.unknown`, `scopes.mismatch`, `scopes.not-enabled`, `hosts.not-listed`,
        `url.invalid`, `url.scheme`, `url.credentials`, `url.host`; `static` when allowed, and
        `static.ask` when a person is to be asked.
        """
        spec = ACTIONS.get(action)
        if spec is None:
            return Authorization(False, rule="actions.unknown")
        if scope != spec.policy_scope:
            return Authorization(False, rule="scopes.mismatch")
        if scope not in self._scopes:
            return Authorization(False, rule="scopes.not-enabled")
        for url in _urls(args):
            rule = self._objection(url)
            if rule is not None:
                return Authorization(False, code=Code.DESTINATION_DENIED, rule=rule)
        return Authorization(
            True,
            role="agent",
            scopes=frozenset({spec.internal_scope}),
            rule="static",
            ask="static.ask" if scope in self._ask else None,
        )

    def destination_allowed(self, caller: Caller, href: str) -> bool:
        """Whether a tab that agents act in may be at this absolute URL. The same for all callers."""
        rule = self._objection(href)
        if rule is not None:
            note_denial(rule)
        return rule is None

    def resource_allowed(self, caller: Caller, href: str) -> bool:
        """Whether a page of an agent's tab may load this absolute URL, in a frame too."""
        try:
            destination = parse_destination(href)
        except DestinationRefused:
            return False
        return any(pattern.matches(destination) for pattern in self._resources)

    def endpoint_allowed(self, caller: Caller, host: str, port: int) -> bool:
        """Whether anything of an agent's pages may connect to this host, given in normal form."""
        return any(pattern.matches(_endpoint(host, port)) for pattern in self._resources)

    def endpoint_named(self, caller: Caller, host: str, port: int) -> bool:
        """Whether a list names this very host, so that it may be on this machine or its network. `*.name`
        names none: who writes it does not know where each of the names leads."""
        return any(not one.below and one.matches(_endpoint(host, port)) for one in self._resources)

    def _objection(self, url: str) -> str | None:
        """The rule that `url` breaks, or None."""
        try:
            destination = parse_destination(url)
        except DestinationRefused as refused:
            return refused.rule
        if not any(pattern.matches(destination) for pattern in self._hosts):
            return "hosts.not-listed"
        return None


def _endpoint(host: str, port: int) -> Destination:
    """A connection says nothing of its scheme, so either's usual port counts as usual."""
    return Destination(host, port, port in (80, 443))


def _urls(args: msgspec.Struct) -> Iterator[str]:
    """Every `url` among the arguments, at any depth: a bookmark's is followed by a person one day."""
    for name in args.__struct_fields__:
        value = getattr(args, name)
        if isinstance(value, msgspec.Struct):
            yield from _urls(value)
        elif name == "url" and isinstance(value, str):
            yield value


def _texts(settings: Mapping[str, object], field: str) -> list[str]:
    value = settings.get(field, ())
    # A single text is iterable too: `scopes = "read"` must not become the scopes r, e, a, d.
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ConfigurationError(f"policy.{field} must be a list of texts")
    texts = list(value)
    if not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"policy.{field} must be a list of texts")
    return texts


def _scope(name: str, field: str) -> str:
    if name not in _SCOPES:
        raise ConfigurationError(f"policy.{field}: there is no scope {name!a}{_nearest(name, _SCOPES)}")
    return name


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), list(names), n=1, cutoff=0.0)
    return f"; did you mean {close[0]!a}?" if close else ""
