"""What `tabwarden load` does: opens credentials, drives the load, and writes what came of it."""

import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import trio
from rich.console import Console
from tabwarden.errors import ConfigurationError
from tabwarden.model import ConnectionDescriptor

from tabwarden_adapters.cli.call import parse_args
from tabwarden_adapters.cli.load_broker import BrokerPhases
from tabwarden_adapters.cli.load_screen import on_screen, render, summary
from tabwarden_adapters.cli.output import emit
from tabwarden_adapters.cli.settings import default_connection_path
from tabwarden_adapters.credentials import (
    close_process_to_others,
    load_descriptor,
    passphrase_source,
)
from tabwarden_adapters.load import (
    Brakes,
    LoadPlan,
    Report,
    Run,
    Tally,
    calls_csv,
    drive,
    load_page,
    load_picture,
    put,
    report_json,
    report_of,
    require_places,
    require_plotting,
)

_ISSUED = "agent-*.json"  # as `PrincipalStore` names them
_OTHER_FILES = 64  # open files that are no agent's connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The flags of the command."""

    agents: int
    seconds: float
    rate: float | None
    closed: bool
    action: str
    pairs: tuple[str, ...]
    limit: int
    connection: Path | None
    principals: Path | None
    json: Path | None
    csv: Path | None
    html: Path | None
    png: Path | None
    admin: Path | None

    def plan(self) -> LoadPlan:
        """Raises `ConfigurationError` for flags that cannot be or do not go together, `ActionError` for an
        unknown action."""
        if (self.rate is None) != self.closed:
            raise ConfigurationError("give either --rate, calls a second of each agent, or --closed")
        if self.connection is not None and self.principals is not None:
            raise ConfigurationError("give either --connection or --principals")
        return LoadPlan(
            agents=self.agents,
            seconds=self.seconds,
            rate=self.rate,
            action=self.action,
            arguments=parse_args(self.action, list(self.pairs)),
            limit=self.limit,
        )

    def check_places(self) -> None:
        """Raises `ConfigurationError` when a file of the report could not be written."""
        require_places([path for path in (self.json, self.csv, self.html, self.png) if path is not None])
        if self.png is not None:
            require_plotting()


def run(asked: Asked, passphrase_fd: int | None) -> int:
    """The whole command; its exit status. Raises `TabwardenError`."""
    plan = asked.plan()
    asked.check_places()
    _require_files(plan.agents)
    close_process_to_others()
    descriptors = credentials(asked, once(passphrase_source(passphrase_fd)))
    broker = None if asked.admin is None else BrokerPhases(asked.admin, plan.seconds)
    done = trio.run(drive_for_person, plan, descriptors, broker)
    report = report_of(done, None if broker is None else broker.durations)
    write(asked, report, done)
    emit(summary(report), lambda console: render(report, console))
    return 0 if report.good else 1


def credentials(asked: Asked, ask: Callable[[bool], bytes]) -> list[ConnectionDescriptor]:
    """Those to call with, in the order of their ids. Raises `DescriptorError`, `ConfigurationError`."""
    if asked.principals is None:
        return [load_descriptor(asked.connection or default_connection_path(), ask=ask)]
    if not asked.principals.is_dir():
        raise ConfigurationError(f"{asked.principals} is no folder: name that of the issued descriptors")
    newest: dict[str, ConnectionDescriptor] = {}
    for path in sorted(asked.principals.glob(_ISSUED)):
        one = load_descriptor(path, ask=ask)
        known = newest.get(one.principal_id)
        if known is None or known.generation < one.generation:
            newest[one.principal_id] = one
    if not newest:
        raise ConfigurationError(f"{asked.principals} holds no descriptor: have one issued first")
    return [newest[principal_id] for principal_id in sorted(newest)]


async def drive_for_person(
    plan: LoadPlan, descriptors: Sequence[ConnectionDescriptor], broker: BrokerPhases | None
) -> Run:
    """`drive`, with its progress on a terminal, ended early by SIGINT; a second one waits for nobody."""
    brakes, tally = Brakes(), Tally()
    with trio.open_signal_receiver(signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_press, signals, brakes)
            if sys.stderr.isatty():
                nursery.start_soon(on_screen, Console(stderr=True), plan, tally)
            if broker is not None:
                await broker.begin()
                nursery.start_soon(broker.watch)
            done = await drive(plan, descriptors, brakes=brakes, tally=tally)
            nursery.cancel_scope.cancel()
    if broker is not None:
        await broker.look()
    return done


async def _press(signals: AsyncIterator[int], brakes: Brakes) -> None:
    async for _ in signals:
        brakes.press()


def write(asked: Asked, report: Report, done: Run) -> None:
    """Every file that was asked for. Raises `ConfigurationError`."""
    makers: Mapping[Path | None, Callable[[], bytes]] = {
        asked.json: lambda: report_json(report),
        asked.csv: lambda: calls_csv(done.samples, done.principals),
        asked.html: lambda: load_page(report, done.samples, done.principals).encode(),
        asked.png: lambda: load_picture(report, done.samples, done.principals),
    }
    for path, make in makers.items():
        if path is not None:
            put(path, make())


def once(ask: Callable[[bool], bytes]) -> Callable[[bool], bytes]:
    """Ask for the passphrase of many descriptors one time."""
    given: list[bytes] = []

    def asked(new: bool) -> bytes:
        if not given:
            given.append(ask(new))
        return given[0]

    return asked


def _require_files(agents: int) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < agents + _OTHER_FILES:
        raise ConfigurationError(
            f"{agents} agents need {agents + _OTHER_FILES} open files, and {soft} are allowed: "
            f"ulimit -n {agents + _OTHER_FILES}, or take fewer agents"
        )
