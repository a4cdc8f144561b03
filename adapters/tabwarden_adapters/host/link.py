"""The one host that this engine is attached to, and whether it is still there. Once gone, it stays gone."""

import os
from pathlib import Path

import trio

from tabwarden_adapters.host.host_file import HostFile
from tabwarden_adapters.host.host_policy import HostPolicy
from tabwarden_adapters.host.problems import HostProblem

# After one of these no question is worth asking: another answer could only be another host's. What may be
# only a slow or busy host is a no to what was asked, and no more.
_FINAL = frozenset(
    {
        HostProblem.NO_FILE,
        HostProblem.FILE_REFUSED,
        HostProblem.NOT_LOOPBACK,
        HostProblem.DEAD,
        HostProblem.CHANGED,
        HostProblem.FOREIGN,
        HostProblem.UNAUTHORIZED,
    }
)


class HostLink:
    """`alive` until the first sign that the host has gone; `wait_ended` returns at that sign."""

    def __init__(self) -> None:
        self._ended = trio.Event()

    @property
    def alive(self) -> bool:
        """Whether answers still count."""
        return not self._ended.is_set()

    def end(self) -> None:
        """The host is gone, for good. Idempotent, and never waits."""
        self._ended.set()

    def observe(self, problem: HostProblem) -> None:
        """For `HostPolicy`: what was wrong with an answer."""
        if problem in _FINAL:
            self.end()

    async def wait_ended(self) -> None:
        """Return once it has ended."""
        await self._ended.wait()

    async def watch(self, file: HostFile) -> None:
        """End the link when the process that wrote `file` ends, told by the kernel (pidfd_open(2)).

        Returns then; where there are no such descriptors it does nothing, and the browser's own end tells.
        """
        try:
            descriptor = os.pidfd_open(file.pid)
        except ProcessLookupError:
            self.end()
            return
        except (AttributeError, OSError):
            return
        try:
            # It is that process only if it was so after the descriptor was there.
            if file.alive:
                await trio.lowlevel.wait_readable(descriptor)
            self.end()
        finally:
            os.close(descriptor)


def attach_host(home: Path | None = None) -> tuple[HostPolicy, HostLink, HostFile]:
    """The running host, from now on the only one. Raises `HostUnavailable`."""
    link = HostLink()
    policy = HostPolicy(home, observe=link.observe)
    return policy, link, policy.attach()
