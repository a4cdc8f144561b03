"""What `tabwarden trace` does: asks the broker for its recent requests, and writes a page about them."""

import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.console import Console
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden_observability import (
    MAX_LISTED,
    FinishedRequest,
    Listing,
    from_plain,
    phase_summary,
    trace_page,
    waterfall,
)

from tabwarden_adapters.administration import AdministrationFailed, ListTraces, ask
from tabwarden_adapters.cli.output import emit, to_terminal

POLL_S = 0.5  # a person waits no longer for a request to be shown

Look = Callable[[int, str | None], Listing]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The flags of the command. Raises `ConfigurationError` for those that do not go together."""

    lines: int
    slowest: bool = False
    follow: bool = False
    html: Path | None = None
    as_json: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.lines <= MAX_LISTED:
            raise ConfigurationError(f"--lines: a whole number from 1 to {MAX_LISTED}, which is what is kept")
        if self.follow and (self.slowest or self.html is not None):
            raise ConfigurationError("--follow goes with neither --slowest nor --html")


def show(asked: Asked, admin: Path) -> None:
    """Print, or write the page. With `follow` until SIGINT or until nobody reads. Raises as `looking_at`."""
    look = looking_at(admin)
    if asked.follow:
        _follow(look, asked)
        return
    requests = look(MAX_LISTED if asked.slowest else asked.lines, None).requests
    if asked.slowest:
        requests = slowest(requests, asked.lines)
    if asked.html is not None:
        write_page(asked.html, requests, time.time_ns())
        emit({"page": str(asked.html.absolute()), "requests": len(requests)})
    else:
        emit(msgspec.to_builtins(requests), lambda console: _render(requests, console), as_json=asked.as_json)


def looking_at(admin: Path) -> Look:
    """Asks the broker at the socket `admin`. The result raises `ConfigurationError` when there is none,
    `AdministrationFailed` when it answers with anything else than traces."""

    def look(limit: int, after: str | None) -> Listing:
        try:
            return from_plain(ask(admin, ListTraces(limit, after)))
        except MalformedError:
            raise AdministrationFailed(
                "no-answer", f"what answered at {admin} is no broker of this version"
            ) from None

    return look


def slowest(requests: tuple[FinishedRequest, ...], count: int) -> tuple[FinishedRequest, ...]:
    """The `count` longest of them, the longest first."""
    return tuple(sorted(requests, key=lambda request: request.duration_ns, reverse=True)[:count])


def follow(
    look: Look, count: int, pause: Callable[[], object] = lambda: time.sleep(POLL_S)
) -> Iterator[Listing]:
    """The last `count` requests, and then, for ever, those that have come since, with a pause between looks.
    Looks in which nothing is new are not given."""
    listed = look(count, None)
    last = None
    # That there are older ones is no news to whoever asked for so many.
    listed = Listing(listed.requests, missed=False)
    while True:
        if listed.requests:
            last = listed.requests[-1].span_id
            yield listed
        pause()
        listed = look(MAX_LISTED, last)


def write_page(path: Path, requests: tuple[FinishedRequest, ...], made_ns: int) -> None:
    """Put a page at `path` whole, readable for this user only: it names agents and what they did.

    Replaces what is there, a link rather than what it points to. Raises `ConfigurationError`.
    """
    if not path.name:
        raise ConfigurationError(f"--html: {path} is no name of a file")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                stream.write(trace_page(requests, made_ns=made_ns))
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {os.strerror(error.errno or 0)}") from None


def _render(requests: tuple[FinishedRequest, ...], console: Console) -> None:
    if not requests:
        console.print("No request has ended yet.", style="dim")
        return
    console.print(waterfall(requests))
    console.print(phase_summary(requests))


def _follow(look: Look, asked: Asked) -> None:
    for_people = to_terminal() and not asked.as_json
    try:
        for listed in follow(look, asked.lines):
            _show(listed, for_people=for_people)
    except KeyboardInterrupt:
        return  # how it is ended
    except BrokenPipeError:
        # Whoever read has had enough. What is still buffered must not be tried again at exit.
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115


def _show(listed: Listing, *, for_people: bool) -> None:
    if for_people:
        console = Console()
        if listed.missed:
            console.print("More came than could be kept: some are not shown.", style="yellow")
        console.print(waterfall(listed.requests))
        return
    for request in listed.requests:
        sys.stdout.write(json.dumps(msgspec.to_builtins(request)) + "\n")
    if listed.missed:
        sys.stderr.write('{"trace": "missed"}\n')
    sys.stdout.flush()
