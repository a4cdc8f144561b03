"""The rights that a new document gives and takes, by grant: not its text, what it decides.

Hosts are compared by asking both policies about places that stand for all others. Two places that no pattern
of either document tells apart are decided alike, so it is enough to ask about each listed host, about one
unlisted name below each `*.` pattern, and about one that fits nothing but `*`, each at every listed port.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tabwarden.protocol.proof import LEGACY_ID

from tabwarden_adapters.policy.checks import ANY_HOST, host_pattern
from tabwarden_adapters.policy.destination import Destination
from tabwarden_adapters.policy.document import PolicyDocument
from tabwarden_adapters.policy.explaining import caller_of
from tabwarden_adapters.policy.layers import CompiledPolicy, DestinationRights
from tabwarden_adapters.policy.times import write_time

_UNLISTED = "one-that-no-pattern-names"
_USUAL = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Change:
    """`right` is `scope read`, `scope click if a person agrees`, `page example.org`, `load cdn.test`,
    `sensitive reading`, …"""

    grant: str
    change: Literal["gained", "lost"]
    right: str


def compare(old: CompiledPolicy, new: CompiledPolicy, now_ms: int) -> list[Change]:
    """All rights gained and lost at one moment, ordered by grant and right. Expiry is compared by itself: a
    policy or grant that has ended by `now_ms` gives no rights at all."""
    places = _places(old.document, new.document)
    ids = dict.fromkeys([LEGACY_ID, *(grant.id for one in (old, new) for grant in one.document.grants)])
    changes: list[Change] = []
    known: dict[tuple[object, ...], frozenset[str]] = {}
    for grant_id in ids:
        before = _rights(old, grant_id, places, now_ms, known)
        after = _rights(new, grant_id, places, now_ms, known)
        changes += [Change(grant_id, "lost", right) for right in _shortest(before - after)]
        changes += [Change(grant_id, "gained", right) for right in _shortest(after - before)]
    return changes


def _shortest(rights: frozenset[str]) -> list[str]:
    """In order; a page that comes or goes takes its loading with it, which then need not be said."""
    pages = {right.removeprefix("page ") for right in rights if right.startswith("page ")}
    return sorted(right for right in rights if right.removeprefix("load ") not in pages)


def _rights(
    policy: CompiledPolicy,
    grant_id: str,
    places: dict[str, Destination],
    now_ms: int,
    known: dict[tuple[object, ...], frozenset[str]],
) -> frozenset[str]:
    caller = caller_of(policy, grant_id)
    if policy.identity_objection(caller, now_ms) is not None:
        return frozenset()
    rights = policy.rights(caller.principal_id)
    if not rights.scopes:
        return frozenset()
    grant = policy.grant(grant_id)
    # Thousands of grants share their hosts: ask once for all that do.
    key = (id(policy), *(() if grant is None else (grant.profile, grant.group, grant.additional_hosts)))
    if key not in known:
        known[key] = frozenset(_at_places(rights, places))
    own = {
        f"scope {scope}" + ("" if rights.asks(scope) is None else " if a person agrees")
        for scope in rights.scopes
    }
    if grant is not None:
        own.add(f"until {write_time(policy.expires_of(grant))}")
        own.add(f"credentials of generation {grant.generation}")
    else:
        own.add(f"until {write_time(policy.expires_ms)}")
    return known[key] | own


def _at_places(rights: DestinationRights, places: dict[str, Destination]) -> Iterator[str]:
    if rights.sensitive_read().allowed:
        yield "sensitive reading"
    for shown, place in places.items():
        if rights.page(place).allowed:
            yield f"page {shown}"
        if rights.resource(place).allowed:
            yield f"load {shown}"


def _places(*documents: PolicyDocument) -> dict[str, Destination]:
    """Places that stand for all others, by how they are shown."""
    hosts: dict[str, str] = {}
    ports: set[int] = set()
    for text in {text for document in documents for text in _patterns(document)}:
        if text == ANY_HOST:
            hosts[ANY_HOST] = f"{_UNLISTED}.invalid"
            continue
        pattern = host_pattern(text)
        if pattern.below:
            hosts[f"*.{pattern.host}"] = f"{_UNLISTED}.{pattern.host}"
        else:
            hosts[pattern.host] = pattern.host
        if pattern.port is not None:
            ports.add(pattern.port)
    # A pattern without a port tells 80 from 443 no more than one with another port does.
    if ports.isdisjoint(_USUAL.values()):
        places = {shown: Destination(host, 443, usual_port=True) for shown, host in hosts.items()}
    else:
        places = {
            f"{scheme}://{shown}": Destination(host, port, usual_port=True)
            for scheme, port in _USUAL.items()
            for shown, host in hosts.items()
        }
    for port in sorted(ports):
        for shown, host in hosts.items():
            places[f"{shown}:{port}"] = Destination(host, port, usual_port=False)
    return places


def _patterns(document: PolicyDocument) -> Iterator[str]:
    yield from document.agents.allowed_hosts
    yield from document.agents.resource_hosts
    yield from document.destinations.allow
    yield from document.destinations.block
    for profile in document.profiles:
        yield from profile.allowed_hosts
    for grant in document.grants:
        yield from grant.additional_hosts
