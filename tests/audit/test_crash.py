"""A broker that is killed loses nothing that it has acknowledged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seed", [1])
def test_killed_twelve_times(tmp_path: Path, seed: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.audit.crash_rounds", str(tmp_path / "log"), "12", str(seed)],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
