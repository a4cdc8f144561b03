"""`tabwarden grants`: whose credentials are good, and how one is issued or taken."""

import re
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tabwarden.clock import SystemClock
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.administration import IssueGrant, ListGrants, RevokeGrant, ask
from tabwarden_adapters.cli.flags import Admin, Json, admin_socket
from tabwarden_adapters.cli.output import emit, typed_failures
from tabwarden_adapters.policy import parse_time

grants_app = App(
    name="grants",
    help="Issue and take the credentials of single agents, in a running broker with a signed policy whose "
    "identityMode is individual.",
)


_LASTING = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_MILLISECONDS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@grants_app.command(name="list")
def list_(*, admin: Admin = None, json: Json = False) -> int:
    """Show the grants of the policy in force, and which of them have a credential."""
    with typed_failures() as exit_:
        grants = ask(admin_socket(admin), ListGrants())
        emit(grants, lambda console: _render(grants, console), as_json=json)
    return exit_.status


@grants_app.command
def issue(
    grant: str,
    /,
    *,
    until: Annotated[
        str | None,
        Parameter(
            name="--until", help="Ends then (RFC 3339) or after 30m, 8h, 7d; not later than the grant."
        ),
    ] = None,
    admin: Admin = None,
) -> int:
    """Issue a fresh credential and print where its sealed file is: give that to the agent as --connection.

    One that was issued before for the same grant stops working, and its work ends.

    Parameters
    ----------
    grant
        The id of a grant of the policy.
    """
    with typed_failures() as exit_:
        emit(ask(admin_socket(admin), IssueGrant(_id(grant), None if until is None else _moment(until))))
    return exit_.status


@grants_app.command
def revoke(grant: str, /, *, admin: Admin = None) -> int:
    """Take the grant's credential: its work ends now, and nothing of it is released.

    Until another one is issued. To take it for good, publish a policy without the grant, or with it disabled.

    Parameters
    ----------
    grant
        The id of a grant.
    """
    with typed_failures() as exit_:
        emit(ask(admin_socket(admin), RevokeGrant(_id(grant))))
    return exit_.status


def _id(grant: str) -> str:
    if not 0 < len(grant) <= 64:
        raise ConfigurationError("a grant's id has 1 to 64 characters: see `tabwarden grants list`")
    return grant


def _moment(text: str) -> int:
    """Wall time in milliseconds. Raises `ConfigurationError`."""
    now = SystemClock().wall_ms()
    lasting = _LASTING.fullmatch(text)
    if lasting is not None:
        return now + int(lasting[1]) * _MILLISECONDS[lasting[2]]
    moment = parse_time(text)
    if moment is None or moment <= now:
        raise ConfigurationError(
            f"--until: {text!a} is neither a time to come, like 2027-01-31T00:00:00Z, nor like 30m, 8h or 7d"
        )
    return moment


def _render(grants: list[dict[str, Any]], console: Console) -> None:
    table = Table("grant", "name", "generation", "until", "credential")
    for grant in grants:
        credential = grant["credential"]
        if credential is not None:
            has = Text(credential["connection"], overflow="fold")
        else:
            has = Text("none" if grant["enabled"] else "disabled", style="dim")
        until = grant["expires"] if credential is None else credential["expires"] or grant["expires"]
        table.add_row(Text(grant["id"]), Text(grant["name"]), str(grant["generation"]), until, has)
    console.print(table)
