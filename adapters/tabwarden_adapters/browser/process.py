"""One child process in a process group of its own, started with chosen descriptors and ended for good."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import trio


class GroupProcess:
    """A started process and its whole group. Only ever signals the group that it made itself.

    The leader is reaped last, in `end()`: until then its id, and so the group's, cannot be given to
    another process.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._status: int | None = None

    @classmethod
    def start(
        cls, argv: Sequence[str], environment: Mapping[str, str], descriptors: Mapping[int, int]
    ) -> "GroupProcess":
        """Start `argv` with nothing open but /dev/null as 0, 1, 2 and `descriptors` (child's -> ours).

        Our descriptors must be above all of the child's. Raises OSError.
        """
        null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
        actions: list[tuple[object, ...]] = [null]
        actions += [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, ours, child) for child, ours in descriptors.items()]
        pid = os.posix_spawn(argv[0], list(argv), dict(environment), file_actions=actions, setpgroup=0)
        return cls(pid)

    async def wait_exit(self) -> int:
        """Return when the leader has exited, with its exit status (negative: the signal), unreaped."""
        await trio.lowlevel.wait_readable(self._pidfd)
        return self._peek()

    def _peek(self) -> int:
        info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if info is None:
            return 0  # cannot be: its descriptor was readable
        return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status

    async def end(self, *, grace_s: float, kill_s: float) -> bool:
        """Ask the group to end, kill it after `grace_s`, reap the leader. True when nothing is left.

        Waits `grace_s` + `kill_s` seconds at the most, shielded. A second call returns at once.
        """
        if self._status is not None:
            return True
        with trio.CancelScope(shield=True):
            self._signal(signal.SIGTERM)
            with trio.move_on_after(grace_s):
                await self._wait_group()
            self._signal(signal.SIGKILL)
            with trio.move_on_after(kill_s):
                await self._wait_group()
                self._reap()
        return self._status is not None

    def _reap(self) -> None:
        _, self._status = os.waitpid(self.pid, os.WNOHANG)
        os.close(self._pidfd)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    async def _wait_group(self) -> None:
        await trio.lowlevel.wait_readable(self._pidfd)
        while members := living_members(self.pid):
            for pid in members:
                await _wait_member(pid, self.pid)


def living_members(group: int) -> list[int]:
    """The processes of a group that still run (source: proc(5), `stat` fields 3 and 5)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _runs_in(int(entry.name), group):
            found.append(int(entry.name))
    return found


def _runs_in(pid: int, group: int) -> bool:
    try:
        # The name in parentheses may itself hold parentheses and spaces.
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX" and int(fields[2]) == group


async def _wait_member(pid: int, group: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if _runs_in(pid, group):
            await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)
