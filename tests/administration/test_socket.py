"""The administrator's socket: who reaches it, what it takes, and what is left of it."""

import os
import socket
import stat
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden.errors import ActionError, Code, ConfigurationError, HostReason
from tabwarden_adapters.administration import (
    AdministrationFailed,
    AnswerApproval,
    IssueGrant,
    ListGrants,
    Request,
    administration,
    ask,
)
from tabwarden_adapters.administration import place as places
from tabwarden_adapters.administration.messages import MAX_REQUEST_BYTES
from tabwarden_adapters.administration.serving import CONNECTIONS

from tests.support.fakes import Reasons


class Office:
    """An administrator that knows nothing but what it is given."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.asked: list[Request] = []

    async def __call__(self, request: Request, /) -> Any:
        self.asked.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "admin.sock"


def mode(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.lstat().st_mode)
    except FileNotFoundError:
        return None


def read(path: Path) -> str:
    return path.read_text()


def write(path: Path, text: str) -> None:
    path.write_text(text)


async def asked(path: Path, request: Request) -> Any:
    return await trio.to_thread.run_sync(ask, path, request)


@asynccontextmanager
async def raw(path: Path) -> AsyncIterator[trio.SocketStream]:
    async with await trio.open_unix_socket(str(path)) as stream:
        yield stream


async def rest(stream: trio.SocketStream) -> bytes:
    data = b""
    with trio.fail_after(30):
        while part := await stream.receive_some():
            data += part
    return data


async def test_a_request_and_its_answer(path: Path) -> None:
    office = Office([{"id": "one"}])
    async with administration(path, office):
        assert (mode(path), mode(path.parent)) == (0o600, 0o700)
        assert await asked(path, ListGrants()) == [{"id": "one"}]
        assert await asked(path, IssueGrant(id="one", expires_at_ms=7)) == [{"id": "one"}]
    assert office.asked == [ListGrants(), IssueGrant(id="one", expires_at_ms=7)]
    assert mode(path) is None


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ConfigurationError("do this"), "configuration", "do this"),
        (ActionError(Code.CONFLICT), "conflict", "it cannot be done"),
        (RuntimeError("secret"), "failure", "the broker could not do it: see its own output"),
    ],
)
async def test_a_no_is_typed_and_a_fault_keeps_its_text(
    path: Path, error: Exception, code: str, message: str
) -> None:
    reasons = Reasons()
    async with administration(path, Office(error), reasons):
        for _ in range(2):  # the first one's fault has ended nothing
            with pytest.raises(AdministrationFailed) as failed:
                await asked(path, ListGrants())
            assert (failed.value.code, str(failed.value)) == (code, message)
    assert reasons.told == [HostReason.INTERNAL_FAULT] * (2 if code == "failure" else 0)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"[]\n",
        b'{"do":"grants.drop"}\n',
        b'{"do":"grants.list","do":"grants.list"}\n',
        b'{"do":"grants.list","more":1}\n',
        b'{"do":"grants.issue"}\n',
        b'{"do":"grants.issue","id":""}\n',
        b'{"do":"grants.issue","id":"one","expires_at_ms":-1}\n',
        b'{"do":"approvals.answer","ticket":"../x","answer":"once"}\n',
        b'{"do":"approvals.answer","ticket":"x","answer":"always"}\n',
        b'{"do":"approvals.answer","ticket":"x","answer":"origin","minutes":1000}\n',
        b"\xff\n",
        b"[" * 2000 + b"\n",
    ],
)
async def test_what_is_no_request_is_told_so_and_reaches_nobody(path: Path, line: bytes) -> None:
    office = Office()
    async with administration(path, office), raw(path) as stream:
        await stream.send_all(line)
        assert b'"code":"bad-request"' in await rest(stream)
    assert office.asked == []


@pytest.mark.parametrize("data", [b"", b'{"do":"grants.list"}', b"x" * (MAX_REQUEST_BYTES + 1)])
async def test_what_is_no_line_gets_nothing(path: Path, data: bytes) -> None:
    office = Office()
    async with administration(path, office):
        async with raw(path) as stream:
            await stream.send_all(data)
            with trio.move_on_after(0 if len(data) <= MAX_REQUEST_BYTES else 30):
                await trio.lowlevel.checkpoint()
            await stream.send_eof()
            with suppress(trio.BrokenResourceError):  # closed with bytes of ours unread
                assert await rest(stream) == b""
        assert await asked(path, ListGrants()) is None
    assert office.asked == [ListGrants()]


async def test_who_says_nothing_is_let_go(path: Path, autojump_clock: object) -> None:
    async with administration(path, Office()), raw(path) as stream:
        assert await rest(stream) == b""


async def test_no_more_at_once_than_there_is_room_for(path: Path) -> None:
    async with administration(path, Office()), trio.open_nursery() as nursery:
        streams = [await trio.open_unix_socket(str(path)) for _ in range(CONNECTIONS + 1)]
        assert await rest(streams[-1]) == b""
        for stream in streams:
            await stream.aclose()
        with trio.fail_after(30):
            while True:
                try:
                    assert await asked(path, ListGrants()) is None
                    break
                except AdministrationFailed:
                    pass  # their ends are not all noticed yet
        nursery.cancel_scope.cancel()


async def test_processes_of_others_are_not_heard(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    office = Office()
    async with administration(path, office):
        monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
        async with raw(path) as stream:
            await stream.send_all(b'{"do":"grants.list"}\n')
            with suppress(trio.BrokenResourceError):
                assert await rest(stream) == b""
        monkeypatch.undo()
    assert office.asked == []


class Of:
    """A `Socket` whose other end is a process of this user id (unix(7), struct ucred)."""

    def __init__(self, uid: int) -> None:
        self.credentials = struct.pack("3i", 1, uid, 0)

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        assert (level, option, size) == (socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return self.credentials


def test_whose_the_other_end_is() -> None:
    assert places.same_user(Of(os.geteuid()))
    assert not places.same_user(Of(os.geteuid() + 1))


async def test_a_killed_brokers_socket_is_replaced_and_a_running_ones_is_not(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with pytest.raises(ConfigurationError, match="no broker is administered"):
        ask(path, ListGrants())
    async with administration(path, Office()):
        assert await asked(path, ListGrants()) is None
        with pytest.raises(ConfigurationError, match="another broker"):
            async with administration(path, Office()):
                pass
        assert await asked(path, ListGrants()) is None


async def test_what_is_no_socket_is_left_alone(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    write(path, "mine")
    with pytest.raises(ConfigurationError, match="choose another"):
        async with administration(path, Office()):
            pass
    assert read(path) == "mine"
    os.unlink(path)
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(ConfigurationError, match="choose another"):
        async with administration(path, Office()):
            pass


async def test_somebody_elses_file_is_not_removed_at_the_end(path: Path) -> None:
    async with administration(path, Office()):
        os.unlink(path)
        write(path, "theirs")
    assert read(path) == "theirs"


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_an_open_folder_is_refused_by_both(path: Path, mode: int) -> None:
    path.parent.mkdir()
    path.parent.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 700"):
        ask(path, ListGrants())
    with pytest.raises(ConfigurationError, match="chmod 700"), places.listening(path):
        pass


def test_nobody_is_there(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="start `tabwarden serve`"):
        ask(path, ListGrants())


def test_a_long_path_is_no_matter(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir(mode=0o700)
    with places.listening(folder / "admin.sock"):
        pass
    with pytest.raises(ConfigurationError, match="too long"), places.listening(folder / ("s" * 120)):
        pass


@pytest.mark.parametrize("reply", [b"", b"not json\n", b'{"error": 1}\n', b'{"error":{"code":"x"}}'])
def test_what_is_no_answer_is_told(path: Path, reply: bytes) -> None:
    with places.listening(path) as listener:
        request = AnswerApproval(ticket="t", answer="deny")

        async def both() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                with pytest.raises(AdministrationFailed) as failed:
                    await asked(path, request)
                assert failed.value.code == "no-answer"

        async def answer() -> None:
            stream, _ = await trio.to_thread.run_sync(listener.accept)
            stream.recv(1000)
            stream.sendall(reply)
            stream.close()

        trio.run(both)


def test_control_characters_of_an_answer_do_not_reach_the_terminal(path: Path) -> None:
    async def both() -> None:
        async with administration(path, Office(ConfigurationError("a\x1b[2Jb"))):
            with pytest.raises(AdministrationFailed) as failed:
                await asked(path, ListGrants())
            assert str(failed.value) == "a [2Jb"

    trio.run(both)
