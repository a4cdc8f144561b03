"""A document as layers of rights: `agents`, `destinations`, a profile or a group's profiles, the grant, and
what the host's adapters can do."""

from dataclasses import dataclass

from tabwarden.authority.principals import Grant as ApprovedGrant
from tabwarden.authority.rights import Layer, Rights
from tabwarden.model import Caller

from tabwarden_adapters.policy.checks import ANY_HOST, host_pattern, time_at
from tabwarden_adapters.policy.destination import Destination
from tabwarden_adapters.policy.document import Grant, PolicyDocument, Profile
from tabwarden_adapters.policy.hosts import HostPattern, is_address

DestinationLayer = Layer[Destination]
DestinationRights = Rights[Destination]


@dataclass(frozen=True, slots=True)
class AnyHost:
    """Every host with a name of two labels or more, at its usual port: no address, and no name that only a
    machine or its network knows (`localhost`, `intranet`)."""

    below: bool = True

    def matches(self, destination: Destination, /) -> bool:
        host = destination.host
        local = "." not in host or host.endswith((".localhost", ".local", ".internal"))
        return destination.usual_port and not local and not is_address(host)


class CompiledPolicy:
    """A document that was checked (see `reading`), with rights made on first use and kept."""

    def __init__(self, document: PolicyDocument, adapter_scopes: frozenset[str] | None = None) -> None:
        """`adapter_scopes` are the policy scopes of the actions that the host has adapters for; None: all."""
        self.document = document
        self.issued_ms = time_at(document.issued, "issued")
        self.expires_ms = time_at(document.expires, "expires")
        self._profiles = {profile.name: profile for profile in document.profiles}
        self._groups = {group.name: group for group in document.groups}
        self._grants = {grant.id: grant for grant in document.grants}
        self._expiries = {
            grant.id: time_at(grant.expires, "expires") for grant in document.grants if grant.expires
        }
        self._rights: dict[str | None, DestinationRights] = {}
        self._common = self._common_layers(adapter_scopes)

    def grant(self, grant_id: str) -> Grant | None:
        """The grant of this public id."""
        return self._grants.get(grant_id)

    def expires_of(self, grant: Grant) -> int:
        """When the grant ends, in milliseconds since the epoch: not after the policy does."""
        return min(self._expiries.get(grant.id, self.expires_ms), self.expires_ms)

    def approved(self) -> list[ApprovedGrant]:
        """The grants for `AgentControl.reconcile_principals`; none in legacy mode or when disabled."""
        agents = self.document.agents
        if not agents.enabled or agents.identity_mode != "individual":
            return []
        return [
            ApprovedGrant(grant.id, grant.generation, self.expires_of(grant), grant.enabled)
            for grant in self.document.grants
        ]

    def ended(self, now_ms: int) -> str | None:
        """The rule by which nobody has any rights; None when some may."""
        if now_ms >= self.expires_ms:
            return "policy.expired"
        return None if self.document.agents.enabled else "agents.disabled"

    def identity_objection(self, caller: Caller, now_ms: int) -> str | None:
        """The rule by which this caller has no rights at all; None when it may have some."""
        ended = self.ended(now_ms)
        if ended is not None:
            return ended
        agents = self.document.agents
        if (caller.principal_id is None) != (agents.identity_mode == "legacy"):
            return f"agents.identityMode.{agents.identity_mode}"
        if caller.principal_id is None:
            return None
        grant = self._grants.get(caller.principal_id)
        if grant is None:
            return "grants.unknown"
        if not grant.enabled:
            return f"grant:{grant.id}.disabled"
        if caller.generation != grant.generation:
            return f"grant:{grant.id}.generation"
        if now_ms >= self.expires_of(grant):
            return f"grant:{grant.id}.expired"
        return None

    def rights(self, grant_id: str | None) -> DestinationRights:
        """What the layers leave to a grant, or in legacy mode (None) to everybody. Whether the caller has any
        rights at all is `identity_objection`'s to say."""
        known = self._rights.get(grant_id)
        if known is None:
            layers = list(self._common)
            if grant_id is not None:
                layers += self._grant_layers(self._grants[grant_id])
            subject = "agents" if grant_id is None else f"grant:{grant_id}"
            known = self._rights[grant_id] = Rights(subject, layers)
        return known

    def _common_layers(self, adapter_scopes: frozenset[str] | None) -> list[DestinationLayer]:
        agents, destinations = self.document.agents, self.document.destinations
        resources = _patterns(agents.resource_hosts)
        layers = [
            Layer(
                "agents",
                scopes=frozenset(agents.scopes),
                hosts=_patterns(agents.allowed_hosts) or None,
                resources=resources,
                sensitive_read=agents.allow_sensitive_read,
                ask=frozenset(agents.ask),
            ),
            Layer(
                "destinations",
                hosts=tuple(
                    AnyHost() if text == ANY_HOST else host_pattern(text) for text in destinations.allow
                ),
                resources=resources,
                blocked=_patterns(destinations.block),
                hosts_field="allow",
            ),
        ]
        if adapter_scopes is not None:
            layers.append(Layer("adapter", scopes=adapter_scopes))
        return layers

    def _grant_layers(self, grant: Grant) -> list[DestinationLayer]:
        names = self._groups[grant.group].profiles if grant.group else ()
        if grant.profile:
            names = (grant.profile,)
        return [
            *(_profile_layer(self._profiles[name]) for name in names),
            Layer(
                f"grant:{grant.id}",
                scopes=frozenset(grant.scopes),
                hosts=_patterns(grant.additional_hosts) or None,
                ask=frozenset(grant.ask),
                hosts_field="additionalHosts",
            ),
        ]


def _profile_layer(profile: Profile) -> DestinationLayer:
    return Layer(
        f"profile:{profile.name}",
        scopes=frozenset(profile.scopes),
        hosts=_patterns(profile.allowed_hosts) or None,
        sensitive_read=profile.allow_sensitive_read,
        ask=frozenset(profile.ask),
    )


def _patterns(texts: tuple[str, ...]) -> tuple[HostPattern, ...]:
    return tuple(host_pattern(text) for text in texts)
