"""`tabwarden load`: calls of many agents on a running broker of this machine, and a report about them."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from tabwarden.limits import DEFAULT_LIMITS

from tabwarden_adapters.cli.output import typed_failures

load_app = App(
    name="load",
    help="Load a running broker of this machine with calls of many agents, and report latencies, fairness "
    "and whether its limiter let through exactly what it should.",
)


@load_app.default
def load(
    *,
    agents: Annotated[int, Parameter(name="--agents", help="How many agents, 1 to 1000.")],
    seconds: Annotated[float, Parameter(name="--seconds", help="For how long, at most 3600.")],
    rate: Annotated[
        float | None, Parameter(name="--rate", help="Calls a second that each agent starts by the clock.")
    ] = None,
    closed: Annotated[
        bool,
        Parameter(
            name="--closed", negative="", help="Each agent calls again as soon as it has its answer instead."
        ),
    ] = False,
    action: Annotated[str, Parameter(name="--action", help="A name from `tabwarden actions`.")] = "sessions",
    arg: Annotated[
        list[str] | None,
        Parameter(name="--arg", negative="", help="One argument as name=value; repeat for more."),
    ] = None,
    limit: Annotated[
        int, Parameter(name="--limit", help="What the broker lets through of a principal in a minute.")
    ] = DEFAULT_LIMITS.requests_per_minute,
    connection: Annotated[
        Path | None, Parameter(name="--connection", help="The sealed descriptor that `serve` wrote.")
    ] = None,
    principals: Annotated[
        Path | None,
        Parameter(
            name="--principals",
            help="The folder of the sealed descriptors of individual mode: the agents are spread over them.",
        ),
    ] = None,
    json: Annotated[Path | None, Parameter(name="--json", help="Write the report here as JSON.")] = None,
    csv: Annotated[Path | None, Parameter(name="--csv", help="Write every call here as CSV.")] = None,
    html: Annotated[
        Path | None, Parameter(name="--html", help="Write one page with plots that stands alone.")
    ] = None,
    png: Annotated[
        Path | None, Parameter(name="--png", help="Write the plots as a PNG; needs `tabwarden[plot]`.")
    ] = None,
    admin: Annotated[
        Path | None,
        Parameter(
            name="--admin",
            help="The broker's administration socket: look at its own phases too, a sample once a second.",
        ),
    ] = None,
    passphrase_fd: Annotated[
        int | None,
        Parameter(
            name="--passphrase-fd",
            help="Read the passphrase as one line from this open file descriptor, rather than ask for it.",
        ),
    ] = None,
) -> int:
    """Exit status 1 when the limiter broke its promise or nothing was accepted. SIGINT ends it early, and
    what was measured is reported.

    Every call is real: it takes a unit of its principal's minute, and the action is done.
    """
    from tabwarden_adapters.cli import load_work

    with typed_failures() as exit_:
        asked = load_work.Asked(
            agents=agents,
            seconds=seconds,
            rate=rate,
            closed=closed,
            action=action,
            pairs=tuple(arg or ()),
            limit=limit,
            connection=connection,
            principals=principals,
            json=json,
            csv=csv,
            html=html,
            png=png,
            admin=admin,
        )
        exit_.status = load_work.run(asked, passphrase_fd)
    return exit_.status
