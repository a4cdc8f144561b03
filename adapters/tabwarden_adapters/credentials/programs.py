"""Runs a small program of the system for a protector: bounded, with nothing secret in sight.

Secrets go through pipes. Arguments and environment are seen by other programs, so neither ever holds one,
and the program gets none of our environment. It is looked for in the system's folders, never in PATH.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence

from tabwarden.errors import DescriptorError

FOLDERS = "/usr/bin:/usr/sbin:/bin:/sbin:/usr/local/bin:/run/current-system/sw/bin"
LIMIT_S = 30  # a TPM that makes a primary key may take some seconds


def find_program(name: str) -> str | None:
    """Its path in the system's folders, or None."""
    return shutil.which(name, path=FOLDERS)


def run_program(
    command: Sequence[str],
    given: bytes = b"",
    *,
    variables: Mapping[str, str] | None = None,
    limit_s: float = LIMIT_S,
) -> bytes:
    """What it writes to stdout when given `given`. `command` and `variables` must hold no secret.

    Raises `DescriptorError` with a line of its stderr when it fails, or when `limit_s` passed (it is
    killed then).
    """
    name = command[0].rpartition("/")[2]
    environment = {"PATH": FOLDERS, "LC_ALL": "C.UTF-8", **(variables or {})}
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program of the system with fixed arguments
            list(command), input=given, capture_output=True, timeout=limit_s, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        # The exception holds what the program wrote so far: it must go nowhere.
        raise DescriptorError(f"{name} did not end within {limit_s:g} s") from None
    except OSError as error:
        raise DescriptorError(f"{name} cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        raise DescriptorError(f"{name} failed: {_complaint(done.stderr) or f'status {done.returncode}'}")
    return done.stdout


def _complaint(text: bytes) -> str:
    """The first line that says ERROR (tpm2-tools go on to say less), else the last one."""
    lines = [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    chosen = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "")
    return "".join(character for character in chosen if character.isprintable())[:200]
