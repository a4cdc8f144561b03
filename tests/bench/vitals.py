"""What a broker's process holds: memory, files, threads and tasks, and whether they grow."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

MIB = 1024 * 1024
# The interpreter takes and gives back memory by the arena; a leak of a hundred bytes a call shows above this.
RSS_SLACK_BYTES = 2 * MIB
COUNT_SLACK = 2  # a task or a file that is just being opened or closed


@dataclass(frozen=True, slots=True)
class Vitals:
    """At one moment. `rss` in bytes."""

    rss: int
    files: int
    threads: int
    tasks: int

    def __str__(self) -> str:
        counts = f"{self.files:4d} files  {self.threads:2d} threads  {self.tasks:4d} tasks"
        return f"{self.rss / MIB:7.1f} MiB  {counts}"


def vitals(pid: int, tasks: int) -> Vitals:
    """Of the process `pid`, as the kernel counts them; only it can count its own tasks."""
    process = Path("/proc") / str(pid)
    pages = int((process / "statm").read_text().split()[1])
    return Vitals(
        pages * os.sysconf("SC_PAGE_SIZE"),
        len(os.listdir(process / "fd")),
        len(os.listdir(process / "task")),
        tasks,
    )


def growth(taken: Sequence[Vitals]) -> dict[str, int]:
    """By how much the median of the last third is over the median of the middle one, for each that grew by
    more than its slack; empty when none did. The first third is for warming up."""
    third = len(taken) // 3
    if third == 0:
        raise ValueError("at least three measurements are needed")
    middle, last = taken[-2 * third : -third], taken[-third:]
    found = {}
    for field in fields(Vitals):
        before, after = (median(getattr(one, field.name) for one in part) for part in (middle, last))
        slack = RSS_SLACK_BYTES if field.name == "rss" else COUNT_SLACK
        if after - before > slack:
            found[field.name] = round(after - before)
    return found


def shown(grown: dict[str, int]) -> str:
    """What `growth` found, for people."""
    if not grown:
        return "none from the middle third to the last"
    return ", ".join(
        f"{name} by {value / MIB:.1f} MiB" if name == "rss" else f"{name} by {value}"
        for name, value in grown.items()
    )
