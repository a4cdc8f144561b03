"""Keeps other programs of the same user out of this process's memory, and its memory off the disk.

PR_SET_DUMPABLE (prctl(2)) 0 means: no ptrace, no /proc/<pid>/mem or environ for others of our user, and no
core dump of any kind; RLIMIT_CORE (setrlimit(2)) 0 forbids core files again, also to the children. Root is
not kept out. An execve resets the first, so Chromium and other children are as they would be without us,
but for core files.

What it costs: gdb, strace and py-spy need root, and the process's files under /proc belong to root (our own
use of /proc/self still works, as proc(5) allows a process itself).
"""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def close_process_to_others() -> bool:
    """Apply both. Returns whether both hold; on systems without prctl only core dumps are turned off.

    The hard limit stays: whoever may raise a limit is this user, who could as well start us without it.
    """
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        undumped = True
    except (OSError, ValueError):
        undumped = False
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    closed: int = library.prctl(_PR_SET_DUMPABLE, zero, zero, zero, zero)
    return undumped and closed == 0
