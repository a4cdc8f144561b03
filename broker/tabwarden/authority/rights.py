"""What is left when every layer of a policy had its say: the intersection, and the rule that decided.

A layer can only take away. What all of them leave is allowed; what one of them does not leave is denied, and
the denial names it. The order of the layers does not matter, not even for the rule that is named.

Where a destination is described by `P`, a value that only the host rules look into.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tabwarden.errors import ConfigurationError

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)


class HostRule(Protocol[P_contra]):
    """One host or family of hosts."""

    @property
    def below(self) -> bool:
        """True for a family: who wrote it does not know each of its hosts."""
        ...

    def matches(self, place: P_contra, /) -> bool:
        """Whether the place is this host, or of this family."""
        ...


@dataclass(frozen=True)  # slots would break `Layer[X](...)`: typing sets an attribute there
class Layer(Generic[P]):
    """What one part of a policy leaves. `None` leaves all; an empty collection leaves nothing.

    * `scopes`: policy scopes;
    * `hosts`: where tabs may be, and with `resources` what pages may load; called `hosts_field` in rules;
    * `blocked`: hosts that are out for both, whatever else says;
    * `sensitive_read`: whether findings of known deterministic classes may be read;
    * `ask`: policy scopes for which a person is asked, if all layers leave them;
    * `ended`: when not None, the layer leaves nothing at all, for this reason (`disabled`, `expired`, …).
    """

    name: str
    scopes: frozenset[str] | None = None
    hosts: tuple[HostRule[P], ...] | None = None
    resources: tuple[HostRule[P], ...] = ()
    blocked: tuple[HostRule[P], ...] = ()
    sensitive_read: bool | None = None
    ask: frozenset[str] = frozenset()
    ended: str | None = None
    hosts_field: str = "allowedHosts"


@dataclass(frozen=True, slots=True)
class Decision:
    """`rule` is the one that decided: the first of `objections`, or whose rights allowed it.

    `objections` are all rules that deny, in an order that depends on nothing but their names.
    """

    allowed: bool
    rule: str
    objections: tuple[str, ...] = ()


class Rights(Generic[P]):
    """The effective rights under some layers. `subject` names them in decisions that allow."""

    __slots__ = ("_allowed", "_ended", "_layers", "scopes", "subject")

    def __init__(self, subject: str, layers: Iterable[Layer[P]]) -> None:
        """Raises `ConfigurationError` unless some layer limits the scopes, one the hosts and one sensitive
        reading: what nobody limits would otherwise be allowed without anybody having said so."""
        self.subject = subject
        self._layers = tuple(sorted(layers, key=lambda layer: layer.name))
        stated = [layer.scopes for layer in self._layers if layer.scopes is not None]
        for what, states in (
            ("scopes", bool(stated)),
            ("hosts", any(layer.hosts is not None for layer in self._layers)),
            ("sensitive reading", any(layer.sensitive_read is not None for layer in self._layers)),
        ):
            if not states:
                raise ConfigurationError(f"no layer of this policy limits {what}: one of them must")
        self._ended = tuple(
            f"{layer.name}.{layer.ended}" for layer in self._layers if layer.ended is not None
        )
        self.scopes: frozenset[str] = frozenset() if self._ended else stated[0].intersection(*stated[1:])
        """The policy scopes that every layer leaves."""
        self._allowed = Decision(True, subject)

    def scope(self, scope: str) -> Decision:
        """May an action of this policy scope be done at all?"""
        if scope in self.scopes:
            return self._allowed
        lacking = (
            f"{layer.name}.scopes"
            for layer in self._layers
            if layer.scopes is not None and scope not in layer.scopes
        )
        return _denied((*self._ended, *lacking))

    def asks(self, scope: str) -> str | None:
        """The first rule by which a person must agree, `LAYER.ask`, or None. It says nothing of whether the
        scope is there at all: one layer that asks is enough, and none can take that back."""
        return next((f"{layer.name}.ask" for layer in self._layers if scope in layer.ask), None)

    def page(self, place: P) -> Decision:
        """May a tab be at this place?"""
        return self._place(place, resource=False)

    def resource(self, place: P) -> Decision:
        """May a page load from this place? Everything that `page` allows is included."""
        return self._place(place, resource=True)

    def named(self, place: P) -> bool:
        """Whether `resource` allows it, and each layer that limits hosts names this very host: a family does
        not. Only then may the host be on this machine or its network."""
        return self.resource(place).allowed and all(
            any(not rule.below and rule.matches(place) for rule in (*layer.hosts, *layer.resources))
            for layer in self._layers
            if layer.hosts is not None
        )

    def sensitive_read(self) -> Decision:
        """May findings of known deterministic classes be read?"""
        lacking = [f"{one.name}.allowSensitiveRead" for one in self._layers if one.sensitive_read is False]
        objections = (*self._ended, *lacking)
        return _denied(objections) if objections else self._allowed

    def _place(self, place: P, *, resource: bool) -> Decision:
        objections = list(self._ended)
        objections += [f"{one.name}.block" for one in self._layers if _any(one.blocked, place)]
        for layer in self._layers:
            if layer.hosts is None or _any(layer.hosts, place):
                continue
            if not (resource and _any(layer.resources, place)):
                objections.append(f"{layer.name}.{layer.hosts_field}")
        return _denied(tuple(objections)) if objections else self._allowed


def _any(rules: tuple[HostRule[P], ...], place: P) -> bool:
    return any(rule.matches(place) for rule in rules)


def _denied(objections: tuple[str, ...]) -> Decision:
    return Decision(False, objections[0], objections)
