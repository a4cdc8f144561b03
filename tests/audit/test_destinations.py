"""Where records may be shipped to, and servers that cannot be connected to."""

import ssl
from functools import partial
from pathlib import Path

import pytest
import trio
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.audit.exports import as_jsonl
from tabwarden_adapters.audit.shipping import (
    DeliveryFailed,
    StreamLimits,
    SyslogAddress,
    SyslogDestination,
    parse_address,
)

from tests.ai.server import certificate
from tests.audit.support import fill

LIMIT_S = 30


def test_addresses() -> None:
    assert parse_address("tcp://127.0.0.1:514") == SyslogAddress("tcp", "127.0.0.1", 514)
    assert parse_address("tls://[::1]:6514") == SyslogAddress("tls", "::1", 6514)
    assert parse_address("tls://Logs.example.org:6514") == SyslogAddress("tls", "logs.example.org", 6514)
    assert parse_address("unix:///run/x.sock") == SyslogAddress("unix", path="/run/x.sock")
    assert parse_address("otlp") == "otlp"


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "tcp",
            "tcp://",
            "tcp://host",
            "tcp://host:0",
            "tcp://host:65536",
            "tcp://host:x",
            "tcp://:514",
        ],
        *[
            "tcp://u:p@host:1",
            "tcp://host:1/",
            "tcp://host:1/x",
            "tcp://host:1?x",
            "tcp://host:1#x",
            "tcp://[::1:1",
        ],
        *["udp://host:514", "http://host:1", "unix://host/x", "unix:x", "unix:///", "unix:///a/", "otlp "],
        *["tcp://ho st:1", "tcp://h\u00f6st:1", "tcp://host:1\n", "unix:///" + "a" * 108, "//host:1"],
        *["tcp://a..b:1", "tcp://.a:1", f"tcp://{'a' * 64}:1", f"tcp://{'a.' * 130}a:1", "tcp://a%41:1"],
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--to must be"):
        parse_address(text)


def test_what_ca_may_be(tmp_path: Path) -> None:
    tls, tcp = SyslogAddress("tls", "x", 1), SyslogAddress("tcp", "x", 1)
    (tmp_path / "empty").touch()
    for address, ca, words in (
        (tcp, tmp_path / "x", "tls:// only"),
        (tls, tmp_path / "absent", "No such file"),
        (tls, tmp_path / "empty", "no certificates"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            SyslogDestination(address, as_jsonl, ca=ca)
    context = SyslogDestination(tls, as_jsonl)._tls
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


async def test_a_server_that_speaks_no_tls(tmp_path: Path) -> None:
    await fill(tmp_path / "log", 1)
    _, ca = certificate(tmp_path)
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:

            async def answers(stream: trio.SocketStream) -> None:
                await stream.send_all(b"220 hello\r\n" * 3)
                await stream.aclose()

            (listener,) = await nursery.start(partial(trio.serve_tcp, answers, 0, host="127.0.0.1"))
            port = listener.socket.getsockname()[1]
            where = SyslogDestination(SyslogAddress("tls", "127.0.0.1", port), as_jsonl, ca=ca)
            with pytest.raises(DeliveryFailed, match="the TLS handshake failed"):
                async with where.connect():
                    pass
            nursery.cancel_scope.cancel()


async def test_a_handshake_that_never_ends_and_a_cancelled_one(tmp_path: Path) -> None:
    _, ca = certificate(tmp_path)
    accepted = list[trio.SocketStream]()
    gone = trio.Event()

    async def silent(stream: trio.SocketStream) -> None:
        accepted.append(stream)
        while await stream.receive_some():
            pass
        gone.set()

    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(partial(trio.serve_tcp, silent, 0, host="127.0.0.1"))
            address = SyslogAddress("tls", "127.0.0.1", listener.socket.getsockname()[1])
            where = SyslogDestination(address, as_jsonl, ca=ca, limits=StreamLimits(connect_s=0.1))
            with pytest.raises(DeliveryFailed, match=r"no connection within 0\.1 s"):
                async with where.connect():
                    pass
            await gone.wait()
            nursery.cancel_scope.cancel()


async def test_nobody_there(tmp_path: Path) -> None:
    for address, why in (
        (SyslogAddress("unix", path=str(tmp_path / "absent")), "No such file"),
        (SyslogAddress("tcp", "127.0.0.1", 1), "no connection: "),
        (SyslogAddress("tcp", "nowhere.invalid", 1), "no"),
    ):
        with pytest.raises(DeliveryFailed, match=why):
            async with SyslogDestination(address, as_jsonl).connect():
                pass
