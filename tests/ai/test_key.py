"""The key at rest, and the commands that put it there."""

import io
import json
import os
import pty
import stat
import subprocess
import sys

import pytest
from tabwarden.errors import ActionError, Code, ConfigurationError, DescriptorError
from tabwarden_adapters.ai import ApiKey, KeyFile, remove_key
from tabwarden_adapters.cli import ai_work
from tabwarden_adapters.cli.ai_app import ai_app
from tabwarden_adapters.credentials import KeyFileProtector

from tests.ai.support import KEY

HERE = "https://models.test"


def stored(folder) -> KeyFile:
    file = KeyFile(folder / "ai" / "key.json", KeyFileProtector(folder / "ai"))
    file.store(HERE, ApiKey(KEY))
    return file


async def test_it_is_sealed_and_private(tmp_path):
    file = stored(tmp_path)
    assert (await file(HERE)).secret == KEY
    data = file.path.read_bytes()
    assert KEY.encode() not in data
    assert HERE.encode() not in data
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert KEY not in repr(file) + repr(vars(file))


@pytest.mark.parametrize(
    "other",
    ["https://evil.test", "https://models.tes", "https://models.test:8443", ""],
)
async def test_it_is_for_one_origin(tmp_path, other):
    file = stored(tmp_path)
    with pytest.raises(ActionError) as caught:
        await file(other)
    assert (caught.value.code, caught.value.rule) == (Code.NOT_AVAILABLE, "ai.key-elsewhere")


async def test_a_new_key_holds_from_the_next_call_on(tmp_path):
    file = stored(tmp_path)
    stored_by_another = KeyFile(file.path, KeyFileProtector(file.path.parent))
    stored_by_another.store("https://new.test", ApiKey("new"))
    assert (await file("https://new.test")).secret == "new"
    assert remove_key(stored_by_another.path)
    assert not remove_key(stored_by_another.path)
    with pytest.raises(ActionError) as caught:
        await file("https://new.test")
    assert (caught.value.code, caught.value.rule) == (Code.NOT_AVAILABLE, "ai.no-key")
    assert KEY not in repr(caught.value)


async def test_a_model_on_this_machine_may_do_without(tmp_path):
    local = "http://127.0.0.1:11434"
    absent = KeyFile(tmp_path / "ai" / "key.json", KeyFileProtector(tmp_path / "ai"))
    assert await absent(local) is None
    file = stored(tmp_path)
    assert await file(local) is None
    file.store(local, ApiKey("local"))
    assert await file(local) == ApiKey("local")
    change(file, sealed="AAAA")
    with pytest.raises(ActionError) as caught:
        await file(local)
    assert (caught.value.code, caught.value.rule) == (Code.NOT_AVAILABLE, "ai.no-key")


def change(file: KeyFile, **members: object) -> None:
    file.path.write_text(json.dumps({**json.loads(file.path.read_text()), **members}))


DAMAGE = {
    "format": lambda file: change(file, format="tpm2-v1"),
    "kind": lambda file: change(file, kind="tabwarden-ai-key/2"),
    "sealed": lambda file: change(file, sealed="AAAA"),
    "not base64": lambda file: change(file, sealed="\u00e9"),
    "padded": lambda file: change(file, sealed=json.loads(file.path.read_text())["sealed"] + "=="),
    "unknown field": lambda file: change(file, key=KEY),
    "no json": lambda file: file.path.write_bytes(b"\xff"),
    "twice": lambda file: file.path.write_text('{"kind":1,"kind":2}'),
    "too large": lambda file: file.path.write_bytes(b" " * 40_000),
    "open to others": lambda file: file.path.chmod(0o644),
    "folder open to others": lambda file: file.path.parent.chmod(0o755),
    "a link": lambda file: (file.path.rename(file.path.with_suffix(".x")), file.path.symlink_to("key.x")),
    "the sealing key": lambda file: (file.path.parent / "descriptor.key").write_bytes(b"k" * 32),
    "gone": lambda file: file.path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_file_that_was_changed_gives_no_key(tmp_path, damage):
    file = stored(tmp_path)
    DAMAGE[damage](file)
    with pytest.raises((ConfigurationError, DescriptorError)) as caught:
        file.load()
    assert KEY not in str(caught.value)
    with pytest.raises(ActionError) as ended:
        await file(HERE)
    assert (ended.value.code, ended.value.rule) == (Code.NOT_AVAILABLE, "ai.no-key")


@pytest.mark.parametrize("text", ["", "a b", "a\nb", "a\r\nx: y", "\u00e9", "a" * 4097, "a\x00", "\x7f"])
def test_what_is_no_key(text):
    with pytest.raises(ConfigurationError, match="printable ASCII") as caught:
        ApiKey(text)
    assert len(text) < 2 or text not in str(caught.value)


# ---- the commands -------------------------------------------------------------------------------------


def type_in(monkeypatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    monkeypatch.setattr("tabwarden_adapters.cli.ai_app.close_process_to_others", lambda: None)


def test_set_and_remove(tmp_path, monkeypatch, capsys):
    type_in(monkeypatch, KEY.encode() + b"\r\nand more\n")
    where = tmp_path / "ai" / "key.json"
    assert ai_app(["set-key", f"{HERE}/v1", "--credential", str(where)], result_action="return_value") == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == {"stored": str(where), "origin": HERE, "protector": "key-file"}
    assert KEY not in told.out + told.err
    assert ai_work.key_file(where).load() == (HERE, ApiKey(KEY))
    assert ai_app(["remove-key", "--credential", str(where)], result_action="return_value") == 0
    assert json.loads(capsys.readouterr().out) == {"removed": True, "credential": str(where)}
    assert not where.exists()


@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        (["http://models.test"], KEY.encode()),
        ([HERE], b"\n"),
        ([HERE], b"a b\n"),
        ([HERE], b"a" * 5000),
        ([HERE], b"\xff\n"),
        ([HERE, "--protector", "passphrase"], KEY.encode()),
        ([HERE, "--protector", "auto"], KEY.encode()),
        ([HERE, "--protector", "none"], KEY.encode()),
    ],
)
def test_what_is_not_stored(tmp_path, monkeypatch, capsys, arguments, typed):
    type_in(monkeypatch, typed)
    where = tmp_path / "ai" / "key.json"
    command = ["set-key", *arguments, "--credential", str(where)]
    assert ai_app(command, result_action="return_value") == 1
    told = json.loads(capsys.readouterr().err)["error"]
    assert told["code"] == "configuration"
    assert KEY not in told["message"]
    assert not where.exists()


def test_what_is_typed_at_a_terminal_is_not_shown(tmp_path):
    where = tmp_path / "ai" / "key.json"
    program = (
        "import sys; from tabwarden_adapters.cli.ai_app import ai_app; "
        f"sys.exit(ai_app(['set-key', '{HERE}', '--credential', sys.argv[1]], result_action='return_value'))"
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(where)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,  # without a controlling terminal, getpass uses what it was given
    )
    os.close(theirs)
    shown = b""
    while b"API key for" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, KEY.encode() + b"\n")
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:
            break
    assert process.wait() == 0
    os.close(ours)
    assert KEY.encode() not in shown
    assert ai_work.key_file(where).load() == (HERE, ApiKey(KEY))
