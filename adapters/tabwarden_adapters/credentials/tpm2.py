"""A key that only this machine's TPM 2.0 gives back, through the programs of tpm2-tools.

Each descriptor has a fresh key, sealed as an object under a primary key of the owner hierarchy (TCG TPM 2.0
Library, parts 1 and 3: TPM2_CreatePrimary, TPM2_Create, TPM2_Load, TPM2_Unseal). What is stored can be opened
by this TPM alone, until it is cleared.

It protects against stolen disks and backups, and against users who may not open the TPM. It does not protect
against programs of the same user, nor against other members of the group that may use the TPM (tss) who also
get the file, nor against root, nor against somebody who listens on the wires of a TPM that is a chip of its
own.

tpm2-pytss was tried first: it comes as source only and needs a compiler and the headers of tpm2-tss.
"""

import os
import re
import tempfile
from pathlib import Path

from tabwarden.errors import ConfigurationError, DescriptorError

from tabwarden_adapters.credentials.programs import find_program, run_program
from tabwarden_adapters.credentials.wrapping import seal_wrapped, unseal_wrapped

DEVICE = (
    "/dev/tpmrm0"  # with the kernel's resource manager: what one program loads does not fill it for others
)
_TOOLS = ("tpm2_createprimary", "tpm2_create", "tpm2_load", "tpm2_unseal", "tpm2_flushcontext")
_SIMULATOR = re.compile(r"(swtpm|mssim):[A-Za-z0-9_.,:=/-]+")
_PUBLIC_MAX = 1024  # a sealed object's public part is some 50 bytes


class Tpm2Protector:
    """Implements `tabwarden.ports.CredentialProtector`.

    `simulator` is for tests: a tpm2-tools address such as `swtpm:path=/run/test/socket`. Raises
    `ConfigurationError` when made where there is no TPM that we may use, or no tpm2-tools.
    """

    format = "tpm2-sealed-v1"

    def __init__(self, *, simulator: str | None = None) -> None:
        if simulator is not None and not _SIMULATOR.fullmatch(simulator):
            raise ConfigurationError("simulator must be like swtpm:path=/run/test/socket")
        self._simulator = simulator
        missing = [tool for tool in _TOOLS if find_program(tool) is None]
        if missing:
            raise ConfigurationError(f"{missing[0]} is not installed: install tpm2-tools")
        if simulator is None and not os.path.exists(DEVICE):
            raise ConfigurationError(f"there is no {DEVICE}: this machine has no TPM 2.0, or it is off")
        if simulator is None and not os.access(DEVICE, os.R_OK | os.W_OK):
            raise ConfigurationError(f"{DEVICE} may not be used: add your user to the group tss")

    def protect(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal `plaintext`. Some tenths of a second. Raises `DescriptorError`."""
        return seal_wrapped(self._wrap, plaintext, self.format, context)

    def unprotect(self, sealed: bytes, context: bytes) -> bytes:
        """Open it again. Raises `DescriptorError` when it was changed or this is another TPM."""
        return unseal_wrapped(self._unwrap, sealed, self.format, context)

    def _wrap(self, key: bytes) -> bytes:
        with tempfile.TemporaryDirectory(prefix="tabwarden-tpm-") as folder:
            primary = self._primary(folder)
            public, private = f"{folder}/public", f"{folder}/private"
            # The key goes in through stdin; what lands in the files is what the TPM made of it.
            self._tool("tpm2_create", "-C", primary, "-i", "-", "-u", public, "-r", private, given=key)
            return _joined(Path(public).read_bytes(), Path(private).read_bytes())

    def _unwrap(self, wrapped: bytes) -> bytes:
        public, private = _parted(wrapped)
        with tempfile.TemporaryDirectory(prefix="tabwarden-tpm-") as folder:
            Path(folder, "public").write_bytes(public)
            Path(folder, "private").write_bytes(private)
            primary, loaded = self._primary(folder), f"{folder}/loaded"
            parts = ("-u", f"{folder}/public", "-r", f"{folder}/private")
            try:
                self._tool("tpm2_load", "-C", primary, *parts, "-c", loaded)
                return self._tool("tpm2_unseal", "-c", loaded)
            except DescriptorError as error:
                raise DescriptorError(
                    f"this TPM does not open it (changed, cleared, or another TPM's): pair again ({error})"
                ) from None

    def _primary(self, folder: str) -> str:
        """The same key each time: the TPM derives it from the owner seed and this template."""
        context = f"{folder}/primary"
        self._tool("tpm2_createprimary", "-C", "o", "-g", "sha256", "-G", "ecc", "-c", context)
        return context

    def _tool(self, name: str, *arguments: str, given: bytes = b"") -> bytes:
        output = self._run(name, *arguments, given=given)
        if self._simulator is not None:
            # It has no resource manager: what a program loaded stays, and three objects fill it.
            self._run("tpm2_flushcontext", "-t")
        return output

    def _run(self, name: str, *arguments: str, given: bytes = b"") -> bytes:
        program = find_program(name)
        if program is None:
            raise DescriptorError(f"{name} is not installed: install tpm2-tools")
        quiet = () if name == "tpm2_unseal" else ("-Q",)  # it would keep the key to itself
        command = [program, *quiet, "-T", self._simulator or f"device:{DEVICE}", *arguments]
        return run_program(command, given, variables={"TSS2_LOG": "all+NONE"})


def _joined(public: bytes, private: bytes) -> bytes:
    if len(public) > _PUBLIC_MAX:
        raise DescriptorError("the TPM made an object of a size that is not known")
    return len(public).to_bytes(2, "big") + public + private


def _parted(wrapped: bytes) -> tuple[bytes, bytes]:
    length = int.from_bytes(wrapped[:2], "big")
    if not 0 < length <= _PUBLIC_MAX or len(wrapped) <= 2 + length:
        raise DescriptorError("the descriptor was changed, or sealed under another key: pair again")
    return wrapped[2 : 2 + length], wrapped[2 + length :]
