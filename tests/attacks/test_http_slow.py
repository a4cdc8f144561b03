"""Attack 58 in time: slow headers, slow bodies, idle connections, and half-closes."""

import trio
from tabwarden.errors import Refusal
from tabwarden.limits import Limits

from tests.attacks.serving import Broker, serve, until
from tests.attacks.toolkit import Wire, connect, peer_of

FAST = Limits(headers_s=0.1, body_s=0.15, batch_size=8)


async def _trickle(wire: Wire, data: bytes) -> None:
    """A byte at a time, each one soon enough to keep a timer alive that each byte would start anew."""
    for at in range(len(data)):
        try:
            await wire.send(data[at : at + 1])
        except trio.BrokenResourceError:
            return
        with trio.move_on_after(0.02):
            await trio.sleep_forever()


async def _slow(broker: Broker, at_once: bytes, slowly: bytes) -> tuple[bytes, float]:
    """What comes back, and after how long."""
    async with connect(broker.control.address) as wire, trio.open_nursery() as nursery:
        await wire.send(at_once)
        begun = trio.current_time()
        nursery.start_soon(_trickle, wire, slowly)
        reply = await wire.rest()
        nursery.cancel_scope.cancel()
        return reply, trio.current_time() - begun
    raise AssertionError


async def test_attack_58_header_at_one_byte_a_time():
    async with serve(limits=FAST) as broker:
        peer = peer_of(broker)
        raw = peer.m1().raw(peer.host)
        reply, took = await _slow(broker, b"P", raw[1:200])
        assert reply == broker.refusal
        assert 0.09 < took < 2
        assert broker.refused(Refusal.TOO_SLOW) == 1
        # Empty lines before a request are part of it.
        reply, _ = await _slow(broker, b"\r\n", b"\r\n" * 50)
        assert reply == broker.refusal
        assert broker.refused(Refusal.TOO_SLOW) == 2
        await broker.quiet()
        assert await peer.call(broker) == (200, [])


async def test_attack_58_body_at_one_byte_a_time():
    async with serve(limits=FAST) as broker:
        peer = peer_of(broker)
        head, _, body = peer.m1().raw(peer.host).partition(b"\r\n\r\n")
        reply, took = await _slow(broker, head + b"\r\n\r\n", body)
        assert reply == broker.refusal
        assert 0.14 < took < 2
        assert broker.refused(Refusal.TOO_SLOW) == 1
        await broker.quiet()


async def test_attack_58_body_at_one_byte_a_time_under_hypercorn():
    async with serve("hypercorn", limits=FAST) as broker:
        peer = peer_of(broker)
        head, _, body = peer.m1().raw(peer.host).partition(b"\r\n\r\n")
        reply, _ = await _slow(broker, head + b"\r\n\r\n", body)
        assert reply == broker.refusal
        assert broker.refused(Refusal.TOO_SLOW) == 1


async def test_attack_58_a_slow_body_and_headers_within_their_limits_are_served():
    limits = Limits(headers_s=5, body_s=5, batch_size=8)
    async with serve(limits=limits) as broker:
        peer = peer_of(broker)
        raw = peer.m1().raw(peer.host)
        async with connect(peer.host) as wire:
            for at in range(len(raw)):
                await wire.send(raw[at : at + 1])
            assert (await wire.receive()).status == 200


async def test_attack_58_an_idle_connection_is_closed_without_a_word():
    async with serve(limits=Limits(idle_connection_s=0.3, batch_size=8)) as broker:
        peer = peer_of(broker)
        async with connect(peer.host) as wire:
            assert await wire.rest() == b""
        async with connect(peer.host) as wire:
            assert await peer.call_on(wire) == (200, [])
            assert await wire.rest() == b""
        assert broker.control.statistics().refusals == {}
        await broker.quiet()


async def test_attack_58_half_close_after_a_full_request_still_gets_its_reply():
    started, release = trio.Event(), trio.Event()

    async def wait(arguments: object, context: object) -> list[object]:
        started.set()
        await release.wait()
        return []

    async with serve(actions={"sessions": wait}) as broker:
        peer = peer_of(broker)
        m1 = peer.m1()
        async with connect(peer.host) as wire:
            await wire.send(m1.raw(peer.host))
            await wire.stream.send_eof()
            assert (await wire.rest()).startswith(b"HTTP/1.1 200 OK\r\n")
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await wire.stream.send_eof()
            await started.wait()
            # Longer than the broker takes to look whether a half-closed peer is still there.
            with trio.move_on_after(0.5):
                await broker.control._runtime.stopped.wait()
            release.set()
            reply = await wire.receive()
            assert action.open(reply.body) == {"type": "agent-response", "status": 200, "body": []}
            assert await wire.rest() == b""
        await broker.quiet()
        assert [event.code for event in broker.audit.terminal()] == [None]


async def test_attack_58_half_close_in_the_middle_of_a_request():
    async with serve() as broker:
        peer = peer_of(broker)
        raw = peer.m1().raw(peer.host)
        for length in (1, 40, len(raw) - 1):
            async with connect(peer.host) as wire:
                await wire.send(raw[:length])
                await wire.stream.send_eof()
                assert await wire.rest() == b""
        await broker.quiet()
        assert await peer.call(broker) == (200, [])


async def test_attack_58_a_half_closed_call_still_has_its_deadline():
    release = trio.Event()

    async def hang(arguments: object, context: object) -> None:
        with trio.CancelScope(shield=True):
            await release.wait()

    limits = Limits(action_deadline_s=0.1, cancel_grace_s=0.05, batch_size=8)
    async with serve(actions={"sessions": hang}, limits=limits) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await wire.stream.send_eof()
            message = action.open((await wire.receive()).body)
        assert (message["status"], message["body"]["code"]) == (504, "deadline")
        await until(lambda: broker.control.statistics().connections == 0)
        release.set()
