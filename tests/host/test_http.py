"""Attacks 52, 57, 58, 62 and 63 on the control port, and every known way of ending Hypercorn from outside."""

import errno
import os
import sys
from pathlib import Path

import pytest
import trio
from tabwarden_adapters.host import ErrorCode, HostControlServer, SiteMode
from tabwarden_adapters.host.peers import Peers

from tests.attacks.test_other_user import _as_nobody
from tests.host.support import (
    FakeHost,
    ask,
    ask_raw,
    code_of,
    everything,
    limits,
    open_stream,
    parsed,
    private_home,
    request,
    serving,
    until,
)

SITE = "https://shop.test"
BODY = {"kind": "site", "origin": SITE, "summary": "x"}

BROWSER = [
    ("Origin", "https://evil.test"),
    ("origin", "null"),
    ("Origin", " "),
    ("Origin", "http://127.0.0.1"),
    ("Sec-Fetch-Site", "same-origin"),
    ("Sec-Fetch-Site", "none"),
    ("Sec-Fetch-Mode", "no-cors"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Mode", "websocket"),
    ("Sec-Fetch-Dest", "empty"),
    ("Sec-Fetch-User", "?1"),
    ("Sec-CH-UA", "x"),
    ("Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Referer", "http://127.0.0.1/"),
    ("Cookie", "a=b"),
    ("Access-Control-Request-Method", "POST"),
    ("Access-Control-Request-Private-Network", "true"),
    ("Proxy-Connection", "keep-alive"),
]


async def test_attack_57_what_a_browser_adds_is_refused_with_the_token_too(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        for name, value in BROWSER:
            for method in ("POST", "OPTIONS"):
                raw = request(server, method, "/approve", BODY, headers={name: value})
                assert code_of(await ask_raw(server, raw)) == (403, "browser"), (name, value)
        # What a browser sends beside it does not make Node's own header a licence.
        for more in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Dest": "empty"}, {"Origin": "null"},
                     {"sec-fetch-Mode": "cors"}):  # fmt: skip
            raw = request(server, "POST", "/approve", BODY, headers={"Sec-Fetch-Mode": "cors"} | more)
            assert code_of(await ask_raw(server, raw)) == (403, "browser")
        assert host.asked == []
        await until(lambda: server.statistics().connections == 0)
        assert server.statistics().refused == {ErrorCode.BROWSER: 2 * len(BROWSER) + 4}


async def test_attack_57_what_nodes_fetch_adds_is_let_through(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        node = {"Sec-Fetch-Mode": "cors", "Accept": "*/*", "Accept-Language": "*", "User-Agent": "node",
                "Accept-Encoding": "gzip, deflate", "Connection": "keep-alive"}  # fmt: skip
        assert await ask(server, "POST", "/approve", BODY, headers=node) == (200, {"answer": "no"})


async def test_attack_57_hosts_that_are_not_ours(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        port = server.address.partition(":")[2]
        hosts = ["evil.test", f"evil.test:{port}", f"localhost:{port}", f"[::1]:{port}",
                 f"127.1:{port}", f"127.0.0.1.nip.io:{port}", f"0.0.0.0:{port}",
                 f"2130706433:{port}",
                 "127.0.0.1", "127.0.0.1:1",
                 f"127.0.0.1:0{port}", f"me@127.0.0.1:{port}",
                 f"127.0.0.1:{port},127.0.0.1:{port}"]  # fmt: skip
        for host in hosts:
            raw = request(server, "POST", "/approve", BODY, headers={"Host": host})
            assert code_of(await ask_raw(server, raw)) == (403, "host"), host
        twice = request(server, "GET", "/policy", headers={"host": server.address})
        assert code_of(await ask_raw(server, twice)) == (403, "host")
        none = request(server, "GET", "/policy", headers={"Host": ""})
        assert code_of(await ask_raw(server, none)) in ((403, "host"), (400, "malformed-http"))
        for target in (f"http://{server.address}/policy", "http://evil.test/policy", "//127.0.0.1/policy"):
            status, _ = code_of(await ask_raw(server, request(server, "GET", target)))
            assert status in (400, 404)


async def test_only_the_token_opens_and_it_is_asked_before_the_route(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        token = server.token
        for value in ("", "Bearer", "Bearer ", "Bearer x", f"Basic {token}", token, f"Bearer {token[:-1]}",
                      f"Bearer {token}0", f"Bearer {token.upper()}" if not token.isdigit() else "x",
                      f"Bearer {token} {token}", f"Bearer {token}, Bearer {token}", f"Bearer \xe9{token[1:]}",
                      f"Bearer {'0' * 64}", "Bearer " + "a" * 7000):  # fmt: skip
            for route in ("/approve", "/nowhere"):
                raw = request(server, "POST", route, BODY, headers={"Authorization": value})
                assert code_of(await ask_raw(server, raw)) == (401, "unauthorized"), value
        twice = request(server, "POST", "/approve", BODY, headers={"authorization": f"Bearer {token}"})
        assert code_of(await ask_raw(server, twice)) == (401, "unauthorized")
        assert host.asked == []
        lower = {"Authorization": "", "authorization": f"bearer  {token}"}
        assert await ask(server, "POST", "/approve", BODY, headers=lower) == (200, {"answer": "no"})


def _edit(old: bytes, new: bytes):  # type: ignore[no-untyped-def]
    def edit(raw: bytes) -> bytes:
        assert old in raw
        return raw.replace(old, new, 1)

    return edit


def _add(*fields: bytes):  # type: ignore[no-untyped-def]
    return _edit(b"\r\n\r\n", b"\r\n" + b"\r\n".join(fields) + b"\r\n\r\n")


SETTINGS = b"http2-settings: AAMAAABkAAQAAP__"
MALFORMED = {
    "transfer-encoding": (411, _edit(b"Content-Length: ", b"transfer-encoding: chunked\r\nx-was: ")),
    "length and chunked": (400, _add(b"transfer-encoding: chunked")),
    "two different lengths": (400, _add(b"content-length: 0")),
    "two equal lengths": (400, _add(b"content-length: 58")),
    "length with a sign": (400, _edit(b"Content-Length: ", b"Content-Length: +")),
    "length with a zero": (400, _edit(b"Content-Length: ", b"Content-Length: 0")),
    "length in hexadecimal": (400, _edit(b"Content-Length: ", b"Content-Length: 0x")),
    "negative length": (400, _edit(b"Content-Length: ", b"Content-Length: -")),
    "no length": (411, _edit(b"Content-Length: ", b"x-length: ")),
    "endless length": (None, _edit(b"Content-Length: ", b"Content-Length: 99999999999999999999")),
    "bare LF": (400, lambda raw: raw.replace(b"\r\n", b"\n")),
    "one bare LF": (400, _edit(b"\r\n", b"\n")),
    "pipelining": (400, lambda raw: raw + raw),
    "pipelining of a fragment": (400, lambda raw: raw + b"POST /approve"),
    "bytes after the body": (400, lambda raw: raw + b"\0"),
    "HTTP/1.0": (505, _edit(b"HTTP/1.1", b"HTTP/1.0")),
    "HTTP/0.9": (505, _edit(b" HTTP/1.1", b"")),
    "HTTP/9.9": (400, _edit(b"HTTP/1.1", b"HTTP/9.9")),
    "HTTP/2 preface": (400, lambda raw: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)),
    "h2c upgrade": (400, _add(b"connection: upgrade, http2-settings", b"upgrade: h2c", SETTINGS)),
    "h2c upgrade, malformed settings": (
        400,
        lambda raw: _add(b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: %%")(
            raw.partition(b"Content-Type")[0].replace(b"POST /approve", b"GET /excluded-targets")
            + b"\r\n\r\n"
        ),
    ),
    "upgrade without connection": (400, _add(b"upgrade: h2c")),
    "connection with an upgrade": (400, _add(b"connection: keep-alive, upgrade")),
    "WebSocket upgrade and 1 byte": (
        403,
        lambda raw: (
            raw.partition(b"Content-Type")[0].replace(b"POST /approve", b"GET /excluded-targets")
            + b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
            + b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\0"
        ),
    ),
    "CONNECT": (None, lambda raw: b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nhost: 127.0.0.1:80\r\n\r\n"),
    "unknown method": (400, _edit(b"POST", b"HACK")),
    "lower-case method": (400, _edit(b"POST", b"post")),
    "obs-fold": (400, _edit(b"Host: ", b"Host:\r\n ")),
    "space before the colon": (400, _edit(b"Host: ", b"Host : ")),
    "NUL in a value": (400, _edit(b"Host: ", b"Host: \0")),
    "NUL in the target": (400, _edit(b"/approve", b"/approve\0")),
    "space in the target": (400, _edit(b"/approve", b"/app rove")),
    "70 KiB header": (431, _add(b"x-large: " + b"a" * 70 * 1024)),
    "9 KiB header": (431, _add(b"x-large: " + b"a" * 9 * 1024)),
    "70 KiB target": (431, _edit(b"/approve", b"/approve?" + b"a" * 70 * 1024)),
    "200 fields": (431, _add(*(b"x-%d: y" % at for at in range(200)))),
    "expect": (417, _add(b"expect: 100-continue")),
    "te": (400, _add(b"te: trailers")),
    "trailer": (400, _add(b"trailer: x")),
    "GET with a body": (400, _edit(b"POST /approve", b"GET /excluded-targets")),
    "TLS": (400, lambda raw: bytes.fromhex("16030100c8010000c40303") + bytes(100)),
    "noise": (400, lambda raw: bytes(range(256)) * 8),
    "empty lines only": (431, lambda raw: b"\r\n" * 5000),
}


async def test_attack_58_malformed_or_foreign_http(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        files = len(os.listdir("/proc/self/fd"))
        for kind, (status, change) in MALFORMED.items():
            reply = await ask_raw(server, change(request(server, "POST", "/approve", BODY)))
            # Exactly one reply, and a typed one.
            assert code_of(reply)[0] == (status or code_of(reply)[0]), kind
            assert 400 <= code_of(reply)[0] < 500 or "HTTP/" in kind, kind
        assert host.asked == []
        assert await ask(server, "POST", "/approve", BODY) == (200, {"answer": "no"})
        assert len(os.listdir("/proc/self/fd")) <= files


async def test_attack_52_a_body_over_2_mb_is_cut_off_while_it_is_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        # Only announced: answered without waiting for it.
        announced = request(server, "POST", "/log", headers={"Content-Length": str(2 * 1024 * 1024 + 1)})
        assert code_of(await ask_raw(server, announced)) == (413, "too-large")
        whole = request(server, "POST", "/log", raw_body=bytes(2 * 1024 * 1024 + 1))
        assert code_of(await ask_raw(server, whole)) == (413, "too-large")
        # At the limit it is judged by what it is.
        at = request(server, "POST", "/log", raw_body=bytes(2 * 1024 * 1024))
        assert code_of(await ask_raw(server, at)) == (400, "invalid-json")
        # Without the token not one byte of it is kept.
        stranger = request(
            server, "POST", "/log", raw_body=bytes(1024 * 1024), headers={"Authorization": "x"}
        )
        assert code_of(await ask_raw(server, stranger)) == (401, "unauthorized")


async def test_attack_58_slow_peers(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host, limits=limits(head_s=0.15, body_s=0.15)) as server:
        raw = request(server, "POST", "/approve", BODY)
        head, _, body = raw.partition(b"\r\n\r\n")
        for begin, rest in ((b"", raw), (head + b"\r\n\r\n", body)):
            async with await open_stream(server) as stream:
                sent = 0
                await stream.send_all(begin)

                async def drip(stream: trio.SocketStream = stream, rest: bytes = rest) -> None:
                    nonlocal sent
                    try:
                        for sent in range(len(rest)):
                            await stream.send_all(rest[sent : sent + 1])
                            with trio.move_on_after(0.05):
                                await trio.sleep_forever()
                    except (trio.BrokenResourceError, trio.ClosedResourceError):
                        return

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(drip)
                    assert code_of(await everything(stream)) == (408, "too-slow")
                    assert sent < len(rest) // 2  # not only at the end of this part
                    nursery.cancel_scope.cancel()
        assert host.asked == []


async def test_attack_58_in_pieces_but_in_time_is_served(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, await open_stream(server) as stream:
        raw = request(server, "POST", "/approve", BODY)
        for at in range(len(raw)):
            await stream.send_all(raw[at : at + 1])
        assert parsed(await everything(stream)) == (200, {"answer": "no"})


async def test_attack_58_half_close(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        raw = request(server, "POST", "/approve", BODY)
        assert parsed(await ask_raw(server, raw, eof=True)) == (200, {"answer": "no"})
        for length in (0, 1, 40, len(raw) - 1):
            assert await ask_raw(server, raw[:length], eof=True) == b""


async def test_hypercorn_partial_body_then_close_on_a_route_that_answers_early(tmp_path: Path) -> None:
    # Served by itself, Hypercorn 0.18 ends its own nursery in about 18 runs of 25.
    async with serving(tmp_path) as server:
        raw = request(server, "POST", "/log", raw_body=bytes(100_000))
        for at in range(25):
            stream = await open_stream(server)
            await stream.send_all(raw[: 400 + at * 3000])
            await stream.aclose()
        await until(lambda: server.statistics().connections == 0)
        assert (await ask(server, "GET", "/excluded-targets"))[0] == 200


async def test_a_peer_that_does_not_read_its_reply_holds_nothing_up(tmp_path: Path) -> None:
    host = FakeHost()
    host.excluded = ["x" * 60] * 4000
    async with serving(tmp_path, host, limits=limits(send_s=0.1, close_s=1)) as server:
        streams = []
        for _ in range(4):
            stream = await open_stream(server)
            stream.setsockopt(1, 8, 1024)  # SOL_SOCKET, SO_RCVBUF
            await stream.send_all(request(server, "GET", "/excluded-targets"))
            streams.append(stream)
        await until(lambda: server.statistics().connections == 0)
        assert server.statistics().served == 0
        for stream in streams:
            await stream.aclose()


async def test_attack_63_connections_are_bounded_and_given_back(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=limits(connections=3, waiting=1)) as server:
        held = [await open_stream(server) for _ in range(3)]
        await until(lambda: server.statistics().connections == 3)
        async with await open_stream(server) as one_more:
            assert await everything(one_more) == b""
        assert server.statistics().too_many == 1
        await held.pop().aclose()
        await until(lambda: server.statistics().connections == 2)
        assert (await ask(server, "GET", "/excluded-targets"))[0] == 200
        for stream in held:
            await stream.aclose()


async def test_attack_63_300_connections_opened_and_dropped(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        files = len(os.listdir("/proc/self/fd"))
        for at in range(300):
            stream = await open_stream(server)
            if at % 3 == 0:
                await stream.send_all(b"GET /polic")
            await trio.aclose_forcefully(stream)
        await until(lambda: server.statistics().connections == 0)
        assert (await ask(server, "GET", "/excluded-targets"))[0] == 200
        assert len(os.listdir("/proc/self/fd")) <= files


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root to become another user")
async def test_attack_62_another_users_process_is_not_heard(tmp_path: Path) -> None:
    host = FakeHost()
    host.modes[SITE] = SiteMode.ALLOWED
    async with serving(tmp_path, host) as server:
        raw = request(server, "GET", "/policy?origin=" + SITE)
        reply = await trio.to_thread.run_sync(_as_nobody, server.address, raw)
        assert reply in (b"|closed", b"|reset")
        assert server.statistics().foreign == 1
        assert host.asked == []


async def test_attack_62_a_peer_that_the_kernel_does_not_know_is_foreign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as server:
        monkeypatch.setattr(Peers, "_find", lambda *_: None)
        assert await ask_raw(server, request(server, "GET", "/excluded-targets")) == b""
        monkeypatch.undo()
        assert server.statistics().foreign == 1


class Failing:
    """`trio.SocketListener.accept`, which fails first."""

    def __init__(self, listener: type[trio.SocketListener], *numbers: int) -> None:
        self._numbers = list(numbers)
        self._accept = listener.accept

    def __get__(self, listener: trio.SocketListener, _: object = None) -> object:
        async def accept() -> trio.SocketStream:
            if self._numbers:
                raise OSError(self._numbers.pop(0), "no")
            return await self._accept(listener)

        return accept


async def test_when_file_descriptors_run_out_it_waits_for_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(trio.SocketListener, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
    monkeypatch.setattr(trio.SocketListener, "accept", failing)
    async with serving(tmp_path) as server:
        assert (await ask(server, "GET", "/excluded-targets"))[0] == 200


async def test_a_listening_socket_that_fails_ends_the_server_and_not_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = private_home(tmp_path)
    async with trio.open_nursery() as nursery:
        async with HostControlServer(nursery, FakeHost(), cdp_port=1, home=home) as server:
            monkeypatch.setattr(trio.SocketListener, "accept", Failing(trio.SocketListener, errno.EBADF))
            # The accept that is under way is the last good one.
            await ask_raw(server, request(server, "GET", "/excluded-targets"))
            await until(lambda: server.statistics().contained == 1)
            assert not (home / "host.json").exists()
            monkeypatch.undo()
        assert not nursery.child_tasks
