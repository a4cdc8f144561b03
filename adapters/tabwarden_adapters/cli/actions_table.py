"""`tabwarden actions`: the action table, from the one place that defines it."""

from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tabwarden.actions import ACTIONS, ActionSpec


def rows() -> list[dict[str, Any]]:
    """For `--json`: names, scopes and demands; arguments and result as JSON Schema."""
    return [
        {
            "name": spec.name,
            "policy_scope": spec.policy_scope,
            "internal_scope": spec.internal_scope,
            "arguments": msgspec.json.schema(spec.arguments),
            "result": msgspec.json.schema(spec.result),
            "effect": spec.effect,
            "foreground": spec.foreground,
            "summary": spec.summary,
        }
        for spec in ACTIONS.values()
    ]


def arguments_of(spec: ActionSpec) -> str:
    """Names of the arguments, optional ones in brackets."""
    return ", ".join(
        field.encode_name if field.required else f"[{field.encode_name}]"
        for field in msgspec.structs.fields(spec.arguments)
    )


def render(console: Console) -> None:
    """A table for a person."""
    table = Table("action", "arguments", "policy scope", "internal scope", "what it does")
    for spec in ACTIONS.values():
        names = (spec.name, arguments_of(spec), spec.policy_scope, spec.internal_scope, spec.summary)
        # Text, since brackets would be read as markup.
        table.add_row(*(Text(name) for name in names))
    console.print(table)
