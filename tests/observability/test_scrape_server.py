"""What scrapers can do to a broker that serves its figures."""

import gc
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest
from tabwarden_observability.scrape_server import ScrapeLimits, ScrapeServer

QUICK = ScrapeLimits(gap_s=0.0, fresh_s=0.0)
PATIENT = 60.0


@contextmanager
def serving(
    read: Callable[[], bytes] = lambda: b"up 1\n", limits: ScrapeLimits = QUICK, address: str = "127.0.0.1"
) -> Iterator[ScrapeServer]:
    server = ScrapeServer(address, 0, read, limits)
    server.start()
    try:
        yield server
    finally:
        assert server.stop(30.0)


def connected(server: ScrapeServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def request(server: ScrapeServer, *more: bytes) -> bytes:
    host = b"Host: localhost:%d" % server.port
    return b"\r\n".join([b"GET /metrics HTTP/1.1", host, *more, b"", b""])


def answer(peer: socket.socket) -> bytes:
    """Everything to the end; what is left of it when the server cuts it off."""
    data = b""
    try:
        while more := peer.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


def scrape(server: ScrapeServer, *more: bytes) -> bytes:
    with closing(connected(server)) as peer:
        peer.sendall(request(server, *more))
        return answer(peer)


def test_the_figures_are_served_and_the_thread_ends_with_the_server() -> None:
    with serving() as server:
        assert server._thread.is_alive()
        assert scrape(server).startswith(b"HTTP/1.1 200 OK\r\n")
        assert scrape(server).endswith(b"\r\n\r\nup 1\n")
        port = server.port
    assert not server._thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=30)
    assert server.stop(0.0)  # again is harmless


def test_ipv6() -> None:
    with serving(address="::1") as server, socket.create_connection(("::1", server.port), 30) as peer:
        peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: [::1]:%d\r\n\r\n" % server.port)
        assert answer(peer).startswith(b"HTTP/1.1 200 ")


def test_a_page_gets_nothing() -> None:
    with serving(lambda: b"secret 1\n") as server:
        for field in (b"Origin: https://evil.test", b"Sec-Fetch-Site: same-origin"):
            refused = scrape(server, field)
            assert refused.startswith(b"HTTP/1.1 403 Forbidden\r\n")
            assert b"secret" not in refused
        with closing(connected(server)) as peer:
            peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: evil.test:%d\r\n\r\n" % server.port)
            refused = answer(peer)
        assert refused.startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert b"secret" not in refused


def test_a_request_without_end_is_refused_and_not_kept() -> None:
    with serving() as server, closing(connected(server)) as peer:
        peer.sendall(b"GET /metrics HTTP/1.1\r\nX-Much: ")
        refused = None
        try:
            for _ in range(4096):  # 16 MiB, of which it takes the first few thousand bytes
                peer.sendall(b"x" * 4096)
        except (BrokenPipeError, ConnectionResetError) as cut:
            refused = cut
        assert refused is not None or answer(peer).startswith(b"HTTP/1.1 431 ")


def test_half_a_request_and_then_the_end() -> None:
    with serving() as server, closing(connected(server)) as peer:
        peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: loc")
        peer.shutdown(socket.SHUT_WR)
        assert answer(peer).startswith(b"HTTP/1.1 400 ")


def test_who_says_nothing_is_cut_off() -> None:
    with serving(limits=ScrapeLimits(gap_s=0.0, request_s=0.05)) as server:
        for said in (b"", b"GET /metrics HTTP/1.1\r\nHost: localhost"):
            with closing(connected(server)) as peer:
                peer.sendall(said)
                assert answer(peer) == b""


def test_who_does_not_read_is_cut_off() -> None:
    figures = b"x" * 32 * 1024 * 1024  # more than the sockets take
    limits = ScrapeLimits(gap_s=0.0, request_s=0.2)
    with serving(lambda: figures, limits) as server, closing(connected(server)) as peer:
        peer.sendall(request(server))
        with closing(connected(server)) as other:
            assert answer(other) == b""  # came later, and its time is over
        assert len(answer(peer)) < len(figures)


def test_idle_connections_keep_nobody_out_and_are_few() -> None:
    four = ScrapeLimits(connections=4, gap_s=0.0, request_s=PATIENT)
    with serving(limits=four) as server, ExitStack() as held:
        idle = [held.enter_context(closing(connected(server))) for _ in range(40)]
        for peer in idle[-4:]:
            peer.sendall(b"GET /met")
        for _ in range(6):
            assert scrape(server).startswith(b"HTTP/1.1 200 ")
        # Each had to make room for a later one, long before its time was over, and the last three did not.
        assert [answer(peer) for peer in idle[:-3]] == [b""] * 37
        assert server.stop(30.0)
        assert [answer(peer) for peer in idle[-3:]] == [b""] * 3


def test_a_crowd_shares_one_reading() -> None:
    readings = 0

    def read() -> bytes:
        nonlocal readings
        readings += 1
        return b"up 1\n"

    with serving(read, ScrapeLimits(gap_s=0.0, fresh_s=PATIENT)) as server:
        for _ in range(50):
            assert scrape(server).endswith(b"up 1\n")
    assert readings == 1


def test_a_reading_that_fails_is_told_as_that_and_is_not_the_end(caplog: pytest.LogCaptureFixture) -> None:
    faults = [RuntimeError("with a secret")]

    def read() -> bytes:
        if faults:
            raise faults.pop()
        return b"up 1\n"

    caplog.set_level(logging.DEBUG)
    with serving(read) as server:
        assert scrape(server).startswith(b"HTTP/1.1 500 ")
        assert scrape(server).startswith(b"HTTP/1.1 200 ")
    [record] = caplog.records
    assert "secret" not in caplog.text
    assert record.levelno == logging.ERROR


def test_the_end_waits_for_nobody() -> None:
    with serving(limits=ScrapeLimits(gap_s=0.0, request_s=PATIENT)) as server, ExitStack() as held:
        idle = [held.enter_context(closing(connected(server))) for _ in range(3)]
        idle[0].sendall(b"GET /met")
        assert server.stop(30.0)
        assert [answer(peer) for peer in idle] == [b""] * 3


def test_a_reading_that_hangs_cannot_hold_the_end_up() -> None:
    reading, go_on = threading.Event(), threading.Event()

    def read() -> bytes:
        reading.set()
        go_on.wait(60)
        return b""

    with serving(read) as server, closing(connected(server)) as peer:
        peer.sendall(request(server))
        assert reading.wait(30)
        assert not server.stop(0.05)
        go_on.set()


def test_one_that_was_never_started_lets_go_of_its_port() -> None:
    server = ScrapeServer("127.0.0.1", 0, lambda: b"")
    assert server.stop(0.0)
    with socket.create_server(("127.0.0.1", server.port)):
        pass
    del server
    gc.collect()  # a socket that is still open would warn


def test_one_that_is_stopped_at_once_ends() -> None:
    for _ in range(20):
        server = ScrapeServer("127.0.0.1", 0, lambda: b"")
        server.start()
        server.ask_to_stop()
        assert server.stop(30.0)
