"""What travels over the host control protocol, typed. Unknown fields are ignored, known ones are strict.

Words that a person will read (`summary`, `reason`, `agent`, `type`) are the engine's, so they may be a
page's: characters that steer a terminal or reorder text are replaced before anybody sees them.
"""

import datetime
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from tabwarden_adapters.host.limits import MAX_NAME, MAX_ORIGIN, MAX_URL, MAX_WORDS


class SiteMode(StrEnum):
    """The person's AI mode for a site."""

    OFF = "off"
    ASK = "ask"
    ALLOWED = "allowed"


class ApprovalKind(StrEnum):
    """What is asked: to work on a site at all, to do something risky, to go to another site."""

    SITE = "site"
    RISK = "risk"
    NAVIGATE = "navigate"


class Answer(StrEnum):
    """`confirm`: yes, but ask again for each risky action."""

    YES = "yes"
    NO = "no"
    CONFIRM = "confirm"


_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
_Origin = Annotated[str, msgspec.Meta(max_length=MAX_ORIGIN)]
_Words = Annotated[str, msgspec.Meta(max_length=MAX_WORDS)]
_Url = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_URL)]
_Time = Annotated[float, msgspec.Meta(ge=0, le=2**53)] | Annotated[str, msgspec.Meta(max_length=40)]


class ApproveBody(msgspec.Struct, frozen=True, kw_only=True):
    """`POST /approve`."""

    kind: ApprovalKind
    origin: _Origin
    summary: _Words


class HandoffBody(msgspec.Struct, frozen=True, kw_only=True):
    """`POST /handoff`."""

    reason: _Words
    origin: _Origin


class LogBody(msgspec.Struct, frozen=True, kw_only=True):
    """`POST /log`. The reference does not say what `at` is: milliseconds since the epoch, or ISO 8601."""

    type: _Name
    origin: _Origin
    text: str
    tokens: Annotated[float, msgspec.Meta(ge=0, le=2**53)]
    at: _Time
    meta: dict[str, Any] | None = None


class OpenTabBody(msgspec.Struct, frozen=True, kw_only=True):
    """`POST /tabs/open`."""

    url: _Url
    background: bool | None = None
    agent: _Name | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A question to the person. `summary` is the engine's own words, not a fact."""

    kind: ApprovalKind
    origin: str
    summary: str


@dataclass(frozen=True, slots=True)
class HandoffRequest:
    """A step that only the person can do: a login, a CAPTCHA, a one-time code."""

    reason: str
    origin: str


@dataclass(frozen=True, slots=True)
class OpenTabRequest:
    """`url` is a normalised http or https address without credentials."""

    url: str
    background: bool = False
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What an engine says that it sent to its model. `at_ms` is the engine's clock.

    On the host side `text` is what the scrubber left, or None where it was withheld; `clean` is whether
    the scrubber found nothing, None where it could not look. On the engine's side `text` is what to send.
    """

    type: str
    origin: str
    text: str | None = field(repr=False)
    tokens: int
    at_ms: int
    meta: Mapping[str, Any] | None = field(default=None, repr=False)
    clean: bool | None = None


def readable(text: str) -> str:
    """`text` with what a terminal or a bidirectional layout would act on replaced by U+FFFD (UAX #44)."""
    return "".join("\ufffd" if unicodedata.category(one) in _ACTED_ON else one for one in text)


_ACTED_ON = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def milliseconds(at: float | str) -> int:
    """`at` of a log entry. Raises ValueError for a text that is no date."""
    if isinstance(at, str):
        moment = datetime.datetime.fromisoformat(at)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return max(0, int(moment.timestamp() * 1000))
    return int(at)
