"""`tabwarden policy`, as a user runs it: from nothing to a device that takes it, with a mistake at each."""

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.cli.app import app
from tabwarden_adapters.policy import load_cases, read_envelope

from tests.cli.running import environment


@dataclass
class Done:
    """What a command left behind."""

    status: object
    out: str
    err: str

    @property
    def result(self) -> Any:
        return json.loads(self.out)

    @property
    def failure(self) -> dict[str, Any]:
        (line,) = self.err.splitlines()
        error: dict[str, Any] = json.loads(line)["error"]
        return error


class Desk:
    """A home and a folder in it."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._capsys = capsys
        self._patch = patch
        patch.setenv("HOME", str(home))
        self.draft = home / "draft.toml"
        self.keys = home / "keys"
        self.private = self.keys / "policy-private.json"
        self.public = self.keys / "policy-public.json"
        self.signed = home / "policy.json"

    def run(self, *arguments: object, text: str = "") -> "Done":
        """The whole command in this process: starting one takes longer than all that it does."""
        self._patch.setattr("sys.stdin", io.StringIO(text))
        with pytest.raises(SystemExit) as ended:
            app(["policy", *map(str, arguments)])
        out, err = self._capsys.readouterr()
        return Done(ended.value.code, out, err)

    def ok(self, *arguments: object, text: str = "") -> Any:
        done = self.run(*arguments, text=text)
        assert done.status == 0, done.err
        assert done.err == ""
        return done.result

    def fails(self, says: str, *arguments: object, text: str = "") -> None:
        done = self.run(*arguments, text=text)
        assert done.status == 1
        assert done.out == ""
        assert done.failure["code"] == "configuration"
        assert says in done.failure["message"]

    def edit(self, old: str, new: str) -> None:
        text = self.draft.read_text()
        assert old in text
        self.draft.write_text(text.replace(old, new))

    def sign(self) -> Any:
        return self.ok("sign", self.draft, "--keys", self.private, "--out", self.signed)


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk(tmp_path, capsys, monkeypatch)
    desk.ok("init", desk.draft)
    desk.ok("keygen", desk.keys)
    return desk


def test_a_first_real_use(desk: Desk) -> None:
    assert desk.ok("verify", desk.draft)["signed"] is False
    key_id = desk.sign()["key_id"]
    assert desk.ok("verify", desk.signed, "--keys", desk.public)["key_id"] == key_id
    assert desk.ok("enrol", desk.public)["enrolled"] == key_id
    assert desk.ok("verify", desk.signed, "--device")["device"] == "takes it"
    answer = desk.ok("explain", desk.signed, "first-agent", "read", "example.org", "--keys", desk.public)
    assert (answer["allowed"], answer["rule"], answer["signatures"]) == (
        True,
        "grant:first-agent",
        "verified",
    )


def test_init_permits_little_and_never_writes_over_a_file(desk: Desk) -> None:
    before = desk.draft.read_text()
    desk.fails("is there already", "init", desk.draft)
    desk.fails("name it something.toml", "init", desk.home / "draft.json")
    assert desk.draft.read_text() == before
    assert desk.ok("explain", desk.draft, "first-agent", "navigate")["rule"] == "grant:first-agent.scopes"
    assert desk.ok("explain", desk.draft, "first-agent", "tabs:create")["rule"] == "agents.scopes"


def test_keygen_keeps_the_private_keys_to_this_user_and_shows_none(desk: Desk) -> None:
    assert desk.private.stat().st_mode & 0o777 == 0o600
    assert desk.keys.stat().st_mode & 0o777 == 0o700
    seeds = json.loads(desk.private.read_text())["seeds"]
    again = desk.run("keygen", desk.keys)
    assert "is there already: choose another folder" in again.failure["message"]
    assert seeds not in again.out + again.err
    assert json.loads(desk.private.read_text())["seeds"] == seeds
    (desk.home / "open").mkdir(mode=0o755)
    desk.fails("is open to other users: chmod 700 it", "keygen", desk.home / "open")
    assert not list((desk.home / "open").iterdir())


def test_keygen_under_a_passphrase(desk: Desk) -> None:
    sealed = desk.home / "sealed"
    made = desk.ok("keygen", sealed, "--passphrase", text="correct horse battery\n")
    assert made["protection"] == "passphrase"
    arguments = ("sign", desk.draft, "--keys", sealed / "policy-private.json", "--out", desk.signed)
    desk.fails("seeds: the passphrase is wrong", *arguments, text="wrong horse battery\n")
    assert not desk.signed.exists()
    assert desk.ok(*arguments, text="correct horse battery\n")["key_id"] == made["key_id"]
    desk.fails("less than 12 characters", "keygen", desk.home / "more", "--passphrase", text="short\n")
    assert not (desk.home / "more" / "policy-private.json").exists()


def test_sign_refuses_what_no_device_would_take(desk: Desk) -> None:
    desk.sign()
    before = desk.signed.read_bytes()
    desk.edit('allow = ["example.org"]', 'allow = ["example.net"]')
    desk.fails(
        "version: 1 is not higher than 1",
        *("sign", desk.draft, "--keys", desk.private, "--out", desk.signed),
    )
    desk.edit("version = 1", "version = 2")
    desk.edit('scopes = ["sessions", "read"]', 'scopes = ["sessions", "raed"]')
    desk.fails(
        "grants[0].scopes[1]: there is no scope 'raed'; did you mean 'read'?",
        *("sign", desk.draft, "--keys", desk.private, "--out", desk.signed),
    )
    assert desk.signed.read_bytes() == before
    desk.fails("is signed already", "sign", desk.signed, "--keys", desk.private, "--out", desk.public)
    desk.edit('"raed"', '"read"')
    desk.fails("no private keys", "sign", desk.draft, "--keys", desk.home / "none", "--out", desk.home / "x")
    desk.fails("is no signed policy", "sign", desk.draft, "--keys", desk.private, "--out", desk.public)
    desk.private.chmod(0o644)
    desk.fails("is open to other users", "sign", desk.draft, "--keys", desk.private, "--out", desk.signed)


def test_sign_takes_json_byte_for_byte_and_refuses_an_expired_policy(desk: Desk) -> None:
    document = {
        "format": "tabwarden-policy/1",
        "version": 3,
        "issued": "2020-01-01T00:00:00Z",
        "expires": "2020-02-01T00:00:00Z",
    }
    draft = desk.home / "draft.json"
    draft.write_text(json.dumps(document))
    desk.fails(
        "expires: 2020-02-01T00:00:00Z is past",
        *("sign", draft, "--keys", desk.private, "--out", desk.signed),
    )
    draft.write_text(json.dumps({**document, "expires": "2999-02-01T00:00:00Z"}, indent=7))
    desk.ok("sign", draft, "--keys", desk.private, "--out", desk.signed)
    assert read_envelope(desk.signed.read_bytes()).document == draft.read_bytes()
    desk.fails(
        "a JSON draft is signed as it is",
        *("sign", draft, "--keys", desk.private, "--out", desk.signed, "--next-keys", desk.public),
    )


def test_verify_says_which_signature_does_not_fit(desk: Desk) -> None:
    desk.sign()
    desk.fails("give the public keys", "verify", desk.signed)
    desk.fails("only a signed policy can be verified", "verify", desk.draft, "--keys", desk.public)
    desk.fails("not enrolled", "verify", desk.signed, "--device")
    members = json.loads(desk.signed.read_text())
    members["mlDsa87"] = members["mlDsa87"][:-2] + ("AA" if members["mlDsa87"][-2:] != "AA" else "BA")
    desk.signed.write_text(json.dumps(members))
    desk.fails("mlDsa87: the signature does not fit", "verify", desk.signed, "--keys", desk.public)
    desk.fails("policy-private.json: format", "verify", desk.signed, "--keys", desk.private)


def test_a_rotation_by_the_command(desk: Desk) -> None:
    desk.ok("enrol", desk.public)
    desk.ok("keygen", desk.home / "next")
    following = desk.home / "next"
    desk.ok("sign", desk.draft, "--keys", desk.private, "--out", desk.signed,
            "--next-keys", following / "policy-public.json")  # fmt: skip
    assert desk.ok("verify", desk.signed, "--device")["device"] == "takes it"
    desk.fails("enrolled already", "enrol", following / "policy-public.json")


def test_a_state_is_not_sealed_by_a_key_that_a_restart_would_take(desk: Desk) -> None:
    for name in ("kernel-keyring", "auto", "passphrase"):
        desk.fails("would lose the state", "enrol", desk.public, "--protector", name)
    desk.fails("protector must be one of", "enrol", desk.public, "--protector", "prayer")
    assert not (desk.home / ".local").exists()


def test_explain_names_all_rules_that_deny(desk: Desk) -> None:
    answer = desk.ok("explain", desk.draft, "first-agent", "navigate", "example.net:8080")
    assert not answer["allowed"]
    assert answer["code"] == "policy-denied"
    assert [one["rule"] for one in answer["objections"]] == ["grant:first-agent.scopes", "destinations.allow"]
    assert answer["objections"][1]["reason"] == "destinations does not list this host"
    assert desk.ok("explain", desk.draft, "nobody", "read")["rule"] == "grants.unknown"
    assert desk.ok("explain", desk.draft, "legacy", "read")["rule"] == "agents.identityMode.individual"
    late = desk.ok("explain", desk.draft, "first-agent", "read", "--at", "2999-01-01T00:00:00Z")
    assert late["rule"] == "policy.expired"
    desk.fails("no action 'raed'; did you mean 'read'?", "explain", desk.draft, "first-agent", "raed")
    desk.fails("--at: 'soon' is not a time", "explain", desk.draft, "first-agent", "read", "--at", "soon")


def test_diff_shows_rights_and_not_text(desk: Desk) -> None:
    desk.sign()
    desk.edit("# A policy for tabwarden.", "# Another comment.")
    assert desk.ok("diff", desk.signed, desk.draft) == []
    desk.edit('allow = ["example.org"]', 'allow = ["*.example.org"]')
    assert desk.ok("diff", desk.signed, desk.draft) == [
        {"grant": "first-agent", "change": "lost", "right": "page example.org"},
        {"grant": "first-agent", "change": "gained", "right": "page *.example.org"},
    ]
    desk.edit('identityMode = "individual"', 'identityMode = "personal"')
    desk.fails("agents.identityMode: invalid enum value 'personal'", "diff", desk.signed, desk.draft)


CASES = """
[[cases]]
grant = "first-agent"
action = "read"
host = "example.org"
expect = "allow"

[[cases]]
grant = "first-agent"
action = "navigate"
host = "example.org"
expect = "deny"
rule = "grant:first-agent.scopes"

[[cases]]
grant = "first-agent"
action = "read"
at = 2999-01-01T00:00:00Z
expect = "deny"
"""


def test_try_exits_1_with_the_rows_that_differ(desk: Desk) -> None:
    cases = desk.home / "cases.toml"
    cases.write_text(CASES)
    assert desk.ok("try", desk.draft, cases) == {"cases": 3, "differing": []}
    desk.edit('allow = ["example.org"]', 'allow = ["example.net"]')
    done = desk.run("try", desk.draft, cases)
    assert done.status == 1
    (row,) = done.result["differing"]
    assert row["case"] == 0
    assert (row["expected"], row["decided"], row["rule"]) == ("allow", "deny", "destinations.allow")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cases: is missing and must be given"),
        ("cases = []", "cases: expected array of length >= 1"),
        (
            CASES.replace('"read"', '"raed"'),
            "cases[0].action: there is no action 'raed'; did you mean",
        ),
        (CASES.replace('"allow"', '"yes"'), "cases[0].expect: invalid enum value 'yes'"),
        (CASES.replace("2999-01-01T00:00:00Z", "2999-01-01"), "cases[2].at: write a date, a time and a zone"),
        (
            CASES.replace("expect", "expects"),
            "cases[0].expects: there is no such field; did you mean",
        ),
        ("cases = [", "is not TOML"),
    ],
)
def test_a_malformed_file_of_cases(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "cases.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_cases(file)
    assert says in str(caught.value)


def test_the_schema_is_printed(desk: Desk) -> None:
    assert desk.ok("schema")["title"] == "tabwarden-policy/1"


def test_a_person_at_a_terminal_gets_words(desk: Desk) -> None:
    said = at_a_terminal(desk, "explain", str(desk.draft), "first-agent", "navigate", "example.net")
    assert "denied" in said
    assert "destinations.allow: destinations does not list this host" in said
    assert "{" not in said


def at_a_terminal(desk: Desk, *arguments: str) -> str:
    """What the command prints when both ends are a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tabwarden_adapters.cli", "policy", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment(desk.home), "TERM": "dumb", "COLUMNS": "200"},
    )
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # EIO: the other end has closed
        while piece := os.read(ours, 4096):
            said += piece
    process.wait(60)
    os.close(ours)
    return said.decode()
