"""The flags of `tabwarden audit`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from tabwarden_adapters.audit import EXPORTS, AuditLogDamaged, ProofRefused, export_in
from tabwarden_adapters.cli import audit_tail, audit_work
from tabwarden_adapters.cli.flags import Json
from tabwarden_adapters.cli.output import Exit, emit, fail, to_terminal, typed_failures
from tabwarden_adapters.cli.plain import plain

audit_app = App(
    name="audit",
    help="Read, check and prove the audit log. A broker may be running; nothing here changes the log.",
)

Audit = Annotated[Path | None, Parameter(name="--audit", help="The folder of the audit log.")]
Config = Annotated[Path | None, Parameter(name="--config", help="The settings file of the broker.")]
Keys = Annotated[
    Path | None,
    Parameter(name="--keys", help="What `audit keys` printed, kept where the broker's user cannot write."),
]
Format = Annotated[str | None, Parameter(name="--format", help=f"One of: {', '.join(sorted(EXPORTS))}.")]
Namespace = Annotated[
    str | None,
    Parameter(
        name="--ecs-namespace", help="What our own fields stand below in ECS and OpenTelemetry: tabwarden."
    ),
]


@audit_app.command
def verify(
    *,
    audit: Audit = None,
    config: Config = None,
    known_head: Annotated[
        str | None,
        Parameter(name="--known-head", help="N:HASH that was noted elsewhere, or a file that holds it."),
    ] = None,
    keys: Keys = None,
    proof: Annotated[
        Path | None, Parameter(name="--proof", help="Check what `audit prove` printed, not the log.")
    ] = None,
    json: Json = False,
) -> int:
    """Check every record and signature. Exit status 1, with the place of the fault, if one is found.

    Without --known-head or --keys a log that was cut at its end, or rewritten, looks like a good one.
    """
    with _failures() as exit_:
        if proof is not None:
            answer = audit_work.verify_proof(proof, keys)
            emit(answer, lambda console: _render_proof(answer, console), as_json=json)
        else:
            report = audit_work.verify(audit_work.log_folder(audit, config), known_head, keys)
            emit(report, lambda console: _render_report(report, console), as_json=json)
            exit_.status = 0 if report["ok"] else 1
    return exit_.status


@audit_app.command
def tail(
    *,
    audit: Audit = None,
    config: Config = None,
    lines: Annotated[
        int, Parameter(name=("--lines", "-n"), help="How many of the newest to begin with.")
    ] = 10,
    follow: Annotated[
        bool, Parameter(name=("--follow", "-f"), negative="", help="Go on with those that come.")
    ] = False,
    format_: Format = None,
    ecs_namespace: Namespace = None,
    json: Json = False,
) -> int:
    """Print the newest records, one a line; with --follow until SIGINT.

    Checks the chain of what it reads, which is the end of the log only: see `audit verify`.
    """
    with _failures() as exit_:
        folder = audit_work.log_folder(audit, config)
        export_ = export_in(format_ or "jsonl", audit_work.ecs_namespace(ecs_namespace, config))
        audit_tail.tail(
            folder,
            max(0, lines),
            follow=follow,
            out=sys.stdout.fileno(),
            for_people=to_terminal() and not json and format_ is None,
            export=export_,
        )
    return exit_.status


@audit_app.command
def export(
    *,
    format_: Format = None,
    audit: Audit = None,
    config: Config = None,
    ecs_namespace: Namespace = None,
) -> int:
    """Write all records to stdout, one a line, checking the chain. Exit status 1 at the first fault."""
    with _failures() as exit_:
        namespace = audit_work.ecs_namespace(ecs_namespace, config)
        for line in audit_work.export(audit_work.log_folder(audit, config), format_ or "jsonl", namespace):
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    return exit_.status


@audit_app.command
def ship(
    *,
    to: Annotated[
        str, Parameter(name="--to", help="tcp://HOST:PORT, tls://HOST:PORT, unix:///PATH, or otlp.")
    ],
    format_: Format = None,
    audit: Audit = None,
    config: Config = None,
    cursor: Annotated[
        Path | None,
        Parameter(name="--cursor", help="The file that remembers how far it came, in a folder that is 0700."),
    ] = None,
    ca: Annotated[
        Path | None,
        Parameter(name="--ca", help="PEM certificates to verify a tls:// server by, not the system's."),
    ] = None,
    sd_id: Annotated[
        str | None, Parameter(name="--sd-id", help="NAME@NUMBER of the syslog structured data.")
    ] = None,
    ecs_namespace: Namespace = None,
) -> int:
    """Send every record to a syslog server (RFC 5424) or an OpenTelemetry collector, until SIGINT.

    In order and at least once: after a restart, or when the other side was away, it goes on behind the
    last record that was taken. For otlp the environment says where (OTEL_EXPORTER_OTLP_…).
    """
    # Here, because no other command needs what it brings.
    from tabwarden_adapters.cli.audit_ship import ShipSettings, ship

    with _failures() as exit_:
        settings = ShipSettings(
            to=to,
            format=format_,
            namespace=audit_work.ecs_namespace(ecs_namespace, config),
            cursor=cursor,
            ca=ca,
            sd_id=sd_id,
        )
        ship(audit_work.log_folder(audit, config), settings)
    return exit_.status


@audit_app.command
def prove(sequence: int, /, *, audit: Audit = None, config: Config = None) -> int:
    """Print, as JSON, the proof that record SEQUENCE stands in the log that was signed.

    Check it with `audit verify --proof FILE --keys FILE`, anywhere and without the log.
    """
    with _failures() as exit_:
        emit(audit_work.prove(audit_work.log_folder(audit, config), sequence))
    return exit_.status


@audit_app.command
def head(*, audit: Audit = None, config: Config = None, json: Json = False) -> int:
    """Print number and hash of the last record, to be kept elsewhere for `audit verify --known-head`."""
    with _failures() as exit_:
        answer = audit_work.head(audit_work.log_folder(audit, config))
        emit(answer, lambda console: console.print(Text(answer["head"]), soft_wrap=True), as_json=json)
    return exit_.status


@audit_app.command
def keys(*, audit: Audit = None, config: Config = None) -> int:
    """Print, as JSON, whose keys signed the log and how far it goes, to be kept elsewhere for --keys.

    Do so while you trust the log: what is printed is what later checks believe.
    """
    with _failures() as exit_:
        emit(audit_work.keys(audit_work.log_folder(audit, config)))
    return exit_.status


@contextmanager
def _failures() -> Iterator[Exit]:
    with typed_failures() as exit_:
        try:
            yield exit_
        except AuditLogDamaged as damage:
            exit_.status = fail("audit-damaged", str(damage))
        except ProofRefused as refused:
            exit_.status = fail("proof-refused", str(refused))
        except BrokenPipeError:
            # Whoever read has had enough. What is still buffered must not be tried again at exit.
            sys.stdout = open("/dev/null", "w")  # noqa: SIM115


def _render_report(report: dict[str, Any], console: Console) -> None:
    fault = report["fault"]
    if fault is None:
        console.print(
            Text.assemble(("intact", "bold green"), f": records {report['first']} to {report['last']}")
        )
    else:
        console.print(Text.assemble(("fault", "bold red"), f": {plain(fault['text'])}"))
        console.print(Text("Keep a copy of the whole folder as evidence; serve into a new one."))
    signed, last = report["signed_through"], report["last"]
    console.print(
        Text(
            f"signed through record {signed}, by {report['checkpoints']} checkpoints; keys: {report['keys']}"
        )
    )
    if signed < last:
        console.print(Text(f"records {max(signed + 1, report['first'])} to {last} are not signed yet"))
    for step in report["clock_steps"]:
        console.print(
            Text(f"wall time was set by {step['by_ms'] / 1000:+.0f} s before record {step['sequence']}")
        )
    if report["head"] is not None:
        console.print(Text(f"head: {report['head']}"), soft_wrap=True)
    if report["note"] is not None:
        console.print(Text(report["note"]))


def _render_proof(answer: dict[str, Any], console: Console) -> None:
    console.print(
        Text.assemble(
            ("proven", "bold green"),
            f": record {answer['sequence']} of {answer['of']}, signed by keys {answer['key_id'][:16]}…",
        )
    )
    for name, value in answer["record"].items():
        console.print(Text(f"  {plain(name)}: {plain(value)}"), soft_wrap=True)
