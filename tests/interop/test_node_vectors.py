"""An implementation in another language, written from the description, finds every frozen value again."""

import json
import subprocess

from tests.interop.node import HERE
from tests.vectors.generate import FILE


def test_every_vector(node: str) -> None:
    done = subprocess.run(
        [node, str(HERE / "check-vectors.mjs"), str(FILE)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    vectors = json.loads(FILE.read_text())
    assert result["checked"] > len(vectors["failures"]) + 40 * len(vectors["exchanges"])
