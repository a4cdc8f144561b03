"""Removes one check at a time and sees whether a test fails: `python -m tests.mutants [ids]`.

Works on copies in a temporary folder. Prints killed or survived for each; exits with 1 when one survived.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

REPOSITORY = Path(__file__).resolve().parents[2]
MUTANTS = Path(__file__).with_name("mutants.json")
# Those with most to say about a file run first, by themselves: nearly every mutant ends there.
TESTS = ("tests/attacks", "tests/service", "tests/protocol", "tests/authority")
FIRST = {
    "pipeline.py": (
        "tests/attacks/test_challenge_request.py",
        "tests/attacks/test_agent_request.py",
        "tests/service/test_pool_wait.py",
        "tests/attacks/test_floods.py",
    ),
    "codec.py": ("tests/attacks/test_challenge_request.py", "tests/attacks/test_sealed_json.py"),
    "proof.py": ("tests/attacks/test_challenge_request.py", "tests/attacks/test_agent_request.py"),
    "seal.py": (
        "tests/attacks/test_agent_request.py",
        "tests/attacks/test_challenge_reply.py",
        "tests/protocol",
    ),
    "asgi_app.py": (
        "tests/attacks/test_hang_up.py",
        "tests/attacks/test_other_user.py",
        "tests/service/test_asgi.py",
    ),
    "approvals": ("tests/approvals", "tests/authority/test_approvals.py"),
    "tabwarden/model.py": ("tests/service/test_still_holds.py",),
    "policy/signed.py": ("tests/policy/test_ask.py",),
    "protocol": ("tests/attacks/test_challenge_forged.py", "tests/attacks/test_agent_request.py"),
    "authority": ("tests/attacks/test_floods.py", "tests/attacks/test_agent_request.py"),
    "client.py": (
        "tests/attacks/test_challenge_forged.py",
        "tests/attacks/test_sealed_reply.py",
        "tests/service/test_client.py",
    ),
    "connection.py": ("tests/attacks/test_challenge_forged.py", "tests/attacks/test_sealed_reply.py"),
    "control.py": ("tests/service",),
    "starting.py": ("tests/service",),
    "dispatch.py": ("tests/service", "tests/attacks/test_adapters.py", "tests/attacks/test_audit_down.py"),
    "call.py": ("tests/service", "tests/attacks/test_adapters.py", "tests/attacks/test_audit_down.py"),
    "http_gate.py": ("tests/attacks/test_http.py",),
    "http_request.py": ("tests/attacks/test_http.py",),
    "endpoint.py": (
        "tests/attacks/test_http_slow.py",
        "tests/attacks/test_hang_up.py",
        "tests/attacks/test_other_user.py",
        "tests/attacks/test_floods.py",
        "tests/service",
    ),
}
SECONDS = 300


class Mutant(TypedDict):
    id: str
    file: str
    original: str
    replacement: str
    removes: str


def verdict(mutant: Mutant) -> str:
    """`killed by TEST`, `survived`, or why it could not be tried."""
    text = (REPOSITORY / mutant["file"]).read_text()
    if text.count(mutant["original"]) != 1:
        return "stale: its original text is not there once"
    with tempfile.TemporaryDirectory(prefix="tabwarden-mutant-") as folder:
        copy = Path(folder) / "project"
        for name in ("broker", "adapters", "observability", "tests", "pyproject.toml", "README.md", "docs"):
            source = REPOSITORY / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                copy.mkdir(exist_ok=True)
                shutil.copy(source, copy / name)
        (copy / mutant["file"]).write_text(text.replace(mutant["original"], mutant["replacement"]))
        return _run(copy, mutant["file"])


def _run(copy: Path, file: str) -> str:
    first = next((tests for part, tests in FIRST.items() if part in file), ())
    said = "survived"
    for paths in (first, TESTS):
        there = [path for path in paths if (copy / path).exists()]
        if there and (said := _pytest(copy, there)) != "survived":
            break
    return said


def _pytest(copy: Path, paths: list[str]) -> str:
    folders = ("broker", "adapters", "observability")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(str(copy / name) for name in folders))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout=60", *paths]
    with subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as running:
        try:
            output, _ = running.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            running.kill()
            return "killed by a time-out"
    if running.returncode == 0:
        return "survived"
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    named = failed[0].split(" - ")[0].split(" ", 1)[1] if failed else output.strip().splitlines()[-1]
    return f"killed by {named}"


def main() -> int:
    """Runs the mutants that are named, or all."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    mutants: list[Mutant] = json.loads(MUTANTS.read_text())
    chosen = [mutant for mutant in mutants if not given.ids or mutant["id"] in given.ids]
    survivors = 0
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        running = {pool.submit(verdict, mutant): mutant["id"] for mutant in chosen}
        for future in concurrent.futures.as_completed(running):
            said = future.result()
            survivors += not said.startswith("killed")
            sys.stdout.write(f"{running[future]:24} {said}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survivors} of {len(chosen)} killed\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
