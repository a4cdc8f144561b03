"""`tabwarden approvals`: what a person is asked, and the answer, in a broker with `approver = "command"`."""

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tabwarden.errors import ConfigurationError
from tabwarden.limits import MAX_APPROVAL_MINUTES

from tabwarden_adapters.administration import AnswerApproval, ForgetApproval, ListApprovals, ask
from tabwarden_adapters.cli.flags import Admin, Json, admin_socket
from tabwarden_adapters.cli.output import emit, typed_failures
from tabwarden_adapters.cli.plain import plain

approvals_app = App(
    name="approvals",
    help="See and answer what agents may only do when a person agrees. For people: an agent that can run "
    "this command as the same user can answer for them.",
)


@approvals_app.command(name="list")
def list_(*, admin: Admin = None, json: Json = False) -> int:
    """Show the open questions, and what was agreed to for longer than once."""
    with typed_failures() as exit_:
        found = ask(admin_socket(admin), ListApprovals())
        emit(found, lambda console: _render(found, console), as_json=json)
    return exit_.status


@approvals_app.command
def answer(
    ticket: str,
    said: Literal["once", "session", "origin", "deny"],
    /,
    *,
    minutes: Annotated[
        int | None, Parameter(name="--minutes", help="With origin: for how long, at most a working day.")
    ] = None,
    admin: Admin = None,
) -> int:
    """Agree or deny. The first answer counts; policy and page are looked at once more before it is done.

    Parameters
    ----------
    ticket
        As `approvals list` shows it.
    said
        once: this very call. session: this action in this tab, for this agent. origin: this action at this
        site, for this agent, for some minutes. deny: no.
    """
    with typed_failures() as exit_:
        if (minutes is not None) != (said == "origin"):
            raise ConfigurationError("--minutes goes with origin, and with no other answer")
        if minutes is not None and not 1 <= minutes <= MAX_APPROVAL_MINUTES:
            raise ConfigurationError(f"--minutes: a whole number from 1 to {MAX_APPROVAL_MINUTES}")
        emit(ask(admin_socket(admin), AnswerApproval(ticket, said, minutes)))
    return exit_.status


@approvals_app.command
def forget(agreement: str, /, *, admin: Admin = None) -> int:
    """Take back what was agreed to for longer than once. Exit status 1 when there is no such agreement.

    Parameters
    ----------
    agreement
        As `approvals list` shows it.
    """
    with typed_failures() as exit_:
        done = ask(admin_socket(admin), ForgetApproval(agreement))
        emit(done)
        exit_.status = 0 if done["forgotten"] else 1
    return exit_.status


def _render(found: dict[str, Any], console: Console) -> None:
    for request in found["pending"]:
        table = Table(title=Text(f"{request['ticket']}  {request['summary']}"), show_header=False)
        table.add_row("agent", Text(plain(request["agent"] or "the paired agent")))
        table.add_row("action", Text(request["action"]))
        table.add_row("where", Text(plain(request["origin"] or "no site")))
        for fact in request["facts"]:
            label = fact["label"] + (" (the agent's words)" if fact["by_agent"] else "")
            table.add_row(Text(label), Text(plain(fact["text"]), style="yellow" if fact["by_agent"] else ""))
        table.add_row("answers", ", ".join(("deny", *request["reaches"])))
        table.add_row("left", f"{request['seconds_left']} s")
        console.print(table)
    if not found["pending"]:
        console.print("Nothing is asked.", style="dim")
    if found["remembered"]:
        table = Table("agreed", "agent", "scope", "reach", "minutes left")
        for one in found["remembered"]:
            where = one["origin"] or one["session"] or ""
            table.add_row(
                one["id"],
                Text(plain(one["agent"] or "the paired agent")),
                one["scope"],
                Text(plain(f"{one['reach']} {where}")),
                str(one["minutes_left"]),
            )
        console.print(table)
