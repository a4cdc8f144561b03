"""The types of the one policy document. Its JSON Schema (docs/policy.schema.json) is published from them.

Field names are written as in the document (`allowedHosts`). Times are RFC 3339 texts with a zone
(`2027-01-31T00:00:00Z`), host patterns those of `hosts`, scopes the policy scopes of the action table.
What the types cannot say (names that exist, patterns that parse) is checked by `validation`.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from tabwarden.actions import Appearance
from tabwarden.limits import MAX_SAFE_INTEGER

FORMAT = "tabwarden-policy/1"
MAX_GRANTS = 20_000

Time = Annotated[str, Meta(min_length=20, max_length=40)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")]
Shown = Annotated[str, Meta(min_length=1, max_length=128)]
Section = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,31}\Z")]
Sections = Annotated[tuple[Section, ...], Meta(max_length=64)]
Scope = Annotated[str, Meta(min_length=1, max_length=64)]
Scopes = Annotated[tuple[Scope, ...], Meta(max_length=64)]
Pattern = Annotated[str, Meta(min_length=1, max_length=300)]  # a name of 253 characters, `*.` and a port
Hosts = Annotated[tuple[Pattern, ...], Meta(max_length=2000)]
GrantHosts = Annotated[tuple[Pattern, ...], Meta(max_length=100)]
Counter = Annotated[int, Meta(ge=1, le=MAX_SAFE_INTEGER)]


class Part(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A part of the document: no field that is not declared, nothing changes once it is read."""


class Agents(Part, frozen=True, kw_only=True):
    """What holds for all agents. `scopes` lists the actions there are at all; an application scope (one with
    a colon) is off like any other until it is listed here. For those in `ask` a person is asked. Empty
    `allowedHosts` inherits `destinations`. `resourceHosts` are hosts that pages may load from, where no tab
    may be."""

    enabled: bool = False
    identity_mode: Literal["legacy", "individual"] = "individual"
    scopes: Scopes = ()
    ask: Scopes = ()
    allowed_hosts: Hosts = ()
    resource_hosts: Hosts = ()
    allow_sensitive_read: bool = False
    browser_context: Literal["shared", "isolated"] = "isolated"


class Destinations(Part, frozen=True, kw_only=True):
    """Where a tab of an agent may be. Nothing that `allow` does not list; `*` there is every host
    with a public name, at its usual port. `block` wins, for what pages load too."""

    allow: Hosts = ()
    block: Hosts = ()


class DlpRule(Part, frozen=True, kw_only=True):
    """One rule for text. Declared here, evaluated by the inspector: `detector` names detectors (`card`,
    `iban`, `credential`), `words` are looked for as they stand, `pattern` values are RE2 expressions. The
    bodies of agents' requests (`to-site`) are looked at only when a rule names that direction."""

    id: Name
    kind: Literal["detector", "words", "pattern"]
    values: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=512)], ...], Meta(min_length=1, max_length=1000)
    ]
    directions: Annotated[
        tuple[Literal["from-page", "to-page", "from-model", "to-model", "to-site"], ...],
        Meta(min_length=1, max_length=5),
    ]
    action: Literal["deny", "mask"] = "deny"
    sensitive: bool = False
    """A known class that `allowSensitiveRead` may let through."""


class Settings(Part, frozen=True, kw_only=True):
    """Which sections of the browser's settings are hidden or locked, and the appearance to begin with."""

    hidden_sections: Sections = ()
    locked_sections: Sections = ()
    appearance: Appearance = Appearance()


class CompanyBookmark(Part, frozen=True, kw_only=True):
    """Shown to everybody; no agent can change it."""

    id: Name
    title: Shown
    url: Annotated[str, Meta(min_length=1, max_length=8192)]
    folder: Annotated[str, Meta(max_length=256)] = ""


class AiGateway(Part, frozen=True, kw_only=True):
    """The one model that `ai` may ask. Its key is not in here: a policy is no secret."""

    enabled: bool = False
    url: Annotated[str, Meta(max_length=2048)] = ""
    model: Annotated[str, Meta(max_length=128)] = ""
    max_characters: Annotated[int, Meta(ge=1, le=20_000)] = 20_000


class Profile(Part, frozen=True, kw_only=True):
    """A limit that grants share. Empty `scopes` leave none; empty `allowedHosts` inherit; for the scopes in
    `ask` a person is asked."""

    name: Name
    scopes: Scopes
    ask: Scopes = ()
    allowed_hosts: Hosts = ()
    allow_sensitive_read: bool = False


class Group(Part, frozen=True, kw_only=True):
    """Several profiles, all of which limit who is in the group."""

    name: Name
    profiles: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=8)]


class Grant(Part, frozen=True, kw_only=True):
    """What one agent may. `additionalHosts` limit it further; empty inherits. For the scopes in `ask` a
    person is asked, as for those of `agents` and of its profiles. A new `generation` makes all credentials of
    earlier ones worthless. Without `expires` it lasts as long as policies that list it."""

    id: Name
    name: Shown
    scopes: Scopes
    ask: Scopes = ()
    generation: Counter
    profile: Name | None = None
    group: Name | None = None
    additional_hosts: GrantHosts = ()
    expires: Time | None = None
    enabled: bool = True


class NextKeys(Part, frozen=True, kw_only=True):
    """The keys that later policies will be signed with, in unpadded base64url (RFC 4648, 5)."""

    ed25519: Annotated[str, Meta(min_length=43, max_length=43)]
    ml_dsa87: Annotated[str, Meta(min_length=3456, max_length=3456)] = msgspec.field(name="mlDsa87")


class PolicyDocument(Part, frozen=True, kw_only=True):
    """A whole policy. A device takes it only when it is signed, and no older than what it has seen."""

    format: Literal["tabwarden-policy/1"]
    version: Counter
    issued: Time
    expires: Time
    agents: Agents = Agents()
    destinations: Destinations = Destinations()
    dlp: Annotated[tuple[DlpRule, ...], Meta(max_length=1000)] = ()
    settings: Settings = Settings()
    bookmarks: Annotated[tuple[CompanyBookmark, ...], Meta(max_length=1000)] = ()
    ai: AiGateway = AiGateway()
    profiles: Annotated[tuple[Profile, ...], Meta(max_length=500)] = ()
    groups: Annotated[tuple[Group, ...], Meta(max_length=500)] = ()
    grants: Annotated[tuple[Grant, ...], Meta(max_length=MAX_GRANTS)] = ()
    next_keys: NextKeys | None = None


def policy_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": FORMAT,
        **_portable(msgspec.json.schema(PolicyDocument)),
    }


def _portable(schema: Any) -> Any:
    """JSON Schema's patterns are ECMAScript's (ECMA-262), where the end is `$` and `\\Z` is a letter."""
    if isinstance(schema, dict):
        return {
            name: value.replace("\\Z", "$")
            if name == "pattern" and isinstance(value, str)
            else _portable(value)
            for name, value in schema.items()
        }
    return [_portable(item) for item in schema] if isinstance(schema, list) else schema
