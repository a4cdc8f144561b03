"""The flags of `tabwarden policy`."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tabwarden_adapters.administration import ReloadPolicy, ask
from tabwarden_adapters.cli import policy_work as work
from tabwarden_adapters.cli.flags import Admin, Json, admin_socket
from tabwarden_adapters.cli.output import emit, typed_failures
from tabwarden_adapters.policy import policy_schema

policy_app = App(
    name="policy",
    help="Write, sign, check and explain policies. A draft is TOML (or JSON); devices take signed ones only.",
)

Keys = Annotated[Path | None, Parameter(name="--keys", help="Public keys that it must be signed with.")]
State = Annotated[Path | None, Parameter(name="--state", help="The folder of this device's policy state.")]
Protector = Annotated[
    str,
    Parameter(name="--protector", help="What seals the state: key-file (default), tpm2, secret-service, …"),
]
At = Annotated[str | None, Parameter(name="--at", help="Decide as at this time (RFC 3339), not now.")]


@policy_app.command
def keygen(
    folder: Path,
    /,
    *,
    passphrase: Annotated[
        bool,
        Parameter(
            name="--passphrase",
            negative="",
            help="Seal the private keys: asked at the terminal, or the first line of standard input.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Make the offline keys that sign policies: two files in FOLDER, which must be private (0700) or new.

    Keep policy-private.json away from the devices. Give them policy-public.json.
    """
    with typed_failures() as exit_:
        _show(work.keygen(folder, passphrase=passphrase), as_json=json)
    return exit_.status


@policy_app.command
def init(draft: Path, /, *, json: Json = False) -> int:
    """Write a draft with comments that permits little. Never over a file that is there."""
    with typed_failures() as exit_:
        _show(work.init(draft), as_json=json)
    return exit_.status


@policy_app.command
def sign(
    draft: Path,
    /,
    *,
    keys: Annotated[Path, Parameter(name="--keys", help="The private keys that keygen made.")],
    out: Annotated[Path, Parameter(name="--out", help="Where the signed policy goes.")],
    next_keys: Annotated[
        Path | None,
        Parameter(name="--next-keys", help="Public keys that later policies will be signed with."),
    ] = None,
    json: Json = False,
) -> int:
    """Check a draft and sign it. A signed policy that is there already must have a lower version."""
    with typed_failures() as exit_:
        _show(work.sign(draft, keys, out, next_keys), as_json=json)
    return exit_.status


@policy_app.command
def verify(
    file: Path,
    /,
    *,
    keys: Keys = None,
    device: Annotated[
        bool, Parameter(name="--device", negative="", help="Would this enrolled device take it now?")
    ] = False,
    state: State = None,
    protector: Protector = work.DEFAULT_PROTECTOR,
    json: Json = False,
) -> int:
    """Check a draft, or a signed policy and both its signatures."""
    with typed_failures() as exit_:
        _show(work.verify(file, keys, device, state, protector), as_json=json)
    return exit_.status


@policy_app.command
def enrol(
    keys: Path,
    /,
    *,
    state: State = None,
    protector: Protector = work.DEFAULT_PROTECTOR,
    at_least_version: Annotated[
        int,
        Parameter(name="--at-least-version", help="Take no lower version; say it when enrolling anew."),
    ] = 1,
    json: Json = False,
) -> int:
    """Make this device take policies that are signed with these public keys, and no others."""
    with typed_failures() as exit_:
        _show(work.enrol(keys, state, protector, at_least_version), as_json=json)
    return exit_.status


@policy_app.command
def explain(
    file: Path,
    grant: str,
    action: str,
    place: str | None = None,
    /,
    *,
    keys: Keys = None,
    at: At = None,
    json: Json = False,
) -> int:
    """Say what is decided for a GRANT (or `legacy`), an ACTION and a PLACE (host or URL), and why."""
    with typed_failures() as exit_:
        answer = work.explain(file, keys, grant, action, place, at)
        emit(answer, lambda console: _render_explanation(answer, console), as_json=json)
    return exit_.status


@policy_app.command
def diff(old: Path, new: Path, /, *, at: At = None, json: Json = False) -> int:
    """Show the rights that NEW gives and takes, by grant: what is decided, not what is written."""
    with typed_failures() as exit_:
        rows = work.diff(old, new, at)
        emit(rows, lambda console: _render_changes(rows, console), as_json=json)
    return exit_.status


@policy_app.command(name="try")
def try_(file: Path, cases: Path, /, *, at: At = None, json: Json = False) -> int:
    """Run a file of expected decisions. Exit status 1, with the rows that differ, if any does."""
    with typed_failures() as exit_:
        answer = work.try_cases(file, cases, at)
        rows = answer["differing"]
        emit(
            answer,
            lambda console: _render_outcomes(answer, console),
            as_json=json,
        )
        exit_.status = 1 if rows else 0
    return exit_.status


@policy_app.command
def schema() -> int:
    """Print the JSON Schema of a policy."""
    with typed_failures() as exit_:
        emit(policy_schema())
    return exit_.status


def _show(facts: dict[str, Any], *, as_json: bool) -> None:
    emit(facts, lambda console: _render_facts(facts, console), as_json=as_json)


def _render_facts(facts: dict[str, Any], console: Console) -> None:
    for name, value in facts.items():
        console.print(Text.assemble((f"{name.replace('_', ' ')}: ", "bold"), str(value)))


def _render_explanation(answer: dict[str, Any], console: Console) -> None:
    word, style = ("allowed", "bold green") if answer["allowed"] else ("denied", "bold red")
    asks = f"; a person is asked, by {answer['ask']}" if answer["ask"] else ""
    console.print(Text.assemble((word, style), f" by {answer['rule']}{asks}"))
    for objection in answer["objections"]:
        console.print(Text(f"  {objection['rule']}: {objection['reason']}"))


def _render_outcomes(answer: dict[str, Any], console: Console) -> None:
    for row in answer["differing"]:
        wanted = row["expected"] + ("" if row["expected_rule"] is None else f" by {row['expected_rule']}")
        asked = " ".join(filter(None, (row["grant"], row["action"], row["host"])))
        said = f"cases[{row['case']}]: {asked}: expected {wanted}, decided {row['decided']} by {row['rule']}"
        console.print(Text(said))
    console.print(Text(f"{len(answer['differing'])} of {answer['cases']} cases are decided otherwise."))


def _render_changes(rows: list[dict[str, Any]], console: Console) -> None:
    if not rows:
        console.print(Text("No right changes."))
        return
    table = Table("grant", "change", "right")
    for row in rows:
        table.add_row(*(Text(row[name]) for name in ("grant", "change", "right")))
    console.print(table)


@policy_app.command
def reload(*, admin: Admin = None) -> int:
    """Have a running broker look at its policy file now. Exit status 1 when it does not take it."""
    with typed_failures() as exit_:
        report = ask(admin_socket(admin), ReloadPolicy())
        emit(report)
        exit_.status = 1 if report["kind"] == "refused" else 0
    return exit_.status
