"""The words in which a person at a host is asked. Ours first; what an agent or a page wrote stands in quotes
behind its writer's name, with every character made visible."""

from collections.abc import Collection
from typing import Final

import msgspec
from tabwarden.actions import ActionSpec
from tabwarden.authority.describing import describe, visible
from tabwarden.model import Caller

from tabwarden_adapters.host.limits import MAX_WORDS
from tabwarden_adapters.host.risks import Risk

_CHARACTERS: Final = 600  # of one argument or name: the whole has to be read
_SAYS: Final = {
    Risk.FOREIGN_FORM: "its form may be sent to another site, or nobody knows where",
    Risk.PURCHASE: "it may buy, order, book or pay something",
    Risk.DELETION: "it may delete or close something",
    Risk.NEW_SITE: "it leads to a site where this agent was not before",
    Risk.DOWNLOAD: "it saves a file",
}


def who(caller: Caller) -> str:
    """The agent, as a person may know it."""
    return "An agent (shared pairing)" if caller.principal_id is None else f"Agent {caller.principal_id}"


def site_summary(caller: Caller, origin: str) -> str:
    """Asks whether an agent may work on a site at all."""
    return f"{who(caller)} wants to see and use {origin}."


def summary(
    caller: Caller,
    spec: ActionSpec,
    args: msgspec.Struct,
    origin: str,
    risks: Collection[Risk],
    called: str | None = None,
) -> str:
    """Asks about one call. `called`: what the page calls the element."""
    parts = [f"{who(caller)} asks for {spec.name} at {origin}: {spec.summary}"]
    parts += [f"Why you are asked: {_SAYS[risk]}." for risk in sorted(risks)]
    if called:
        parts.append(f"The page calls it: {visible(called, _CHARACTERS)}.")
    facts = describe(args, _CHARACTERS)
    parts += [f"{fact.label}: {fact.text}." for fact in facts if not fact.by_agent]
    parts += [f"The agent wrote: {fact.label}: {fact.text}." for fact in facts if fact.by_agent]
    said = " ".join(parts)
    return said if len(said) <= MAX_WORDS else f"{said[: MAX_WORDS - 40]} … the rest is left out"
