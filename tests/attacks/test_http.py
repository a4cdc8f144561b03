"""Attacks 52, 57 and 58: the HTTP in front of it all."""

import os
import re
from pathlib import Path

import pytest
import trio
from tabwarden.errors import ConfigurationError, Refusal
from tabwarden.limits import Limits
from tabwarden_adapters.cli.call import read_request

from tests.attacks.serving import OWN, Broker, serve
from tests.attacks.toolkit import Peer, answer, assert_refused, connect, peer_of

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "corpora"

TOO_LARGE = (
    b"HTTP/1.1 413 Content Too Large\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n"
    b"cache-control: no-store\r\nconnection: close\r\n\r\ntoo large\n"
)


async def _too_large(broker: Broker, raw: bytes) -> None:
    before = broker.kept()
    reply = await answer(broker, raw)
    if broker.transport == OWN:
        assert reply == TOO_LARGE
    else:
        assert reply.startswith(b"HTTP/1.1 413 \r\n")
        assert reply.endswith(b"\r\nconnection: close\r\n\r\ntoo large\n")
    assert broker.kept() == before


async def test_attack_52_body_over_its_cap(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        await _too_large(broker, peer.m1(body=bytes(257)).raw(peer.host))
        await _too_large(broker, peer.m3_of(bytes(128 * 1024 + 1)).raw(peer.host))
        # Only announced: answered without waiting for it.
        announced = peer.m1().raw(peer.host).replace(b"content-length: 1", b"content-length: 99999999991")
        await _too_large(broker, announced.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        assert broker.refused(Refusal.TOO_LARGE) == 3
        # At the cap it is judged by what it is.
        await assert_refused(broker, peer.m1(body=bytes(256)).raw(peer.host), Refusal.WIRE, keeps=True)
        await assert_refused(broker, peer.m3_of(bytes(128 * 1024)).raw(peer.host), Refusal.WIRE, keeps=True)


def test_attack_52_a_request_file_over_its_cap(tmp_path):
    file = tmp_path / "request.json"
    whole = b'{"action":"sessions","args":{}}'
    file.write_bytes(whole.ljust(32 * 1024))
    assert read_request(file) == ("sessions", {})
    file.write_bytes(whole.ljust(32 * 1024 + 1))
    with pytest.raises(ConfigurationError, match="larger than 32 KiB"):
        read_request(file)


BROWSER = [
    b"Origin: https://evil.test",
    b"origin: null",
    b"Origin:",
    b"Sec-Fetch-Site: same-origin",
    b"Sec-Fetch-Mode: no-cors",
    b"Sec-Fetch-Dest: empty",
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    b"Sec-CH-UA: x",
    b"Referer: http://127.0.0.1/",
    b"Cookie: a=b",
    b"Access-Control-Request-Method: POST",
    b"Proxy-Connection: keep-alive",
    b"Proxy-Authorization: Basic eDp5",
]


@pytest.mark.parametrize("header", BROWSER, ids=lambda header: header.decode())
async def test_attack_57_what_a_browser_adds(transport, header):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        await assert_refused(broker, peer.m1().raw(peer.host, header), Refusal.BROWSER)


async def test_attack_57_hosts_that_are_not_ours(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        port = peer.host.partition(":")[2]
        for host in (
            "evil.test",
            f"evil.test:{port}",
            f"localhost:{port}",
            f"[::1]:{port}",
            f"127.1:{port}",
            f"127.0.0.1.nip.io:{port}",
            f"0.0.0.0:{port}",
            f"2130706433:{port}",
            "127.0.0.1",
            "127.0.0.1:1",
            f"127.0.0.1:0{port}",
            f"user@127.0.0.1:{port}",
            f"127.0.0.1:{port},127.0.0.1:{port}",
            "",
        ):
            await assert_refused(broker, peer.m1().raw(host), Refusal.HOST)


def _without_host(raw: bytes) -> bytes:
    return re.sub(rb"host: [^\r]*\r\n", b"", raw)


async def test_attack_57_no_host_two_hosts_and_absolute_form():
    async with serve() as broker:
        peer = peer_of(broker)
        raw = peer.m1().raw(peer.host)
        await assert_refused(broker, _without_host(raw), Refusal.HOST)
        twice = peer.m1().raw(peer.host, b"Host: " + peer.host.encode())
        await assert_refused(broker, twice, Refusal.HOST)
        await assert_refused(broker, peer.m1().raw(peer.host, b"Host: evil.test"), Refusal.HOST)
        for target in (
            b"http://%s/v1/challenge" % peer.host.encode(),
            b"http://evil.test/v1/challenge",
            b"//127.0.0.1/v1/challenge",
            b"*",
        ):
            reason = Refusal.HTTP if target == b"*" else Refusal.ROUTE
            reply = await answer(broker, peer.m1().raw(peer.host, route=target))
            assert reply == broker.refusal
            assert reason in broker.control.statistics().refusals or target == b"*"


async def test_attack_57_absolute_form_under_hypercorn():
    async with serve("hypercorn") as broker:
        peer = peer_of(broker)
        before = broker.kept()
        for target in (b"http://%s/v1/challenge" % peer.host.encode(), b"//127.0.0.1/v1/challenge"):
            assert await answer(broker, peer.m1().raw(peer.host, route=target)) == broker.refusal
        # Without a Host, or with two, Hypercorn's parser itself refuses.
        for raw in (
            _without_host(peer.m1().raw(peer.host)),
            peer.m1().raw(peer.host, b"Host: evil.test"),
        ):
            assert (await answer(broker, raw)).startswith((b"HTTP/1.1 403", b"HTTP/1.1 400"))
        assert broker.kept() == before


async def test_attack_57_content_types_that_a_form_could_send(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        raw = peer.m1().raw(peer.host)
        ours = b"content-type: application/vnd.tabwarden.v1\r\n"
        assert ours in raw
        for other in (
            b"content-type: text/plain\r\n",
            b"content-type: application/x-www-form-urlencoded\r\n",
            b"content-type: application/vnd.tabwarden.v2\r\n",
            b"",
            ours + ours,
        ):
            await assert_refused(broker, raw.replace(ours, other), Refusal.HEADERS)


def _edit(old: bytes, new: bytes, count: int = 1):
    def edit(raw: bytes) -> bytes:
        assert old in raw
        return raw.replace(old, new, count)

    return edit


def _add(*fields: bytes):
    return _edit(b"\r\n\r\n", b"\r\n" + b"\r\n".join(fields) + b"\r\n\r\n")


MALFORMED = {
    "transfer-encoding": _edit(b"content-length: ", b"transfer-encoding: chunked\r\nx-was: "),
    "transfer-encoding identity": _add(b"transfer-encoding: identity"),
    "two different lengths": _add(b"content-length: 0"),
    "two equal lengths": lambda raw: re.sub(rb"(content-length: \d+\r\n)", rb"\1\1", raw),
    "length and chunked": _add(b"transfer-encoding: chunked"),
    "length with a sign": _edit(b"content-length: ", b"content-length: +"),
    "length with a zero": _edit(b"content-length: ", b"content-length: 0"),
    "length list": lambda raw: re.sub(rb"content-length: (\d+)", rb"content-length: \1, \1", raw),
    "length in hexadecimal": _edit(b"content-length: ", b"content-length: 0x"),
    "no length": lambda raw: re.sub(rb"content-length: \d+\r\n", b"", raw),
    "bare LF": lambda raw: raw.replace(b"\r\n", b"\n"),
    "one bare LF": _edit(b"\r\n", b"\n"),
    "bare CR": _edit(b"\r\n", b"\r"),
    "pipelining": lambda raw: raw + raw,
    "pipelining of a fragment": lambda raw: raw + b"POST /v1",
    "bytes after the body": lambda raw: raw + b"\0",
    "HTTP/1.0": _edit(b"HTTP/1.1", b"HTTP/1.0"),
    "HTTP/0.9": _edit(b" HTTP/1.1", b""),
    "HTTP/9.9": _edit(b"HTTP/1.1", b"HTTP/9.9"),
    "HTTP/2 preface": lambda raw: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "h2c upgrade": _add(
        b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AAMAAABkAAQAAP__"
    ),
    "h2c upgrade, malformed settings": _add(
        b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: %%%"
    ),
    "upgrade without connection": _add(b"upgrade: h2c"),
    "connection with an upgrade": _add(b"connection: keep-alive, upgrade"),
    "WebSocket upgrade and 1 byte": lambda raw: (
        raw.partition(b"content-type")[0].replace(b"POST", b"GET")
        + b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
        + b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\0"
    ),
    "CONNECT": lambda raw: b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nhost: 127.0.0.1:80\r\n\r\n",
    "GET": _edit(b"POST", b"GET"),
    "lower-case method": _edit(b"POST", b"post"),
    "unknown method": _edit(b"POST", b"HACK"),
    "obs-fold": _edit(b"tabwarden-principal: ", b"tabwarden-principal:\r\n "),
    "space before the colon": _edit(b"tabwarden-principal: ", b"tabwarden-principal : "),
    "NUL in a value": _edit(b"tabwarden-principal: ", b"tabwarden-principal: \0"),
    "NUL in a name": _edit(b"tabwarden-principal", b"tabwarden\0principal"),
    "NUL in the target": _edit(b"/v1/challenge", b"/v1/challenge\0"),
    "space in the target": _edit(b"/v1/challenge", b"/v1/ challenge"),
    "percent in the target": _edit(b"/v1/challenge", b"/v1/%63hallenge"),
    "dots in the target": _edit(b"/v1/challenge", b"/v1/./challenge"),
    "70 KiB header": _add(b"x-large: " + b"a" * 70 * 1024),
    "9 KiB header": _add(b"x-large: " + b"a" * 9 * 1024),
    "70 KiB target": _edit(b"/v1/challenge", b"/v1/" + b"a" * 70 * 1024),
    "200 fields": _add(*(b"x-%d: y" % at for at in range(200))),
    "33 fields": _add(*(b"x-%d: y" % at for at in range(25))),
    "expect": _add(b"expect: 100-continue"),
    "te": _add(b"te: trailers"),
    "trailer": _add(b"trailer: x"),
    "TLS": lambda raw: bytes.fromhex("16030100c8010000c40303") + bytes(100),
    "noise": lambda raw: bytes(range(256)) * 8,
    "empty lines only": lambda raw: b"\r\n" * 5000,
}


@pytest.mark.parametrize("kind", MALFORMED)
async def test_attack_58_malformed_or_foreign_http(kind):
    async with serve() as broker:
        peer = peer_of(broker)
        async with connect(peer.host) as honest:
            assert await peer.call_on(honest) == (200, [])
            before, fds = broker.kept(), len(os.listdir("/proc/self/fd"))
            for _ in range(3):
                reply = await answer(broker, MALFORMED[kind](peer.m1().raw(peer.host)))
                # A second request in the same bytes must not be answered beside the first.
                assert reply == broker.refusal
            assert broker.kept() == before
            # The others are unaffected, on connections old and new, and no descriptor is left.
            assert await peer.call_on(honest) == (200, [])
            assert len(os.listdir("/proc/self/fd")) <= fds
        assert await peer.call(broker) == (200, [])


# Its parser puts these right before we see them; what is left is one well-formed request.
MENDED_BY_HYPERCORN = {
    "bare LF",
    "bytes after the body",
    "length list",
    "lower-case method",
    "obs-fold",
    "one bare LF",
    "percent in the target",
    "pipelining",
    "pipelining of a fragment",
    "two equal lengths",
}
# One connection's handler ends with an exception (Hypercorn's issue 225); the host contains it.
CRASHES_OF_HYPERCORN = {"WebSocket upgrade and 1 byte", "h2c upgrade, malformed settings"}


@pytest.mark.parametrize("kind", MALFORMED)
async def test_attack_58_the_same_under_hypercorn_harms_nobody(kind):
    # What its parser lets through or answers itself is Hypercorn's; what must hold is that we keep nothing
    # for it, answer no success, and go on serving.
    async with serve("hypercorn") as broker:
        peer = peer_of(broker)
        raw = MALFORMED[kind](peer.m1().raw(peer.host))
        async with connect(peer.host) as wire:
            await wire.send(raw)
            await wire.stream.send_eof()
            reply = await wire.rest()
        if b" 200 " in reply.partition(b"\r\n")[0]:
            assert kind in MENDED_BY_HYPERCORN
        assert b" 101 " not in reply
        assert await peer.call(broker) == (200, [])
        if kind in CRASHES_OF_HYPERCORN:
            broker.contained.clear()


async def test_attack_58_32_fields_and_a_header_just_under_its_limit_are_served():
    async with serve() as broker:
        peer = peer_of(broker)
        fields = [b"x-%d: y" % at for at in range(24)]
        async with connect(peer.host) as wire:
            assert (await wire.ask(peer.m1().raw(peer.host, *fields))).status == 200
            assert (await wire.ask(peer.m1().raw(peer.host, b"x: " + b"a" * 6000))).status == 200


async def test_attack_58_a_second_request_before_the_first_is_answered():
    started, ended = trio.Event(), trio.Event()

    async def wait(arguments: object, context: object) -> list[object]:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()
        return []

    async with serve(actions={"sessions": wait}) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await started.wait()
            await wire.send(peer.m1().raw(peer.host))
            assert await wire.rest() == b""
        await ended.wait()
        await broker.quiet()
        assert broker.refused(Refusal.HTTP) == 1
        assert [event.code for event in broker.audit.terminal()] == ["disconnected"]


def _bytes(character: str) -> bytes:
    return character.encode("latin-1" if ord(character) < 256 else "utf-8")


def llhttp_requests() -> list[tuple[str, bytes]]:
    """The corpus's strict requests that llhttp itself refuses."""
    found = []
    for file in sorted(CORPORA.glob("llhttp/test/request/*.md")):
        pattern = r"<!-- meta=(\{[^>]*\}) -->\n```http\n(.*?)```\n+```log\n(.*?)```"
        for at, match in enumerate(re.finditer(pattern, file.read_text(), re.DOTALL)):
            meta, text, log = match.groups()
            if "lenient" in meta or "pause" in meta or "error code=" not in log:
                continue
            lines = re.sub(r"\\\n", "", text.removesuffix("\n"))
            raw = re.sub(r"\r?\n", "\r\n", lines)
            for escape, meant in (("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t"), ("\\f", "\f")):
                raw = raw.replace(escape, meant)
            raw = re.sub(r"\\x([0-9a-fA-F]{2})", lambda hexed: chr(int(hexed[1], 16)), raw)
            found.append((f"{file.stem}-{at}", b"".join(_bytes(character) for character in raw)))
    return found


@pytest.mark.skipif(not (CORPORA / "llhttp").is_dir(), reason="the llhttp corpus is not here")
async def test_attack_58_requests_that_llhttp_refuses():
    requests = llhttp_requests()
    assert len(requests) >= 57
    async with serve(limits=Limits(headers_s=0.2, body_s=0.2, batch_size=8)) as broker:
        peer_of(broker)
        before, fds = broker.kept(), len(os.listdir("/proc/self/fd"))
        replies: dict[str, bytes] = {}

        async def send(name: str, raw: bytes) -> None:
            replies[name] = await answer(broker, raw)

        async with trio.open_nursery() as nursery:
            for name, raw in requests:
                nursery.start_soon(send, name, raw)
        assert {name: reply for name, reply in replies.items() if reply != broker.refusal} == {}
        await broker.quiet()
        assert broker.kept() == before
        assert len(os.listdir("/proc/self/fd")) == fds
        assert await Peer(broker.descriptor, broker.runtime.clock).call(broker) == (200, [])
