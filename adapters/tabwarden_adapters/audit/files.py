"""What the log asks of the file system: a port, so that tests can make it fail, and the real thing."""

import ctypes
import errno
import os
from typing import NamedTuple, Protocol

from tabwarden.private_files import open_private_file

_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE, linux/falloc.h
_NOT_SUPPORTED = {errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL}


class FileState(NamedTuple):
    """Bytes in the file, and names it has in the file system (0: it was deleted under us)."""

    size: int
    names: int


class FileOperations(Protocol):
    """All raise OSError. `state`, `write` and the syncs may run in a thread, one at a time, while the event
    loop calls `allocate`."""

    def open_segment(self, directory: int, name: str, *, create: bool) -> int:
        """A descriptor that reads and appends; with `create` the file must not be there before."""
        ...

    def allocate(self, file: int, offset: int, length: int) -> None:
        """Keep these bytes of disk for the file without changing its size, or raise (ENOSPC)."""
        ...

    def write(self, file: int, data: memoryview) -> int:
        """Append; returns how many bytes were taken, maybe not all."""
        ...

    def sync(self, file: int) -> None:
        """Return when data and size are on stable storage (fdatasync)."""
        ...

    def sync_directory(self, directory: int) -> None:
        """Return when the names in the folder are on stable storage."""
        ...

    def truncate(self, file: int, size: int) -> None:
        """Cut the file, and give back what was allocated beyond."""
        ...

    def state(self, file: int) -> FileState:
        """See `FileState`."""
        ...


class PosixFiles:
    """The real file system. Where it has no fallocate(2), free space is looked at instead, which other
    programs may use up before we do."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        # glibc's plain name takes 32-bit offsets on 32-bit machines.
        self._fallocate = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
        if self._fallocate is not None:
            self._fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
            self._fallocate.restype = ctypes.c_int

    def open_segment(self, directory: int, name: str, *, create: bool) -> int:
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if create else 0)
        return open_private_file(name, flags, directory=directory)

    def allocate(self, file: int, offset: int, length: int) -> None:
        if self._fallocate is not None:
            while self._fallocate(file, _KEEP_SIZE, offset, length) != 0:
                code = ctypes.get_errno()
                if code == errno.EINTR:
                    continue
                if code not in _NOT_SUPPORTED:
                    raise OSError(code, os.strerror(code))
                break
            else:
                return
        free = os.fstatvfs(file)
        if free.f_bavail * free.f_frsize < length:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(self, file: int, data: memoryview) -> int:
        return os.write(file, data)

    def sync(self, file: int) -> None:
        os.fdatasync(file)

    def sync_directory(self, directory: int) -> None:
        os.fsync(directory)

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def state(self, file: int) -> FileState:
        state = os.fstat(file)
        return FileState(state.st_size, state.st_nlink)
