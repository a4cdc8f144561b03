"""The commands and their flags. Each does its work in a module of its own."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import msgspec
import trio
from cyclopts import App, Parameter
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.cli import actions_table, prompts
from tabwarden_adapters.cli import call as calls
from tabwarden_adapters.cli.ai_app import ai_app
from tabwarden_adapters.cli.approvals_app import approvals_app
from tabwarden_adapters.cli.audit_app import audit_app
from tabwarden_adapters.cli.call import DEFAULT_WAIT_S
from tabwarden_adapters.cli.flags import Json
from tabwarden_adapters.cli.grants_app import grants_app
from tabwarden_adapters.cli.host_app import host
from tabwarden_adapters.cli.load_app import load_app
from tabwarden_adapters.cli.output import emit, to_terminal, typed_failures
from tabwarden_adapters.cli.policy_app import policy_app
from tabwarden_adapters.cli.settings import ApproverName, ServeSettings, load_settings
from tabwarden_adapters.cli.trace_app import trace_app
from tabwarden_adapters.credentials import close_process_to_others, passphrase_source

app = App(
    name="tabwarden",
    help="Let AI agents act in your browser, under your rules.",
    version=lambda: version("tabwarden"),
)
app.command(policy_app)
app.command(audit_app)
app.command(grants_app)
app.command(approvals_app)
app.command(ai_app)
app.command(host)
app.command(trace_app)
app.command(load_app)

Connection = Annotated[
    Path | None, Parameter(name="--connection", help="The sealed descriptor that `serve` wrote.")
]
Admin = Annotated[
    Path | None, Parameter(name="--admin", help="The socket by which its administrator reaches the broker.")
]
PassphraseFd = Annotated[
    int | None,
    Parameter(
        name="--passphrase-fd",
        help="Read the passphrase as one line from this open file descriptor, rather than ask for it.",
    ),
]
Config = Annotated[Path | None, Parameter(name="--config", help="A TOML file with the same settings.")]


@app.command
def serve(
    *,
    config: Config = None,
    scope: Annotated[
        list[str] | None,
        Parameter(name="--scope", negative="", help="Enable a policy scope; repeat for more."),
    ] = None,
    ask: Annotated[
        list[str] | None,
        Parameter(
            name="--ask", negative="", help="Ask a person before actions of this scope; repeat for more."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        Parameter(name="--allow-host", negative="", help="Allow a host, as example.org or *.example.org."),
    ] = None,
    policy: Annotated[
        Path | None,
        Parameter(name="--policy", help="A signed policy, in the place of --scope and --allow-host."),
    ] = None,
    host: Annotated[
        bool | None,
        Parameter(name="--host", negative="", help="Attach to a running host's browser, and ask its person."),
    ] = None,
    host_home: Annotated[
        Path | None, Parameter(name="--host-home", help="The folder of host.json, in place of WB_HOME.")
    ] = None,
    connection: Connection = None,
    admin: Admin = None,
    approver: Annotated[
        ApproverName | None,
        Parameter(
            name="--approver",
            help="Who is asked: the person at this terminal (the default where there is one), whoever "
            "runs `tabwarden approvals`, or nobody, which denies.",
        ),
    ] = None,
    audit: Annotated[Path | None, Parameter(name="--audit", help="The folder of the audit log.")] = None,
    headless: Annotated[
        bool | None, Parameter(name="--headless", help="Run Chromium without a window.")
    ] = None,
    provider: Annotated[
        str | None, Parameter(name="--provider", help="cryptography (default) or oqs.")
    ] = None,
    protector: Annotated[
        str | None,
        Parameter(name="--protector", help="What seals the descriptor: auto (default), or one by name."),
    ] = None,
    passphrase_fd: PassphraseFd = None,
) -> int:
    """Start a browser and a broker for it; print one JSON line when ready; end on SIGINT or SIGTERM.

    Nothing is allowed that is not enabled by a scope and, for pages, by a host; or by a signed policy, whose
    keys this device must be enrolled with (`tabwarden policy enrol`).
    """
    from tabwarden_adapters.cli.serve import serve as run

    with typed_failures() as exit_:
        settings = load_settings(config) if config else ServeSettings()
        given: dict[str, Any] = {
            "scopes": tuple(scope) if scope else None,
            "ask": tuple(ask) if ask else None,
            "allowed_hosts": tuple(allow_host) if allow_host else None,
            "policy": str(policy.absolute()) if policy else None,
            "host": host,
            "host_home": str(host_home.absolute()) if host_home else None,
            "connection": str(connection.absolute()) if connection else None,
            "admin": str(admin.absolute()) if admin else None,
            "approver": approver,
            "audit": str(audit.absolute()) if audit else None,
            "headless": headless,
            "provider": provider,
            "protector": protector,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        settings = msgspec.structs.replace(settings, **changes)
        close_process_to_others()
        trio.run(run, settings, prompts.for_serve(settings.protector, passphrase_fd))
    return exit_.status


@app.command
def call(
    action: str | None = None,
    /,
    *,
    arg: Annotated[
        list[str] | None,
        Parameter(name="--arg", negative="", help="One argument as name=value; repeat for more."),
    ] = None,
    request: Annotated[
        Path | None,
        Parameter(
            name="--request",
            allow_leading_hyphen=True,  # a lone - is a file name here
            help='A file like {"action":"read","args":{}}; - for standard input.',
        ),
    ] = None,
    connection: Connection = None,
    wait: Annotated[
        float,
        Parameter(name="--wait", help="Seconds until it gives up: more than 300 where a person is asked."),
    ] = DEFAULT_WAIT_S,
    passphrase_fd: PassphraseFd = None,
) -> int:
    """Do one action and print its result as JSON; a failure goes to stderr with its code, and exit status 1.

    Arguments are seen by other programs of this user while the command runs: pass typed text and prompts
    in a request file.

    Parameters
    ----------
    action
        A name from `tabwarden actions`.
    """
    with typed_failures() as exit_:
        if (action is None) == (request is None) or (request is not None and arg):
            raise ConfigurationError("give either an ACTION with --arg, or --request FILE")
        if request is not None:
            name, args = calls.read_request(request)
        else:
            name = action or ""
            args = calls.parse_args(name, arg or [])
        close_process_to_others()
        emit(
            trio.run(
                calls.call, name, args, connection, passphrase_source(passphrase_fd), calls.seconds(wait)
            )
        )
    return exit_.status


@app.command
def sessions(*, connection: Connection = None, passphrase_fd: PassphraseFd = None, json: Json = False) -> int:
    """List the tabs that agents may see."""
    with typed_failures() as exit_:
        close_process_to_others()
        tabs = trio.run(calls.call, "sessions", {}, connection, passphrase_source(passphrase_fd))
        emit(tabs, lambda console: calls.render_sessions(tabs, console), as_json=json)
    return exit_.status


@app.command
def actions(*, json: Json = False) -> int:
    """Show every action, its arguments and the scopes that it needs."""
    with typed_failures() as exit_:
        emit(actions_table.rows(), actions_table.render, as_json=json)
    return exit_.status


@app.command
def doctor(
    *,
    config: Config = None,
    connection: Connection = None,
    audit: Annotated[Path | None, Parameter(name="--audit", help="The folder of the audit log.")] = None,
    json: Json = False,
) -> int:
    """Check Chromium, keys, clock, folders and the audit log, and say what to do. Exit status 1 if anything
    needs mending."""
    from tabwarden_adapters.cli import doctor as doctors

    with typed_failures() as exit_:
        settings = load_settings(config) if config else ServeSettings()
        given = {"connection": connection, "audit": audit}
        changes = {name: str(path.absolute()) for name, path in given.items() if path is not None}
        findings = list(doctors.examine(msgspec.structs.replace(settings, **changes)))
        emit(
            doctors.as_json(findings),
            lambda console: doctors.render(findings, console),
            as_json=json,
        )
        exit_.status = 1 if any(finding.ok is False for finding in findings) else 0
    return exit_.status


@app.command
def demo() -> int:
    """Show one protected session from pairing to revocation, on a real browser and pages of its own."""
    from tabwarden_adapters.cli.demo import run_demo

    with typed_failures() as exit_:
        trio.run(run_demo, to_terminal())
    return exit_.status


def main() -> None:
    """The entry point of the command."""
    app(sys.argv[1:])
