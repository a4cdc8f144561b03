"""The three key system calls of Linux (add_key(2), request_key(2), keyctl(2)), without libkeyutils.

Only what the protector needs. Errors are OSError.
"""

import ctypes
import os
import platform
import sys

USER_KEYRING = -4  # KEY_SPEC_USER_KEYRING: one for each uid, gone when the machine restarts

PROCESS_KEYRING = -2  # KEY_SPEC_PROCESS_KEYRING: this process's own

_SETPERM, _DESCRIBE, _LINK, _UNLINK, _SEARCH, _READ = 5, 6, 8, 9, 10, 11  # linux/keyctl.h
# add_key and keyctl, from the kernel's system call tables (they never change).
_NUMBERS = {
    "x86_64": (248, 250),
    "aarch64": (217, 219),
    "riscv64": (217, 219),
    "loongarch64": (217, 219),
    "ppc64le": (269, 271),
    "s390x": (278, 280),
    "armv7l": (309, 311),
    "armv6l": (309, 311),
    "i686": (286, 288),
}


class KeyCalls:
    """The calls, bound to this machine. Raises OSError when made where they cannot exist."""

    def __init__(self) -> None:
        machine = platform.machine()
        if machine == "x86_64" and sys.maxsize < 2**32:
            machine = "i686"
        if not sys.platform.startswith("linux") or machine not in _NUMBERS:
            raise OSError(f"no kernel keyring is known for {sys.platform} on {machine}")
        self._add_key, self._keyctl = _NUMBERS[machine]
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long

    def add(self, description: str, payload: bytes, keyring: int) -> int:
        """Add a key of type "user", or change the payload of the one there. Returns its serial number."""
        name = description.encode("ascii")
        return self._checked(
            self._add_key, b"user", name, payload, ctypes.c_size_t(len(payload)), ctypes.c_long(keyring)
        )

    def search(self, keyring: int, description: str) -> int:
        """The serial number of a key of type "user"; ENOKEY when there is none."""
        name = description.encode("ascii")
        return self._control(_SEARCH, ctypes.c_long(keyring), b"user", name, ctypes.c_long(0))

    def read(self, key: int, size: int) -> bytes:
        """The payload: at most `size` bytes of it, and one more when it is longer."""
        buffer = ctypes.create_string_buffer(size + 1)
        length = self._control(_READ, ctypes.c_long(key), buffer, ctypes.c_size_t(size + 1))
        payload = buffer.raw[: min(length, size + 1)]
        ctypes.memset(buffer, 0, size + 1)
        return payload

    def describe(self, key: int) -> tuple[int, int]:
        """Its owner's uid, and its permission mask."""
        buffer = ctypes.create_string_buffer(512)
        self._control(_DESCRIBE, ctypes.c_long(key), buffer, ctypes.c_size_t(512))
        _, uid, _, mask, _ = buffer.value.decode("ascii").split(";", 4)
        return int(uid), int(mask, 16)

    def set_permissions(self, key: int, mask: int) -> None:
        self._control(_SETPERM, ctypes.c_long(key), ctypes.c_ulong(mask))

    def link(self, key: int, keyring: int) -> None:
        self._control(_LINK, ctypes.c_long(key), ctypes.c_long(keyring))

    def unlink(self, key: int, keyring: int) -> None:
        self._control(_UNLINK, ctypes.c_long(key), ctypes.c_long(keyring))

    def _control(self, operation: int, *arguments: object) -> int:
        return self._checked(self._keyctl, ctypes.c_long(operation), *arguments)

    def _checked(self, number: int, *arguments: object) -> int:
        result: int = self._call(ctypes.c_long(number), *arguments)
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return result
