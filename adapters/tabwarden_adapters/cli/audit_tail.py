"""`tabwarden audit tail`: the newest records, and those that come.

Lines are written to the descriptor itself, so that nothing is left to be flushed to a reader that is gone.
"""

import io
import os
import select
import signal
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trio
from rich.console import Console
from rich.text import Text

from tabwarden_adapters.audit import EXPORTS, AuditRecord, Export, LogReader, written_ms
from tabwarden_adapters.cli.audit_work import existing_log
from tabwarden_adapters.cli.plain import plain

POLL_S = 0.5  # a person waits no longer for a line; a look costs a fraction of a millisecond
_STYLES = {"completed": "green", "denied": "yellow", "failed": "bold red"}


def tail(
    folder: Path,
    count: int,
    *,
    follow: bool,
    out: int,
    for_people: bool,
    export: Export = EXPORTS["jsonl"],
) -> None:
    """Write the last `count` records to the descriptor `out`, as `export` has them unless `for_people`; with
    `follow` go on until SIGINT, SIGTERM or until nobody reads. Raises `AuditLogDamaged`,
    `ConfigurationError`."""
    lines = _Lines(LogReader(folder, recent=True), folder, out, for_people=for_people, export=export)
    try:
        lines.newest(count)
        if follow:
            trio.run(_follow, lines)
    except BrokenPipeError:
        return


async def _follow(lines: "_Lines") -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_on, lines, nursery.cancel_scope)
            async for _ in signals:
                nursery.cancel_scope.cancel()
                break


async def _on(lines: "_Lines", ended: trio.CancelScope) -> None:
    try:
        while lines.somebody_reads():
            # In a thread that may be left behind: a reader that does not read must not hold up SIGINT.
            await trio.to_thread.run_sync(lines.more, abandon_on_cancel=True)
            await trio.sleep(POLL_S)
    except BrokenPipeError:
        pass
    ended.cancel()


class _Lines:
    def __init__(
        self,
        reader: LogReader,
        folder: Path,
        out: int,
        *,
        for_people: bool,
        export: Export = EXPORTS["jsonl"],
    ) -> None:
        self._reader = reader
        self._folder = folder
        self._out = out
        self._for_people = for_people
        self._export = export

    def newest(self, count: int) -> None:
        with existing_log(self._folder):
            records = deque(self._reader.read(), maxlen=count)
        self._write(records)

    def more(self) -> None:
        with existing_log(self._folder):
            records = list(self._reader.read())
        self._write(records)

    def somebody_reads(self) -> bool:
        """False when the other end of a pipe was closed."""
        poll = select.poll()
        poll.register(self._out, 0)
        gone = select.POLLERR | select.POLLHUP | select.POLLNVAL
        return not any(event & gone for _, event in poll.poll(0))

    def _write(self, records: Iterable[AuditRecord]) -> None:
        for record in records:
            data = _for_people(record) if self._for_people else self._export(record) + b"\n"
            while data:
                data = data[os.write(self._out, data) :]


def _for_people(record: AuditRecord) -> bytes:
    text = describe(record)
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, soft_wrap=True).print(text)
    return stream.getvalue().encode()


def describe(record: AuditRecord) -> Text:
    """One line for a person, free of control characters whatever the record says."""
    members = record.members
    kind = members.get("type")
    words: list[tuple[str, str] | str] = [(f"{record.sequence:>7} ", "dim"), f"{_time(members)}  "]
    agent = members.get("agent")
    if kind == "agent" and isinstance(agent, dict):
        outcome = plain(agent.get("outcome"))
        words += [(f"{outcome:<10}", _STYLES.get(outcome, "")), f" {_shown(agent.get('action')):<18}"]
        generation = agent.get("generation")
        who = agent.get("principal_id")
        words.append(f" {'(shared pairing)' if who is None else f'{plain(who)}/{plain(generation)}'}")
        for name in ("session_id", "code", "rule"):
            if agent.get(name) is not None:
                words.append((f"  {name.removesuffix('_id')}={plain(agent[name])}", "dim"))
    else:
        rest = members.get(str(kind), members.get("counts"))
        said = rest if isinstance(rest, dict) else {}
        pairs = (f"{plain(name)}={plain(value)}" for name, value in said.items() if value is not None)
        words += [(f"{plain(kind):<10}", "cyan"), " ", "  ".join(pairs)]
    return Text.assemble(*words)


def _shown(value: object) -> str:
    return "-" if value is None else plain(value)


def _time(members: dict[str, Any]) -> str:
    written = written_ms(members)
    try:
        return datetime.fromtimestamp((written or 0) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "no such time"
