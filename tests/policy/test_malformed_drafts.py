"""Drafts and settings that people wrote: each mistake has one message, and nothing is signed or begun."""

from pathlib import Path

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.cli import policy_work
from tabwarden_adapters.cli.settings import load_settings
from tabwarden_adapters.policy import create_private_file, load_draft, starter
from tabwarden_adapters.policy.keys import new_private_keys

from tests.policy.signed_support import NOW, signed
from tests.support.places import PUBLIC, Place

public_places = pytest.mark.parametrize(("make", "message"), PUBLIC.items())
FIVE = signed()

# ---- drafts ---------------------------------------------------------------------------------------

GOOD = starter(NOW, "draft.toml").encode()
DRAFTS: list[tuple[str, bytes, str]] = [
    ("empty", b"", "version: is missing and must be given"),
    ("truncated", GOOD[: GOOD.index(b"[agents]") + 4], "is not TOML"),
    ("not UTF-8", b"\xff" + GOOD, "is not TOML"),
    ("UTF-16", GOOD.decode().encode("utf-16"), "is not TOML"),
    ("BOM", b"\xef\xbb\xbf" + GOOD, "is not TOML"),
    ("zeros", bytes(100), "is not TOML"),
    ("key twice", b"version = 1\n" + GOOD, "is not TOML: Cannot overwrite a value"),
    ("part twice", GOOD + b"\n[agents]\n", "is not TOML: Cannot declare ('agents',) twice"),
    ("NaN", b"more = nan\n" + GOOD, "more: there is no such field"),
    ("huge number", b"more = %s\n" % (b"9" * 5000) + GOOD, "a number in it is too long"),
    ("deep", b"more = " + b"[" * 100_000 + b"\n" + GOOD, "it is nested too deep"),
    ("JSON", b'{"version": 1}', "is not TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "message"), [pytest.param(*rest, id=name) for name, *rest in DRAFTS])
def test_a_draft_with_other_contents(tmp_path: Path, data: bytes, message: str) -> None:
    path, out, keys = tmp_path / "draft.toml", tmp_path / "policy.json", tmp_path / "keys"
    create_private_file(keys / policy_work.PRIVATE_NAME, new_private_keys(None)[0])
    path.write_bytes(data)
    out.write_bytes(FIVE)
    before = out.read_bytes()
    with pytest.raises(ConfigurationError) as caught:
        policy_work.sign(path, keys / policy_work.PRIVATE_NAME, out, None)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("version = nan", "version: expected int, got float"),
        ("version = inf", "version: expected int, got float"),
        ("version = 9007199254740993", "version: expected int <= 9007199254740992"),
        ("version = 99999999999999999999999999", "version: "),
        ("version = 2027-01-01", "version: write a date, a time and a zone"),
        ("issued = 2027-01-01", "issued: write a date, a time and a zone"),
        ("issued = 12:00:00", "issued: write a date, a time and a zone"),
        ("agents = 1", "agents: expected object, got int"),
        ("agents.scopes = 'read'", "agents.scopes: expected array, got str"),
        ("grants = {}", "grants: expected array, got object"),
        ("grants = [1]", "grants[0]: expected object, got int"),
    ],
)
def test_a_draft_with_another_type(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "draft.toml"
    needed = {"version": "1", "issued": "2027-01-01T00:00:00Z", "expires": "2027-02-01T00:00:00Z"}
    needed.pop(line.partition(" ")[0], None)
    path.write_text("\n".join([*(f"{name} = {value}" for name, value in needed.items()), line]))
    with pytest.raises(ConfigurationError) as caught:
        load_draft(path)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
@public_places
def test_a_draft_that_is_no_file(tmp_path: Path, make: Place, message: str, suffix: str) -> None:
    path = tmp_path / f"draft{suffix}"
    make(path)
    with pytest.raises(ConfigurationError) as caught:
        load_draft(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


# ---- the static policy ----------------------------------------------------------------------------

SETTINGS = b'scopes = ["read"]\nallowed_hosts = ["good.test"]\n'
STATIC: list[tuple[str, bytes, str]] = [
    ("truncated", SETTINGS[:14], "is not TOML"),
    ("not UTF-8", SETTINGS + b"# \xff", "is not TOML"),
    ("BOM", b"\xef\xbb\xbf" + SETTINGS, "is not TOML"),
    ("key twice", SETTINGS + SETTINGS, "is not TOML: Cannot overwrite a value"),
    ("huge number", SETTINGS + b"timeout_s = " + b"9" * 5000, "is not TOML that can be read"),
    ("deep", SETTINGS + b"ask = " + b"[" * 60_000, "is not TOML that can be read"),
    ("too large", SETTINGS + b"#" * 70_000, "is larger than 64 KiB"),
    ("NaN", SETTINGS + b"timeout_s = nan", "timeout_s"),
    ("more", SETTINGS + b"scope = 1", "unknown field `scope`"),
    ("another type", b"scopes = 1", "$.scopes"),
]


@pytest.mark.parametrize(("data", "message"), [pytest.param(*rest, id=name) for name, *rest in STATIC])
def test_a_settings_file_with_other_contents(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "tabwarden.toml"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


@public_places
def test_a_settings_file_that_is_no_file(tmp_path: Path, make: Place, message: str) -> None:
    path = tmp_path / "tabwarden.toml"
    make(path)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(path)
    assert message in str(caught.value)
