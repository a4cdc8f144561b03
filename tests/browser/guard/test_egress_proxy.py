"""The proxy over raw sockets: what it lets through, and what it refuses before a byte leaves."""

from contextlib import suppress

import pytest
import trio
from tabwarden_adapters.browser import HostCounts
from tabwarden_adapters.browser.egress_proxy import HOSTS_COUNTED, OTHER_HOSTS, Egress, EgressProxy
from tabwarden_adapters.browser.relay import relay

from tests.browser.guard.proxying import Counts, Hosts, Names, Origin, connect, connected

PUBLIC = "93.184.216.34"


@pytest.fixture
async def origin(nursery):
    origin = Origin()
    origin.port = (
        await nursery.start(
            trio.serve_tcp,
            origin.serve,
            0,
        )
    )[0].socket.getsockname()[1]
    return origin


@pytest.fixture
def start(nursery):
    async def start(policy, names=None, **options) -> tuple[EgressProxy, Counts]:
        counts = Counts()
        proxy = EgressProxy(policy, names or Names(), counts, **options)
        await nursery.start(proxy.run)
        return proxy, counts

    return start


async def test_a_tunnel_carries_bytes_both_ways_and_keeps_half_closes(start, origin):
    proxy, counts = await start(Hosts(named=("good.test",)), Names(good_test=[["127.0.0.1"]]))
    async with connected(proxy) as client:
        assert await client.ask(connect("GOOD.test.", origin.port)) == b"HTTP/1.1 200 OK\r\n\r\n"
        assert await client.ask(b"\x16\x03\x01 hello") == b"\x16\x03\x01 hello"
        await client.stream.send_eof()
        assert await client.rest() == b"bye"
    assert counts.all == [("good.test", Egress.CONNECTED)]
    # What came along with the head is not lost.
    async with connected(proxy) as client:
        await client.stream.send_all(connect("good.test", origin.port) + b"early")
        await client.stream.send_eof()
        assert await client.rest() == b"HTTP/1.1 200 OK\r\n\r\nearlybye"


async def test_a_host_that_is_not_listed_is_not_even_looked_up(start, origin):
    policy, names = Hosts("good.test"), Names(evil_test=[["127.0.0.1"]])
    proxy, counts = await start(policy, names)
    for text in (
        connect("evil.test", origin.port),
        f"GET http://evil.test:{origin.port}/ HTTP/1.1\r\nHost: good.test\r\n\r\n".encode(),
        connect("127.0.0.1", origin.port),
        connect("[::1]", origin.port),
        connect("[::ffff:127.0.0.1]", origin.port),
        connect("0x7f.1", origin.port),
    ):
        async with connected(proxy) as client:
            answer = await client.ask(text)
            assert answer.startswith(b"HTTP/1.1 403") == text.startswith(b"CONNECT")
            assert await client.rest() == b""
    assert {outcome for _, outcome in counts.all} == {Egress.HOST}
    assert [host for host, _ in policy.asked] == [
        *("evil.test", "evil.test", "127.0.0.1", "[::1]", "[::ffff:7f00:1]", "127.0.0.1")
    ]
    assert names.asked == []
    assert origin.connections == 0


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["100.64.0.1"],
        ["169.254.169.254"],
        ["192.168.0.1"],
        ["224.0.0.1"],
        ["0.0.0.0"],  # noqa: S104
        ["::1"],
        ["::"],
        ["fd00::1"],
        ["fe80::1"],
        ["fe80::1%eth0"],
        ["ff02::1"],
        ["::ffff:10.0.0.1"],
        ["64:ff9b::a00:1"],
        ["64:ff9b:1::a00:1"],
        ["2002:7f00:1::"],
        ["2001::1"],
        ["::7f00:1"],
        ["nonsense"],
        [PUBLIC, "127.0.0.1"],
        ["127.0.0.1", PUBLIC],
    ],
)
async def test_a_name_that_leads_inside_is_refused_unless_it_is_named(start, origin, addresses):
    proxy, counts = await start(Hosts("good.test"), Names(good_test=[addresses]))
    async with connected(proxy) as client:
        assert (await client.ask(connect("good.test", origin.port))).startswith(b"HTTP/1.1 403")
    assert counts.all == [("good.test", Egress.ADDRESS)]
    assert origin.connections == 0


async def test_a_name_that_changes_its_mind_gains_nothing(start, origin):
    """Each connection goes to what was judged for it: there is no second look-up in between."""
    names = Names(good_test=[["127.0.0.1"], [PUBLIC], ["127.0.0.1"]])
    policy = Hosts("good.test", named=("good.test",))
    proxy, counts = await start(policy, names)
    async with connected(proxy) as client:
        assert (await client.ask(connect("good.test", origin.port))).startswith(b"HTTP/1.1 200")
    assert names.asked == ["good.test"]
    policy.lists["named"].clear()
    names.answers["good.test"] = [["127.0.0.1"]]
    async with connected(proxy) as client:
        assert (await client.ask(connect("good.test", origin.port))).startswith(b"HTTP/1.1 403")
    assert names.asked == ["good.test"] * 2
    assert [outcome for _, outcome in counts.all] == [Egress.CONNECTED, Egress.ADDRESS]
    assert origin.connections == 1


async def test_a_policy_that_fails_allows_nothing(start, origin):
    class Broken(Hosts):
        def allowed(self, host: str, port: int) -> bool:
            raise LookupError

    proxy, counts = await start(Broken())
    async with connected(proxy) as client:
        assert (await client.ask(connect("127.0.0.1", origin.port))).startswith(b"HTTP/1.1 403")
    assert counts.all == [("127.0.0.1", Egress.HOST)]


async def test_our_own_ports_are_refused_even_when_named(start, origin):
    policy = Hosts(named=("127.0.0.1", "good.test", "[::ffff:7f00:1]"))
    names = Names(good_test=[["127.0.0.1"]])
    proxy, counts = await start(policy, names, own_ports=lambda: frozenset({origin.port}))
    for host, port in (
        ("127.0.0.1", origin.port),
        ("good.test", origin.port),
        ("[::ffff:127.0.0.1]", origin.port),
        ("127.0.0.1", proxy.port),
    ):
        async with connected(proxy) as client:
            assert (await client.ask(connect(host, port))).startswith(b"HTTP/1.1 403")
    assert {outcome for _, outcome in counts.all} == {Egress.OWN_PORT}
    assert origin.connections == 0


async def test_plain_http_is_sent_on_with_one_host_and_nothing_of_this_hop(start, origin):
    origin.answer = (
        b"HTTP/1.1 103 -\r\nLink: </a>\r\n\r\n"
        b"HTTP/1.1 200 Fine\r\nContent-Length: 5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
        b"Proxy-Authenticate: Basic\r\nX-End: 2\r\n\r\nhello and more"
    )
    proxy, counts = await start(Hosts(named=("good.test",)), Names(good_test=[["127.0.0.1"]]))
    async with connected(proxy) as client:
        await client.stream.send_all(
            b"POST http://Good.test:%d/a/../b?c=d HTTP/1.1\r\nHost: evil.test\r\nConnection: X-Mine\r\n"
            b"X-Mine: 1\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nCookie: a=b\r\n"
            b"Content-Length: 4\r\n\r\nbodyGET http://evil.test/ HTTP/1.1\r\n\r\n" % origin.port
        )
        answer = await client.rest()
    head, _, body = origin.heard.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /b?c=d HTTP/1.1",
        b"Host: good.test:%d" % origin.port,
        b"cookie: a=b",
        b"content-length: 4",
        b"Connection: close",
    ]
    assert body == b"body"
    assert b"HTTP/1.1 103 -\r\nlink: </a>\r\n\r\n" in answer
    assert b"hello" in answer
    for gone in (b"x-hop", b"keep-alive", b"proxy-"):
        assert gone not in answer.lower()
    assert b"x-end: 2" in answer
    assert counts.all == [("good.test", Egress.CONNECTED)]


async def test_a_chunked_body_is_framed_anew_and_head_has_no_body(start, origin):
    proxy, _ = await start(Hosts(named=("127.0.0.1",)))
    origin.answer = b"HTTP/1.1 204 -\r\n\r\n"
    url = b"http://127.0.0.1:%d/" % origin.port
    async with connected(proxy) as client:
        await client.stream.send_all(b"PUT %s HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab" % url)
        await client.stream.send_all(b"c\r\n0\r\nTrailer: x\r\n\r\n")
        assert (await client.rest()).startswith(b"HTTP/1.1 204")
    assert origin.heard.endswith(b"0\r\n\r\n")
    assert b"railer" not in origin.heard
    origin.heard, origin.answer = b"", b"HTTP/1.1 200 -\r\nContent-Length: 99\r\n\r\n"
    async with connected(proxy) as client:
        await client.stream.send_all(b"HEAD %s HTTP/1.1\r\n\r\n" % url)
        assert b"content-length: 99" in await client.rest()


@pytest.mark.parametrize(
    "text",
    [
        b"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n",
        b"GET https://good.test/ HTTP/1.1\r\n\r\n",
        b"GET ftp://good.test/ HTTP/1.1\r\n\r\n",
        b"GET http://a:b@good.test/ HTTP/1.1\r\n\r\n",
        b"CONNECT good.test HTTP/1.1\r\n\r\n",
        b"CONNECT good.test:0 HTTP/1.1\r\n\r\n",
        b"CONNECT good.test:70000 HTTP/1.1\r\n\r\n",
        b"CONNECT good..test:80 HTTP/1.1\r\n\r\n",
        b"CONNECT a@good.test:80 HTTP/1.1\r\n\r\n",
        b"GET http://good.test/ HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"POST http://good.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST http://good.test/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"\x05\x01\x00\x00\x00\x00",
        b"nonsense\r\n\r\n",
        b"GET http://good.test/" + b"a" * 70_000,
        b"GET http://good.test/ HTTP/1.1\r\n" + b"X: " + b"a" * 70_000,
    ],
)
async def test_what_is_no_request_to_a_proxy_is_dropped(start, text):
    names = Names(good_test=[["127.0.0.1"]])
    proxy, counts = await start(Hosts(named=("good.test",)), names)
    async with connected(proxy) as client:
        with suppress(trio.BrokenResourceError):
            await client.stream.send_all(text)
        assert await client.rest() == b""
    assert [outcome for _, outcome in counts.all] == [Egress.MALFORMED]
    assert names.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 101 -\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 -\r\nbad header\r\n\r\n",
        b"HTTP/1.1 200 -\r\nX: a\nb\r\n\r\n",
        b"HTTP/1.1 200 -\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    ],
)
async def test_an_answer_that_is_none_is_not_passed_on(start, origin, answer):
    origin.answer = answer
    proxy, counts = await start(Hosts(named=("127.0.0.1",)))
    async with connected(proxy) as client:
        await client.stream.send_all(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % origin.port)
        assert await client.rest() == b""
    assert counts.all == [("127.0.0.1", Egress.CONNECTED), ("127.0.0.1", Egress.MALFORMED)]


async def test_names_and_ports_that_lead_nowhere(start, origin):
    proxy, counts = await start(Hosts("lost.test", named=("127.0.0.1",)))
    async with connected(proxy) as client:
        assert (await client.ask(connect("lost.test", 80))).startswith(b"HTTP/1.1 403")
    async with connected(proxy) as client:
        assert (await client.ask(connect("127.0.0.1", 1))).startswith(b"HTTP/1.1 403")
    assert counts.all == [("lost.test", Egress.UNRESOLVED), ("127.0.0.1", Egress.UNREACHABLE)]


async def test_slow_heads_and_too_many_connections(start, origin):
    proxy, counts = await start(Hosts(named=("127.0.0.1",)), head_s=0.2, connections=2)
    async with connected(proxy) as one, connected(proxy) as two:
        await one.stream.send_all(b"CONNECT ")
        assert (await two.ask(connect("127.0.0.1", origin.port))).startswith(b"HTTP/1.1 200")
        async with connected(proxy) as three:
            assert await three.rest() == b""
        assert await one.rest() == b""
        assert counts.all[1:] == [("", Egress.CAPACITY), ("", Egress.TOO_SLOW)]
        async with connected(proxy) as four:  # there is room again
            assert (await four.ask(connect("127.0.0.1", origin.port))).startswith(b"HTTP/1.1 200")


async def test_a_side_that_does_not_read_holds_the_other_back(start, nursery):
    """What the proxy holds of a stream stays small, however much is sent into it."""
    sent = trio.Event()
    stuck = 0

    async def pour(stream: trio.SocketStream) -> None:
        nonlocal stuck
        async with stream:
            while True:
                with trio.move_on_after(0.3) as patience:
                    await stream.send_all(bytes(64 * 1024))
                if patience.cancelled_caught:
                    break
                stuck += 64 * 1024
            sent.set()

    port = (await nursery.start(trio.serve_tcp, pour, 0))[0].socket.getsockname()[1]
    proxy, _ = await start(Hosts(named=("127.0.0.1",)))
    async with connected(proxy) as client:
        await client.stream.send_all(connect("127.0.0.1", port))
        await sent.wait()
    assert stuck < 32 * 1024 * 1024  # the kernel's buffers of four sockets


async def test_nothing_moving_ends_a_tunnel():
    one, two = trio.socket.socketpair()
    three, four = trio.socket.socketpair()
    with one, two, three, four:
        with trio.fail_after(5):
            await relay(trio.SocketStream(two), trio.SocketStream(three), idle_s=0.05)


async def test_shut_cuts_everything_and_a_dead_proxy_refuses(start, origin):
    proxy, _ = await start(Hosts(named=("127.0.0.1",)))
    async with connected(proxy) as client:
        assert (await client.ask(connect("127.0.0.1", origin.port))).startswith(b"HTTP/1.1 200")
        proxy.shut()
        assert await client.rest() == b""
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", proxy.port)


def test_counts_are_bounded():
    counts = HostCounts()
    for number in range(HOSTS_COUNTED + 10):
        counts.count(f"h{number}.test", Egress.HOST)
    counts.count("h0.test", Egress.HOST)
    found = counts.counts()
    assert len(found) == HOSTS_COUNTED + 1
    assert found["h0.test", Egress.HOST] == 2
    assert found[OTHER_HOSTS, Egress.HOST] == 10


@pytest.mark.parametrize("kind", ["tunnel", "plain"])
@pytest.mark.parametrize("change", ["not listed", "not named"])
async def test_a_connection_that_a_new_policy_does_not_allow_is_cut(start, origin, kind, change):
    policy = Hosts("other.test", named=("good.test", "kept.test"))
    proxy, counts = await start(policy, Names(good_test=[["127.0.0.1"]], kept_test=[["127.0.0.1"]]))

    async def opened(client, host):
        if kind == "tunnel":
            assert await client.ask(connect(host, origin.port)) == b"HTTP/1.1 200 OK\r\n\r\n"
            return
        origin.answer, origin.heard = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", b""
        request = f"GET http://{host}:{origin.port}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"
        answer = await client.ask(request.encode())
        while not answer.endswith(b"hal"):
            answer += await client.stream.receive_some()

    async with connected(proxy) as cut, connected(proxy) as kept:
        await opened(cut, "good.test")
        await opened(kept, "kept.test")
        proxy.recheck()
        assert counts.all == [("good.test", Egress.CONNECTED), ("kept.test", Egress.CONNECTED)]
        policy.lists["named"].discard("good.test")
        if change == "not listed":
            policy.lists["allowed"].discard("good.test")
        proxy.recheck()
        with suppress(trio.BrokenResourceError):
            assert await cut.rest() == b""
        if kind == "tunnel":
            assert await kept.ask(b"\x16 still") == b"\x16 still"
    assert counts.all[2:] == [("good.test", Egress.HOST)]


async def test_a_policy_that_changes_while_it_connects(start, origin):
    policy = Hosts(named=("good.test",))

    class Turning(Names):
        async def resolve(self, host):
            policy.lists["allowed"].clear()
            return await super().resolve(host)

    proxy, counts = await start(policy, Turning(good_test=[["127.0.0.1"]]))
    async with connected(proxy) as client:
        assert b"200" not in await client.ask(connect("good.test", origin.port))
    assert ("good.test", Egress.HOST) in counts.all
    assert origin.heard == b""
