"""Running the JavaScript of this folder: Node's packages are installed once, from the lock file."""

import fcntl
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOCK = HERE / "package-lock.json"
PACKAGES = HERE / "node_modules"
STAMP = PACKAGES / ".installed"
OLDEST = (20, 19)
_NEEDED = "the interop tests need Node >= 20.19 and npm, as README.md says: "


class NodeMissing(Exception):
    """Says what to install."""


def find_node() -> str:
    """The path of a Node that is new enough, beside which npm is there too."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NodeMissing(_NEEDED + f"{'node' if node is None else 'npm'} is not on the PATH")
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    version = re.match(r"v(\d+)\.(\d+)\.", said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise NodeMissing(_NEEDED + f"found {said.strip()}")
    return node


def install() -> None:
    """`npm ci`, unless what is there came from this very lock file. One process at a time does it."""
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    with LOCK.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if STAMP.is_file() and STAMP.read_text() == wanted:
            return
        done = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        if done.returncode:
            raise NodeMissing(f"npm ci in {HERE.name} failed:\n{done.stderr}")
        STAMP.write_text(wanted)
