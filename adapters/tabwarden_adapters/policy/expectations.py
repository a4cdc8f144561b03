"""Decisions that somebody expects of a policy, in a file, and which of them it makes otherwise.

    [[cases]]
    grant = "first-agent"        # or "legacy"
    action = "read"
    host = "example.org"         # or a URL; may be left out
    expect = "allow"             # or "deny", or "ask": allowed if a person agrees
    rule = "destinations.allow"  # the rule that denies or asks; may be left out
    at = 2027-01-31T00:00:00Z    # when; now, if left out

or the same as JSON.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.policy.authoring import toml_value
from tabwarden_adapters.policy.checks import SCOPES, time_at
from tabwarden_adapters.policy.document import Part, Time
from tabwarden_adapters.policy.explaining import explain
from tabwarden_adapters.policy.files import read_public_file
from tabwarden_adapters.policy.layers import CompiledPolicy
from tabwarden_adapters.policy.names import nearest
from tabwarden_adapters.policy.reading import strict_json, typed

_MAX_BYTES = 4 * 1024 * 1024
Decided = Literal["allow", "deny", "ask"]
_Text = Annotated[str, Meta(min_length=1, max_length=512)]


class Case(Part, frozen=True, kw_only=True):
    """One expected decision."""

    grant: _Text
    action: _Text
    expect: Decided
    host: _Text | None = None
    rule: _Text | None = None
    at: Time | None = None


class _Cases(Part, frozen=True, kw_only=True):
    cases: Annotated[tuple[Case, ...], Meta(min_length=1, max_length=10_000)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case; `number` counts from 0, as in messages about the file."""

    number: int
    case: Case
    decided: Decided
    rule: str

    @property
    def as_expected(self) -> bool:
        """Whether verdict and, where one was named, rule are those of the case."""
        return self.decided == self.case.expect and self.case.rule in (None, self.rule)


def load_cases(path: Path) -> tuple[Case, ...]:
    """Raises `ConfigurationError` naming the field."""
    data = read_public_file(path, _MAX_BYTES)
    value = toml_value(data, path) if path.suffix == ".toml" else strict_json(data, "the cases")
    cases = typed(value, _Cases, "the cases").cases
    for number, case in enumerate(cases):
        if case.action not in SCOPES:
            raise ConfigurationError(
                f"cases[{number}].action: there is no action {case.action!a}"
                f"{nearest(case.action, sorted(SCOPES))}"
            )
        if case.at is not None:
            time_at(case.at, f"cases[{number}].at")
    return cases


def try_cases(policy: CompiledPolicy, cases: tuple[Case, ...], now_ms: int) -> list[Outcome]:
    """Decide each case."""
    outcomes = []
    for number, case in enumerate(cases):
        at = now_ms if case.at is None else time_at(case.at, "at")
        verdict = explain(policy, case.grant, case.action, case.host, at).verdict
        if verdict.ask is not None:
            outcomes.append(Outcome(number, case, "ask", verdict.ask))
        else:
            outcomes.append(Outcome(number, case, "allow" if verdict.allowed else "deny", verdict.rule))
    return outcomes
