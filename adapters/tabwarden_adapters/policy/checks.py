"""What the types of a document cannot say: names that exist, patterns that parse, times in order."""

import ipaddress
from collections.abc import Collection, Iterable
from functools import lru_cache

from tabwarden.actions import ACTIONS
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.limits import ED25519_PUBLIC_BYTES, MLDSA_PUBLIC_BYTES
from tabwarden.protocol.codec import parse_base64url
from tabwarden.protocol.proof import LEGACY_ID

from tabwarden_adapters.policy.destination import DestinationRefused, parse_destination
from tabwarden_adapters.policy.document import AiGateway, Grant, PolicyDocument
from tabwarden_adapters.policy.hosts import HostPattern, parse_host_pattern
from tabwarden_adapters.policy.names import nearest
from tabwarden_adapters.policy.text_rules import check_text_rules
from tabwarden_adapters.policy.times import parse_time

ANY_HOST = "*"
SCOPES = frozenset(spec.policy_scope for spec in ACTIONS.values())


def check_meaning(document: PolicyDocument) -> None:
    """Raises `ConfigurationError` for the first thing that is wrong, by its field."""
    issued, expires = time_at(document.issued, "issued"), time_at(document.expires, "expires")
    if expires <= issued:
        raise ConfigurationError("expires: must be later than issued")
    agents, destinations = document.agents, document.destinations
    _scopes(agents.scopes, "agents.scopes")
    _scopes(agents.ask, "agents.ask")
    _hosts(agents.allowed_hosts, "agents.allowedHosts")
    _hosts(agents.resource_hosts, "agents.resourceHosts")
    _hosts((text for text in destinations.allow if text != ANY_HOST), "destinations.allow")
    _hosts(destinations.block, "destinations.block")
    _unique((rule.id for rule in document.dlp), "dlp", "id")
    check_text_rules(document.dlp)
    _bookmarks(document)
    _gateway(document.ai)
    profiles = _unique((profile.name for profile in document.profiles), "profiles", "name")
    for number, profile in enumerate(document.profiles):
        _scopes(profile.scopes, f"profiles[{number}].scopes")
        _scopes(profile.ask, f"profiles[{number}].ask")
        _hosts(profile.allowed_hosts, f"profiles[{number}].allowedHosts")
    groups = _unique((group.name for group in document.groups), "groups", "name")
    for number, group in enumerate(document.groups):
        for index, name in enumerate(group.profiles):
            _known(name, profiles, f"groups[{number}].profiles[{index}]", "profile")
    _unique((grant.id for grant in document.grants), "grants", "id")
    for number, grant in enumerate(document.grants):
        _grant(grant, f"grants[{number}]", profiles, groups)
    if document.next_keys is not None:
        _key(document.next_keys.ed25519, ED25519_PUBLIC_BYTES, "nextKeys.ed25519")
        _key(document.next_keys.ml_dsa87, MLDSA_PUBLIC_BYTES, "nextKeys.mlDsa87")


def time_at(text: str, field: str) -> int:
    """Milliseconds since the epoch. Raises `ConfigurationError`."""
    milliseconds = parse_time(text)
    if milliseconds is None:
        raise ConfigurationError(f"{field}: {text!a} is not a time like 2027-01-31T00:00:00Z (RFC 3339)")
    return milliseconds


@lru_cache(maxsize=8192)
def host_pattern(text: str) -> HostPattern:
    """A pattern that was checked before. The same few stand in many grants."""
    return parse_host_pattern(text, "host")


def _grant(grant: Grant, field: str, profiles: Collection[str], groups: Collection[str]) -> None:
    if grant.id == LEGACY_ID:
        raise ConfigurationError(
            f"{field}.id: {LEGACY_ID!a} is what shared pairing is called: choose another"
        )
    _printable(grant.name, f"{field}.name")
    if grant.profile is not None and grant.group is not None:
        raise ConfigurationError(f"{field}.group: a grant has a profile or a group, not both")
    if grant.profile is not None:
        _known(grant.profile, profiles, f"{field}.profile", "profile")
    if grant.group is not None:
        _known(grant.group, groups, f"{field}.group", "group")
    _scopes(grant.scopes, f"{field}.scopes")
    _scopes(grant.ask, f"{field}.ask")
    _hosts(grant.additional_hosts, f"{field}.additionalHosts")
    if grant.expires is not None:
        time_at(grant.expires, f"{field}.expires")


def _bookmarks(document: PolicyDocument) -> None:
    _unique((bookmark.id for bookmark in document.bookmarks), "bookmarks", "id")
    for number, bookmark in enumerate(document.bookmarks):
        _printable(bookmark.title, f"bookmarks[{number}].title")
        _printable(bookmark.folder, f"bookmarks[{number}].folder")
        _url(bookmark.url, f"bookmarks[{number}].url")


def _gateway(ai: AiGateway) -> None:
    _printable(ai.model, "ai.model")
    if ai.url:
        _url(ai.url, "ai.url")
        if not ai.url.lower().startswith("https://") and not _is_loopback(parse_destination(ai.url).host):
            raise ConfigurationError(
                "ai.url: must begin with https://, because prompts are sent there; http:// is for the same "
                "machine only, written as 127.0.0.1 or [::1]"
            )
    elif ai.enabled:
        raise ConfigurationError("ai.url: is missing and must be given when ai.enabled is true")
    if ai.enabled and not ai.model:
        raise ConfigurationError("ai.model: is missing and must be given when ai.enabled is true")


def _is_loopback(host: str) -> bool:
    """Only an address as it is written: a name may lead elsewhere."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _url(text: str, field: str) -> None:
    try:
        parse_destination(text)
    except DestinationRefused as refused:
        raise ConfigurationError(
            f"{field}: must be an HTTP(S) address without credentials ({refused.rule})"
        ) from None


def _scopes(names: Iterable[str], field: str) -> None:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name not in SCOPES:
            raise ConfigurationError(
                f"{field}[{index}]: there is no scope {name!a}{nearest(name, sorted(SCOPES))}"
            )
        if name in seen:
            raise ConfigurationError(f"{field}[{index}]: {name!a} is listed twice")
        seen.add(name)


def _hosts(texts: Iterable[str], field: str) -> None:
    for index, text in enumerate(texts):
        try:
            host_pattern(text)
        except ConfigurationError as error:
            said = str(error).removeprefix("host: ")
            if text == ANY_HOST:
                said = "* stands for every host in destinations.allow only; leave the list empty to inherit"
            raise ConfigurationError(f"{field}[{index}]: {said}") from None


def _unique(names: Iterable[str], field: str, key: str) -> set[str]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            raise ConfigurationError(f"{field}[{index}].{key}: {name!a} is there twice: give each its own")
        seen.add(name)
    return seen


def _known(name: str, names: Collection[str], field: str, kind: str) -> None:
    if name not in names:
        raise ConfigurationError(f"{field}: there is no {kind} {name!a}{nearest(name, sorted(names))}")


def _printable(text: str, field: str) -> None:
    # Names are shown at terminals, where a control character would be an order.
    if not text.isprintable():
        raise ConfigurationError(f"{field}: has a character that cannot be shown: leave it out")


def _key(text: str, length: int, field: str) -> None:
    try:
        parse_base64url(text.encode(), length)
    except (MalformedError, UnicodeEncodeError):
        raise ConfigurationError(f"{field}: is not {length} bytes in unpadded base64url") from None
