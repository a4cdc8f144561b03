"""The audit log's two goals on a disk whose syncs take as long as a real one's.

`make bench` measures where it runs, and a virtual disk that keeps what it should have written answers a sync
in less time than Python needs for a record: gathering records saves nothing there. This runs the same blocks
under strace, which makes each fdatasync take so many milliseconds more, for all kinds alike, and slows
nothing else.

    python -m tests.bench.audit_disk FOLDER [MS ...]
"""

import subprocess
import sys
from pathlib import Path

import trio

from tests.bench.audit_measure import audit_goals, audit_line, measure_audit

DELAYS_MS = (0.5, 2.0, 5.0)  # an SSD with and without a cache that survives, a disk that turns


async def main(folder: Path) -> None:
    """Measure once, here."""
    found = await measure_audit(folder, False)
    print(audit_line(found))  # noqa: T201
    for row in audit_goals(found):
        print(f"  {row.id}: {row.value:.2f} {row.unit} (goal {row.goal})")  # noqa: T201


def under_strace(folder: Path, delays_ms: list[float]) -> None:
    """One run for each delay, in a process of its own."""
    for number, delay in enumerate(delays_ms):
        print(f"every fdatasync {delay:g} ms longer:", flush=True)  # noqa: T201
        slowed = f"inject=fdatasync:delay_exit={round(delay * 1000)}"
        tracing = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fdatasync"]
        here = [sys.executable, "-m", "tests.bench.audit_disk", "--here", str(folder / str(number))]
        subprocess.run([*tracing, "-e", slowed, *here], check=True)


if __name__ == "__main__":
    if sys.argv[1] == "--here":
        trio.run(main, Path(sys.argv[2]))
    else:
        under_strace(Path(sys.argv[1]), [float(one) for one in sys.argv[2:]] or list(DELAYS_MS))
