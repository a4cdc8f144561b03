"""`tabwarden trace`: where the time of recent requests went, in a running broker."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from tabwarden_adapters.cli.flags import admin_socket
from tabwarden_adapters.cli.output import typed_failures

trace_app = App(
    name="trace",
    help="Show recent requests of a running broker as waterfalls: what took how long, and how it ended. They "
    "are in the broker's memory only, and hold no text of a page or an agent.",
)


@trace_app.default
def trace(
    *,
    lines: Annotated[int, Parameter(name=("--lines", "-n"), help="How many requests.")] = 10,
    slowest: Annotated[
        bool,
        Parameter(name="--slowest", negative="", help="The longest of all that are kept, not the newest."),
    ] = False,
    follow: Annotated[
        bool, Parameter(name=("--follow", "-f"), negative="", help="Go on with those that come.")
    ] = False,
    html: Annotated[
        Path | None, Parameter(name="--html", help="Write one page that stands alone, instead of printing.")
    ] = None,
    admin: Annotated[
        Path | None, Parameter(name="--admin", help="The broker's administration socket.")
    ] = None,
    json: Annotated[
        bool, Parameter(name="--json", negative="", help="Print JSON even on a terminal.")
    ] = False,
) -> int:
    """Show the newest requests, oldest first, and how long each phase took over all of them."""
    # OpenTelemetry takes a while to load, which no other command is to wait for.
    from tabwarden_adapters.cli import trace_work

    with typed_failures() as exit_:
        asked = trace_work.Asked(lines=lines, slowest=slowest, follow=follow, html=html, as_json=json)
        trace_work.show(asked, admin_socket(admin))
    return exit_.status
