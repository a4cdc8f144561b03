"""THE allow-list: everything that a span, wherever it was made, may say.

An attribute passes when its name stands here and its value passes the name's own check; a name or value
that does not is dropped, silently, because telling about it would tell what it was. Nothing on the list can
hold page text, a URL, a selector, a prompt, a token or the text of an exception.

Names follow OpenTelemetry's naming rules (namespaced, lower case); the short names are the keywords of
`RequestTrace.annotate`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, cast

from tabwarden.actions import ACTIONS
from tabwarden.errors import Code, Refusal
from tabwarden.limits import MAX_SAFE_INTEGER
from tabwarden.model import TraceOutcome
from tabwarden.protocol.proof import is_principal_id

Value = str | int | bool
Check = Callable[[object], Value | None]
"""Gives back the value in its plain type, or None when it may not pass. Raising is a no as well."""


class Cause(StrEnum):
    """Why a request or a phase was cut short. `cancelled`: by none of the request's own scopes."""

    DEADLINE = "deadline"
    REVOKED = "revoked"
    DISCONNECTED = "disconnected"
    CLOSED = "closed"
    POLICY_CHANGED = "policy-changed"
    CANCELLED = "cancelled"


CAUSE_OF: Final[Mapping[TraceOutcome, Cause]] = {
    TraceOutcome.DEADLINE: Cause.DEADLINE,
    TraceOutcome.REVOKED: Cause.REVOKED,
    TraceOutcome.DISCONNECTED: Cause.DISCONNECTED,
    TraceOutcome.CLOSED: Cause.CLOSED,
    TraceOutcome.POLICY_CHANGED: Cause.POLICY_CHANGED,
}


def _one_of(members: Iterable[str]) -> Check:
    # A look-up in a dict of plain strings: an enum member or a str subclass comes out as a plain string.
    return cast("Check", {str(member): str(member) for member in members}.get)


def _pattern(expression: str) -> Check:
    fullmatch = re.compile(expression, re.ASCII).fullmatch

    def check(value: object) -> Value | None:
        return value if type(value) is str and fullmatch(value) else None

    return check


def _principal_id(value: object) -> Value | None:
    return value if type(value) is str and is_principal_id(value) else None


def _count(value: object) -> Value | None:
    # `type(...) is int`: True is not a count.
    return value if type(value) is int and 0 <= value <= MAX_SAFE_INTEGER else None


@dataclass(frozen=True, slots=True)
class Attribute:
    """One row: `name` as exported, and the check of its values."""

    name: str
    check: Check

    def passed(self, value: object) -> Value | None:
        """`value` in its plain type, or None when it may not pass. Never raises."""
        try:
            return self.check(value)
        except Exception:  # an unhashable value such as a list, or one that is hostile when compared
            return None


_SCOPES: Final = frozenset(
    {spec.policy_scope for spec in ACTIONS.values()} | {spec.internal_scope for spec in ACTIONS.values()}
)

check_code: Final = _one_of([*Code, *Refusal])
check_outcome: Final = _one_of(TraceOutcome)

OUTCOME: Final = "tabwarden.outcome"
CODE: Final = "tabwarden.code"
CAUSE: Final = "tabwarden.cause"
PHASE_OUTCOME: Final = "tabwarden.phase.outcome"
ACTION: Final = "tabwarden.action"

ANNOTATIONS: Final[Mapping[str, Attribute]] = {
    "action": Attribute(ACTION, _one_of(ACTIONS)),
    "scope": Attribute("tabwarden.scope", _one_of(_SCOPES)),
    "outcome": Attribute(OUTCOME, check_outcome),
    "code": Attribute(CODE, check_code),
    "cause": Attribute(CAUSE, _one_of(Cause)),
    "principal_id": Attribute("tabwarden.principal.id", _principal_id),
    "generation": Attribute("tabwarden.principal.generation", _count),
    "session_id": Attribute("tabwarden.session.id", _pattern(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")),
    "request_bytes": Attribute("tabwarden.request.bytes", _count),
    "result_bytes": Attribute("tabwarden.result.bytes", _count),
    "reply_bytes": Attribute("tabwarden.reply.bytes", _count),
    "queue_us": Attribute("tabwarden.queue_us", _count),
    "wait_us": Attribute("tabwarden.wait_us", _count),
}
"""The keywords of `annotate`: sizes in bytes, `queue_us` and `wait_us` in microseconds."""

MAX_MODELS: Final = 16  # one at a time, and a policy changes it now and then


class ConfiguredModels:
    """A check that lets through the names of models that settings or a policy named, and no other text.

    What is added must come from there. Bounded, as `SpanNames` is; safe for any thread.
    """

    __slots__ = ("_names",)

    _fullmatch = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/@+-]{0,127}", re.ASCII).fullmatch

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def add(self, name: str) -> None:
        """From now on this one passes, if it looks like a name and there is room."""
        if len(self._names) < MAX_MODELS and self._fullmatch(name):
            self._names[str(name)] = str(name)

    def __call__(self, value: object) -> Value | None:
        return self._names.get(value) if type(value) is str else None


CONFIGURED_MODELS: Final = ConfiguredModels()

# OpenTelemetry's semantic conventions for generative AI, what of them holds no contents. For spans that are
# made below a phase with `Tracing.provider`; the request itself has none of these.
_GEN_AI: Final[Mapping[str, Check]] = {
    "gen_ai.operation.name": _one_of(["chat"]),
    "gen_ai.output.type": _one_of(["text"]),
    "gen_ai.provider.name": _one_of(["openai"]),
    "gen_ai.request.model": CONFIGURED_MODELS,
    "gen_ai.usage.input_tokens": _count,
    "gen_ai.usage.output_tokens": _count,
    "error.type": _one_of([*Code, Cause.CANCELLED]),
}

SPAN_ATTRIBUTES: Final[Mapping[str, Check]] = {
    **{attribute.name: attribute.check for attribute in ANNOTATIONS.values()},
    PHASE_OUTCOME: check_outcome,
    **_GEN_AI,
}
"""What an exported span may carry, by exported name."""

_LABEL: Final = _pattern(r"[A-Za-z0-9][A-Za-z0-9 ._:/+-]{0,127}")

RESOURCE_ATTRIBUTES: Final[Mapping[str, Check]] = dict.fromkeys(
    (
        # Set by whoever runs the broker, through OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. Host names,
        # command lines, paths and users, which resource detectors like to add, are not here on purpose.
        "service.name",
        "service.namespace",
        "service.version",
        "service.instance.id",
        "deployment.environment.name",
        "telemetry.sdk.language",
        "telemetry.sdk.name",
        "telemetry.sdk.version",
    ),
    _LABEL,
)
"""What an exported resource may carry (OpenTelemetry's semantic conventions for resources)."""

UNLISTED: Final = "unlisted"
MAX_NAMES: Final = 128  # fixed names in a program are a few dozen; names made from data have no end


class SpanNames:
    """Lets fixed names of spans through: lower-case words joined by dots or underscores, up to 48 characters.

    A pattern cannot tell a word from a secret that looks like one, so the number of different names is
    bounded as well: once `MAX_NAMES` were seen, every new one becomes `unlisted`.
    """

    __slots__ = ("_known",)

    _fullmatch = re.compile(r"(?=.{1,48}\Z)[a-z]+(?:[._][a-z]+){0,5}", re.ASCII).fullmatch

    def __init__(self) -> None:
        self._known: set[str] = set()

    def clean(self, name: object) -> str:
        """`name` itself, or `unlisted`. Never raises."""
        if not isinstance(name, str):
            return UNLISTED
        name = str(name)
        if name in self._known:
            return name
        if len(self._known) >= MAX_NAMES or self._fullmatch(name) is None:
            return UNLISTED
        self._known.add(name)
        return name


def clean(attributes: Mapping[str, object], allowed: Mapping[str, Check]) -> dict[str, Value]:
    """The part of `attributes` (exported names) that is on the list `allowed`. Never raises."""
    kept: dict[str, Value] = {}
    for name, value in attributes.items():
        check = allowed.get(name)
        if check is None:
            continue
        try:
            passed = check(value)
        except Exception:  # an unhashable value such as a list, or one that is hostile when compared
            passed = None
        if passed is not None:
            kept[name] = passed
    return kept
