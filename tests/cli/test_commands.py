"""Each command as a user runs it, with one deliberate mistake each."""

import json
import subprocess
import sys
from pathlib import Path

from tabwarden import ACTIONS

from tests.cli.running import LIMIT_S, here, tabwarden


def test_help_names_every_command(tmp_path: Path) -> None:
    done = tabwarden(tmp_path, "--help")
    assert done.status == 0
    for command in (
        "serve",
        "call",
        "sessions",
        "actions",
        "policy",
        "grants",
        "approvals",
        "audit",
        "ai",
        "trace",
        "load",
        "host",
        "doctor",
        "demo",
    ):
        assert command in done.out


def test_actions_is_the_action_table(tmp_path: Path) -> None:
    done = tabwarden(tmp_path, "actions", "--json")
    rows = {row["name"]: row for row in done.result}
    assert list(rows) == list(ACTIONS)
    assert len(rows) == 24
    assert {"name", "policy_scope", "internal_scope", "arguments", "result"} <= set(rows["read"])
    assert rows["navigate"]["internal_scope"] == "browser:navigate"


def test_a_call_without_a_broker_says_what_to_do(tmp_path: Path) -> None:
    done = tabwarden(tmp_path, "call", "sessions")
    assert done.status == 1
    assert done.out == ""
    assert done.failure["code"] == "descriptor"
    assert "start the broker" in done.failure["message"]


def test_a_mistake_in_each_command_is_one_typed_line(tmp_path: Path) -> None:
    (tmp_path / "plain.json").write_text(json.dumps({"address": "127.0.0.1:1", "token": "secret-marker"}))
    (tmp_path / "plain.json").chmod(0o600)
    mistakes = {
        ("call",): "configuration",
        ("call", "fly"): "unknown-action",
        ("call", "navigate"): "configuration",
        ("call", "read", "--request", "x"): "configuration",
        ("call", "--request", str(tmp_path / "absent")): "configuration",
        ("call", "sessions", "--connection", str(tmp_path / "plain.json")): "descriptor",
        ("sessions", "--connection", str(tmp_path / "absent")): "descriptor",
        ("serve", "--scope", "fly"): "configuration",
        ("serve", "--allow-host", "https://example.org/"): "configuration",
        ("serve", "--config", str(tmp_path / "absent.toml")): "configuration",
        ("serve", "--provider", "homemade"): "configuration",
        ("doctor", "--config", str(tmp_path / "absent.toml")): "configuration",
    }
    for arguments, code in mistakes.items():
        # Those that get as far as closing the process to others need one of their own.
        run = here if code == "configuration" and arguments[0] in ("call", "doctor") else tabwarden
        done = run(tmp_path, *arguments)
        assert (done.status, done.failure["code"]) == (1, code), (arguments, done.err)
        assert done.out == ""
        assert "secret-marker" not in done.err


def test_an_unknown_flag_is_refused(tmp_path: Path) -> None:
    for command in ("serve", "call", "sessions", "actions", "doctor", "demo"):
        done = here(tmp_path, command, "--bogus")
        assert done.status != 0
        assert "bogus" in done.out + done.err


def test_the_oqs_provider_is_refused_where_there_is_no_library(tmp_path: Path) -> None:
    done = tabwarden(tmp_path, "serve", "--provider", "oqs")
    assert done.status == 1
    assert done.failure["code"] == "configuration"
    assert "liboqs" in done.failure["message"]


def test_doctor_finds_what_is_there_and_what_is_wrong(tmp_path: Path) -> None:
    done = tabwarden(tmp_path, "doctor", "--json")
    found = {finding["check"]: finding for finding in done.result}
    assert done.status == 0, done.out
    assert found["chromium"]["ok"] is True
    assert found["cryptography"]["ok"] is True
    assert found["connection"]["ok"] is None
    open_folder = tmp_path / "open"
    open_folder.mkdir(mode=0o755)
    done = tabwarden(tmp_path, "doctor", "--json", "--audit", str(open_folder))
    found = {finding["check"]: finding for finding in done.result}
    assert done.status == 1
    assert found["audit folder"]["ok"] is False
    assert "chmod 700" in found["audit folder"]["detail"]


def test_no_command_loads_what_only_another_one_needs() -> None:
    heavy = {"PIL", "hypercorn", "kingfisher", "opentelemetry", "httpcore", "quart", "re2"}
    program = f"import sys, tabwarden_adapters.cli.app; sys.exit(str({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.stderr.strip() == "set()"
