"""Windows DPAPI, scope CurrentUser (dpapi.h: CryptProtectData, CryptUnprotectData).

Windows encrypts under a key made from the user's logon credentials. It protects against other users, stolen
disks and backups as well as that password does; not against programs of the same user, nor administrators.

**Never run on Windows.** The tests drive it through a library with the same C interface, and show that it
is refused where there is no Windows. Files and folders are checked the POSIX way (`private_files`), so on
Windows neither this package nor the command can be used yet: this is the part that would be needed.
"""

import ctypes
from typing import Any

from tabwarden.errors import ConfigurationError, DescriptorError

from tabwarden_adapters.credentials.wrapping import seal_wrapped, unseal_wrapped

_UI_FORBIDDEN = 0x1  # CRYPTPROTECT_UI_FORBIDDEN: fail rather than ask


class DataBlob(ctypes.Structure):
    """DATA_BLOB of wincrypt.h."""

    _fields_ = (("size", ctypes.c_uint32), ("data", ctypes.c_void_p))


class DpapiProtector:
    """Implements `tabwarden.ports.CredentialProtector`.

    `crypt32` and `local_free` are for tests: the DLL and LocalFree of kernel32. Raises `ConfigurationError`
    when made elsewhere than on Windows.
    """

    format = "windows-dpapi-user-v1"

    def __init__(self, *, crypt32: Any = None, local_free: Any = None) -> None:
        if crypt32 is None or local_free is None:
            if not hasattr(ctypes, "WinDLL"):
                raise ConfigurationError("DPAPI exists on Windows only")
            crypt32, local_free = _windows()
        self._crypt32 = crypt32
        self._local_free = local_free

    def protect(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal `plaintext`. Raises `DescriptorError`."""
        return seal_wrapped(self._wrap, plaintext, self.format, context)

    def unprotect(self, sealed: bytes, context: bytes) -> bytes:
        """Open it again. Raises `DescriptorError` when it was changed or is another user's."""
        return unseal_wrapped(self._unwrap, sealed, self.format, context)

    def _wrap(self, key: bytes) -> bytes:
        return self._call(self._crypt32.CryptProtectData, key)

    def _unwrap(self, wrapped: bytes) -> bytes:
        return self._call(self._crypt32.CryptUnprotectData, wrapped)

    def _call(self, function: Any, given: bytes) -> bytes:
        buffer = ctypes.create_string_buffer(given, len(given))
        source = DataBlob(len(given), ctypes.cast(buffer, ctypes.c_void_p))
        result = DataBlob()
        try:
            if not function(
                ctypes.byref(source), None, None, None, None, _UI_FORBIDDEN, ctypes.byref(result)
            ):
                raise DescriptorError("DPAPI refuses (changed, or another user's): pair again")
        finally:
            ctypes.memset(buffer, 0, len(given))
        try:
            return ctypes.string_at(result.data or 0, result.size)
        finally:
            ctypes.memset(result.data or 0, 0, result.size)
            self._local_free(result.data)


def _windows() -> tuple[Any, Any]:
    load = getattr(ctypes, "WinDLL")  # noqa: B009 - the attribute exists on Windows only
    crypt32, kernel32 = load("crypt32.dll"), load("kernel32.dll")
    blob, pointer = ctypes.POINTER(DataBlob), ctypes.c_void_p
    for name in ("CryptProtectData", "CryptUnprotectData"):
        function = getattr(crypt32, name)
        function.argtypes = (blob, pointer, pointer, pointer, pointer, ctypes.c_uint32, blob)
        function.restype = ctypes.c_int
    kernel32.LocalFree.argtypes = (pointer,)
    kernel32.LocalFree.restype = pointer
    return crypt32, kernel32.LocalFree
