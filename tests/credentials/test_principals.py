"""Descriptors of many principals: one file each, old generations and earlier brokers' files removed."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from tabwarden import AgentClient
from tabwarden.errors import ConfigurationError, DescriptorError, Unreachable
from tabwarden_adapters.credentials import KeyFileProtector, PrincipalStore, load_descriptor
from tabwarden_adapters.credentials.store import descriptor_file_name

from tests.credentials.test_store import DESCRIPTOR

OURS = {"principals.lock"}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def store(tmp_path: Path, keys: Path) -> Iterator[PrincipalStore]:
    made = PrincipalStore(tmp_path / "agents", KeyFileProtector(keys))
    yield made
    made.close()


def names(store: PrincipalStore) -> set[str]:
    return set(os.listdir(store.folder)) - OURS


async def test_each_has_its_own_file(store: PrincipalStore, keys: Path) -> None:
    async with trio.open_nursery() as nursery:
        for who in ("alice", "bob", "carol"):
            nursery.start_soon(store, replace(DESCRIPTOR, principal_id=who))
    assert names(store) == {descriptor_file_name(who, 3) for who in ("alice", "bob", "carol")}
    path = store.path_of("bob", 3)
    assert load_descriptor(path, key_directory=keys) == replace(DESCRIPTOR, principal_id="bob")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any("bob" in name for name in names(store))


def test_a_new_generation_replaces_the_old_one_of_that_principal_alone(
    store: PrincipalStore, keys: Path
) -> None:
    for who in ("alice", "bob"):
        store.write(replace(DESCRIPTOR, principal_id=who))
    store.write(replace(DESCRIPTOR, principal_id="alice", generation=9))
    assert names(store) == {descriptor_file_name("alice", 9), descriptor_file_name("bob", 3)}
    store.write(replace(DESCRIPTOR, principal_id="alice", generation=9, token=bytes(32)))
    assert load_descriptor(store.path_of("alice", 9), key_directory=keys).token == bytes(32)


def test_an_old_generation_is_refused_and_changes_nothing(store: PrincipalStore) -> None:
    store.write(DESCRIPTOR)
    with pytest.raises(ConfigurationError, match="newer generation"):
        store.write(replace(DESCRIPTOR, generation=2))
    assert names(store) == {descriptor_file_name("agent", 3)}


def test_when_the_new_one_cannot_be_written_the_old_one_stays(store: PrincipalStore, keys: Path) -> None:
    store.write(DESCRIPTOR)
    keys.chmod(0o755)
    with pytest.raises(DescriptorError, match="chmod 700"):
        store.write(replace(DESCRIPTOR, generation=4))
    keys.chmod(0o700)
    assert names(store) == {descriptor_file_name("agent", 3)}
    assert load_descriptor(store.path_of("agent", 3), key_directory=keys).generation == 3
    store.write(replace(DESCRIPTOR, generation=4))
    assert names(store) == {descriptor_file_name("agent", 4)}


def test_removed_when_revoked_and_when_closed(store: PrincipalStore) -> None:
    for who in ("alice", "bob"):
        store.write(replace(DESCRIPTOR, principal_id=who))
    assert store.remove("alice")
    assert not store.remove("alice")
    assert not store.remove("nobody")
    assert names(store) == {descriptor_file_name("bob", 3)}
    store.close()
    assert names(store) == set()
    with pytest.raises(ConfigurationError, match="closed"):
        store.write(DESCRIPTOR)


def test_one_broker_in_a_folder(store: PrincipalStore, keys: Path) -> None:
    store.write(DESCRIPTOR)
    with pytest.raises(ConfigurationError, match="another broker"):
        PrincipalStore(store.folder, KeyFileProtector(keys))
    assert names(store) == {descriptor_file_name("agent", 3)}
    store.close()
    PrincipalStore(store.folder, KeyFileProtector(keys)).close()


def test_other_files_are_left_alone(store: PrincipalStore, keys: Path) -> None:
    others = {"agent-connection.json", "agent-x.json", "notes", ".agent-x"}
    for name in others:
        (store.folder / name).write_text("x")
    store.close()
    PrincipalStore(store.folder, KeyFileProtector(keys)).close()
    assert names(store) == others


@pytest.mark.parametrize("what", ["mode", "link", "lock-link"])
def test_a_folder_that_is_not_private_is_refused(tmp_path: Path, keys: Path, what: str) -> None:
    folder = tmp_path / "agents"
    folder.mkdir(mode=0o700)
    match what:
        case "mode":
            folder.chmod(0o770)
        case "link":
            folder.rename(tmp_path / "moved")
            folder.symlink_to("moved")
        case "lock-link":
            (folder / "principals.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError):
        PrincipalStore(folder, KeyFileProtector(keys))
    assert not (tmp_path / "elsewhere").exists()


# A broker that stores a descriptor and is killed, once after the write and once in the middle of it.
KILLED = """
import os, signal, sys
from dataclasses import replace
from tabwarden.protocol.codec import SUITE
from tabwarden.protocol.proof import instance_id
from tabwarden_adapters.credentials import KeyFileProtector, PrincipalStore
from tests.credentials.test_store import DESCRIPTOR
store = PrincipalStore(sys.argv[1], KeyFileProtector(sys.argv[2]))
descriptor = replace(
    DESCRIPTOR, address="127.0.0.1:1", protocol=SUITE, expires_at_ms=None,
    instance=instance_id(DESCRIPTOR.ed_public, DESCRIPTOR.pq_public, "127.0.0.1:1"),
)
store.write(descriptor)
if sys.argv[3] == "within":
    os.rename = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
    store.write(replace(descriptor, generation=4))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["after", "within"])
async def test_a_crash_leaves_an_inactive_descriptor_that_a_client_refuses(
    tmp_path: Path, keys: Path, when: str
) -> None:
    folder = tmp_path / "agents"
    command = [sys.executable, "-c", KILLED, str(folder), str(keys), when]
    done = await trio.to_thread.run_sync(lambda: subprocess.run(command, check=False))
    assert done.returncode == -9
    left = folder / descriptor_file_name("agent", 3)
    # Its broker is gone: it opens, names a port where nobody has the two signing keys, and gets nothing.
    descriptor = load_descriptor(left, key_directory=keys)
    async with AgentClient(descriptor) as client:
        with pytest.raises(Unreachable):
            await client.call("sessions")
    assert len(os.listdir(folder)) == (2 if when == "after" else 3)
    store = PrincipalStore(folder, KeyFileProtector(keys))
    assert names(store) == set()
    with pytest.raises(DescriptorError, match="pair again"):
        load_descriptor(left, key_directory=keys)
    store.close()
