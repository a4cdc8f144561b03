"""Flags and files become typed arguments, or one clear error."""

from pathlib import Path

import pytest
from tabwarden.errors import ActionError, ConfigurationError
from tabwarden_adapters.cli.call import parse_args, read_request
from tabwarden_adapters.cli.settings import ServeSettings, load_settings

SESSION = "12345678-1234-4234-8234-123456789abc"


def test_values_take_the_types_of_the_action_table() -> None:
    assert parse_args("scroll", ["x=10", "y=-20"]) == {"x": 10, "y": -20}
    assert parse_args("check", ["selector=#a", "checked=true"]) == {"selector": "#a", "checked": True}
    assert parse_args("type", ["selector=#a", "text=a=b"]) == {"selector": "#a", "text": "a=b"}
    assert parse_args("settings:update", ['appearance={"mode":"dark"}']) == {"appearance": {"mode": "dark"}}
    assert parse_args("read", [f"sessionId={SESSION}"]) == {"sessionId": SESSION, "offset": 0}


def test_text_that_starts_with_a_brace_stays_text() -> None:
    assert parse_args("type", ["selector=#a", "text={not json"])["text"] == "{not json"


@pytest.mark.parametrize(
    ("action", "pairs", "error", "says"),
    [
        ("fly", [], ActionError, "unknown-action"),
        ("read", ["sessionId"], ConfigurationError, "name=value"),
        ("read", ["=x"], ConfigurationError, "name=value"),
        ("read", ["offset=1", "offset=2"], ConfigurationError, "given twice"),
        ("read", ["sessionId=not-a-uuid"], ConfigurationError, "sessionId"),
        ("scroll", ["x=far"], ConfigurationError, "x"),
        ("navigate", [], ConfigurationError, "url"),
        ("sessions", ["verbose=1"], ConfigurationError, "verbose"),
    ],
)
def test_a_wrong_argument_is_named(action: str, pairs: list[str], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        parse_args(action, pairs)


def test_a_request_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text('{"action": "navigate", "args": {"url": "https://example.org/"}}')
    assert read_request(file) == ("navigate", {"url": "https://example.org/"})
    file.write_text('{"action": "sessions"}')
    assert read_request(file) == ("sessions", {})


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"", ConfigurationError, "strict JSON"),
        (b"[]", ConfigurationError, "object"),
        (b'{"action":"read","action":"click","args":{}}', ConfigurationError, "duplicate"),
        (b'{"action":"read","args":{},"more":1}', ConfigurationError, "more"),
        (b'{"action":1}', ConfigurationError, "action"),
        (b'{"action":"fly","args":{}}', ActionError, "unknown-action"),
        (b'{"action":"read","args":{"selector":"a"}}', ActionError, "invalid-arguments"),
        (b'{"action":"read","args":{}}' + b" " * 32768, ConfigurationError, "32 KiB"),
    ],
)
def test_a_wrong_request_file_is_refused(
    tmp_path: Path, content: bytes, error: type[Exception], says: str
) -> None:
    file = tmp_path / "request.json"
    file.write_bytes(content)
    with pytest.raises(error, match=says):
        read_request(file)


def test_a_request_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read"):
        read_request(tmp_path / "absent.json")
    with pytest.raises(ConfigurationError):
        read_request(tmp_path)


def test_settings_are_read_relative_to_their_file(tmp_path: Path) -> None:
    file = tmp_path / "tabwarden.toml"
    file.write_text('scopes = ["read"]\nallowed_hosts = ["example.org"]\naudit = "log"\nheadless = true\n')
    settings = load_settings(file)
    assert settings.scopes == ("read",)
    assert settings.headless
    assert settings.audit_path == tmp_path / "log"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('scopes = "read"', "scopes"),
        ("scope = []", "scope"),
        ("timeout_s = 0", "timeout_s"),
        ("requests_per_minute = 1.5", "requests_per_minute"),
        ("= 1", "not TOML"),
        ("# " + "x" * 70_000, "larger"),
    ],
)
def test_wrong_settings_name_the_field(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "tabwarden.toml"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=says):
        load_settings(file)


def test_settings_allow_nothing_by_default() -> None:
    assert ServeSettings().scopes == ()
    assert ServeSettings().allowed_hosts == ()
