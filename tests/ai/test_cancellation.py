"""A call that is cancelled, at whichever of its steps: nothing comes of it, and no connection stays open."""

from functools import partial

import pytest
import trio
from tabwarden_adapters.ai.exchange import system_trust

from tests.ai.server import CHUNKED, Peer, Server, answer, certificate, event
from tests.ai.support import OneKey, Operation, Page, gateway, open_looker


class CancelAt(trio.abc.Instrument):
    """Cancels `scope` when the task that runs `work` has made `step` steps; counts them."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self.scope = scope
        self.step = step
        self.steps = 0
        self.task: trio.lowlevel.Task | None = None

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self.task:
            self.steps += 1
            if self.steps == self.step:
                self.scope.cancel()


async def reads(captured: object, operation: Operation) -> Page:
    await trio.lowlevel.checkpoint()
    return Page()


async def cancelled_at(step: int, work) -> tuple[int, list[str]]:
    got: list[str] = []
    with trio.CancelScope() as scope:
        instrument = CancelAt(scope, step)

        async def run() -> None:
            instrument.task = trio.lowlevel.current_task()
            got.append(await work())
            instrument.task = None

        trio.lowlevel.add_instrument(instrument)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
        finally:
            trio.lowlevel.remove_instrument(instrument)
    return instrument.steps, got


@pytest.mark.parametrize("tls", [False, True])
async def test_at_every_step(nursery, tmp_path, tls):
    context, file = certificate(tmp_path) if tls else (None, None)
    server = await Server().listen(nursery, context)
    server.streams(event("a" * 1200), event("b" * 1200), answer("c"))
    trust = system_trust()
    if file:
        trust.load_verify_locations(file)
    asked = gateway(server, page=reads, trust=trust)
    step, done = 1, False
    while not done:
        steps, got = await cancelled_at(step, partial(asked, "q", object(), Operation()))
        await server.all_gone()
        server.peers.clear()
        done = steps < step
        assert done or got == []
        step += 1
    assert got == ["a" * 1200 + "b" * 1200 + "c"]
    assert step > 15


@pytest.mark.parametrize("way", ["from-page", "to-model", "from-model"])
async def test_while_the_inspector_looks(nursery, way):
    server = await Server().listen(nursery)
    server.streams(*[event("a" * 1200)] * 3, answer("b"))
    looker = open_looker()
    looker.halt = way
    async with trio.open_nursery() as inner:
        inner.start_soon(gateway(server, inspect=looker, page=reads), "q", object(), Operation())
        await looker.halted.wait()
        inner.cancel_scope.cancel()
    assert (server.peers == []) is (way != "from-model")
    await server.all_gone()


async def test_while_the_key_is_read(nursery):
    class Slow(OneKey):
        async def __call__(self, origin: str, /):
            asked.set()
            await trio.sleep_forever()

    asked = trio.Event()
    server = await Server().listen(nursery)
    async with trio.open_nursery() as inner:
        inner.start_soon(gateway(server, key=Slow()), "q", object(), Operation())
        await asked.wait()
        inner.cancel_scope.cancel()
    assert server.peers == []


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200", CHUNKED, CHUNKED + b"5\r\ndat"])
async def test_while_the_gateway_is_waited_for(nursery, begun):
    """A slow drip, too: what is drawn out is cut when the call ends."""
    server = await Server().listen(nursery)
    waiting = trio.Event()

    async def play(peer: Peer) -> None:
        for byte in begun:
            await peer.send(bytes([byte]))
            await trio.lowlevel.checkpoint()
        waiting.set()
        await trio.sleep_forever()

    server.play = play
    async with trio.open_nursery() as inner:
        inner.start_soon(gateway(server), "q", object(), Operation())
        await waiting.wait()
        inner.cancel_scope.cancel()
    await server.all_gone()


async def test_while_tls_is_shaken_hands_for(nursery):
    connected = trio.Event()
    gone = trio.Event()

    async def silent(stream: trio.SocketStream) -> None:
        connected.set()
        while await stream.receive_some():
            pass
        gone.set()

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, silent, [listener])
    url = f"https://127.0.0.1:{listener.socket.getsockname()[1]}/v1"
    async with trio.open_nursery() as inner:
        inner.start_soon(gateway(Server(), url=url), "q", object(), Operation())
        await connected.wait()
        inner.cancel_scope.cancel()
    with trio.fail_after(30):
        await gone.wait()
