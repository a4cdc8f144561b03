"""`--protector` and `--passphrase-fd` on the command line."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden.protocol.codec import SUITE
from tabwarden.protocol.proof import instance_id
from tabwarden_adapters.cli import doctor
from tabwarden_adapters.cli.prompts import for_serve
from tabwarden_adapters.cli.settings import ServeSettings, load_settings
from tabwarden_adapters.credentials import DescriptorStore, PassphraseProtector

from tests.cli.running import LIMIT_S, Finished, environment, tabwarden
from tests.credentials.test_store import DESCRIPTOR

PASSPHRASE = b"correct horse battery staple"


def given(home: Path, passphrase: bytes, *arguments: str) -> Finished:
    """Run one command with `passphrase` waiting at file descriptor `FD` of its arguments."""
    read, write = os.pipe()
    os.write(write, passphrase + b"\n")
    os.close(write)
    command = [sys.executable, "-m", "tabwarden_adapters.cli", *arguments, "--passphrase-fd", str(read)]
    try:
        return Finished(
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                env=environment(home),
                pass_fds=(read,),
                start_new_session=True,
                check=False,
            )
        )
    finally:
        os.close(read)


def failure(done: Finished) -> tuple[str, str]:
    assert done.status == 1
    return done.failure["code"], done.failure["message"]


@pytest.fixture
def connection(tmp_path: Path) -> Path:
    """A descriptor under the passphrase, of a broker that is gone."""
    path = tmp_path / "room" / "agent.json"
    store = DescriptorStore(path, PassphraseProtector(lambda new: PASSPHRASE))
    address = "127.0.0.1:1"
    instance = instance_id(DESCRIPTOR.ed_public, DESCRIPTOR.pq_public, address)
    store.write(replace(DESCRIPTOR, address=address, instance=instance, protocol=SUITE, expires_at_ms=None))
    return path


def test_serve_with_a_protector_that_is_not_here(tmp_path: Path) -> None:
    code, message = failure(tabwarden(tmp_path, "serve", "--headless", "--protector", "dpapi"))
    assert (code, message) == (
        "configuration",
        "protector dpapi cannot be used: DPAPI exists on Windows only",
    )


def test_serve_with_a_passphrase_that_is_too_short(tmp_path: Path) -> None:
    code, message = failure(given(tmp_path, b"short", "serve", "--headless", "--protector", "passphrase"))
    assert code == "configuration"
    assert "too short" in message


def test_a_passphrase_is_taken_once_and_only_where_it_is_needed() -> None:
    read, write = os.pipe()
    os.write(write, PASSPHRASE)
    os.close(write)
    with pytest.raises(ConfigurationError, match="--protector passphrase only"):
        for_serve("auto", read)
    assert for_serve("auto", None) is None
    ask = for_serve("passphrase", read)
    os.close(read)
    assert ask is not None
    assert ask(True) == PASSPHRASE
    assert ask.__closure__ is not None
    assert [cell.cell_contents for cell in ask.__closure__] == [[]]


def test_a_settings_file_may_name_one(tmp_path: Path) -> None:
    path = tmp_path / "broker.toml"
    path.write_text('protector = "dpapi"\n')
    assert load_settings(path) == ServeSettings(protector="dpapi")
    with pytest.raises(ConfigurationError, match="protector dpapi cannot be used: DPAPI exists"):
        doctor._credentials(load_settings(path))


def test_call_takes_the_format_from_the_file(tmp_path: Path, connection: Path) -> None:
    place = ("--connection", str(connection))
    assert failure(given(tmp_path, PASSPHRASE, "call", "sessions", *place))[0] == "unreachable"
    code, message = failure(given(tmp_path, b"another passphrase", "sessions", *place))
    assert code == "descriptor"
    assert "passphrase is wrong" in message
    assert "another passphrase" not in message


def test_call_with_nobody_to_ask(tmp_path: Path, connection: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tabwarden_adapters.cli", "sessions", "--connection", str(connection)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment(tmp_path),
        start_new_session=True,  # without a terminal
        check=False,
    )
    assert failure(Finished(done)) == (
        "descriptor",
        f"{connection}: a passphrase is needed and there is no terminal to ask at: give --passphrase-fd",
    )


def test_doctor_says_which_and_why_and_asks_nobody(tmp_path: Path, connection: Path) -> None:
    examined = tabwarden(tmp_path, "doctor", "--json", "--connection", str(connection))
    found = {finding["check"]: finding for finding in json.loads(examined.out)}
    assert found["credentials"]["ok"] is True
    assert "protects against other users" in found["credentials"]["detail"]
    assert "dpapi: DPAPI exists on Windows only" in found["other protectors"]["detail"]
    assert found["other protectors"]["ok"] is None
    assert "not asked for here" in found["connection"]["detail"]
