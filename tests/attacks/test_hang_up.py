"""Attack 66: the agent hangs up in mid-action: with FIN, with RST, or because its process was killed."""

import os
import signal
import subprocess
import sys

import pytest
import trio
from tabwarden.limits import Limits

from tests.attacks.serving import OWN, serve, until
from tests.attacks.toolkit import Peer, connect, peer_of


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("adapter", ["obeys", "shields itself"])
async def test_attack_66_the_agent_hangs_up_in_mid_action(transport, how, adapter):
    started, cancelled, release = trio.Event(), trio.Event(), trio.Event()

    async def work(arguments: object, context: object) -> list[object]:
        started.set()
        with trio.CancelScope(shield=adapter != "obeys"):
            try:
                await release.wait()
            except trio.Cancelled:
                cancelled.set()
                raise
        return []

    async with serve(
        transport, actions={"sessions": work}, limits=Limits(cancel_grace_s=0.05, batch_size=8)
    ) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker))
        async with connect(peer.host) as wire:
            await wire.send(action.request.raw(peer.host))
            await started.wait()
            getattr(wire, how)()
        await broker.quiet()
        assert cancelled.is_set() == (adapter == "obeys")
        assert [event.code for event in broker.audit.terminal()] == ["disconnected"]
        release.set()
        assert await Peer(broker.descriptor, broker.runtime.clock).call(broker) == (200, [])
        assert len(broker.audit.terminal()) == 2


_AGENT = """
import sys, trio
from tabwarden.client import AgentClient
from tabwarden.model import ConnectionDescriptor
address, token, ed, pq, instance, protocol = sys.stdin.read().split("|")
keys = map(bytes.fromhex, (token, ed, pq, instance))
descriptor = ConnectionDescriptor(address, *keys, "legacy", 0, protocol)
async def main():
    async with AgentClient(descriptor) as client:
        await client.call("sessions")
trio.run(main)
"""


async def test_attack_66_the_agents_process_is_killed_in_mid_action(transport):
    started, cancelled = trio.Event(), trio.Event()

    async def work(arguments: object, context: object) -> list[object]:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()
        return []

    async with serve(transport, actions={"sessions": work}) as broker:
        given = broker.descriptor
        parts = (given.token, given.ed_public, given.pq_public, given.instance)
        text = "|".join([given.address, *(part.hex() for part in parts), given.protocol])
        agent = subprocess.Popen([sys.executable, "-c", _AGENT], stdin=subprocess.PIPE, env=dict(os.environ))
        with agent:
            assert agent.stdin is not None
            agent.stdin.write(text.encode())
            agent.stdin.close()
            with trio.fail_after(30):
                await started.wait()
            agent.send_signal(signal.SIGKILL)
            with trio.fail_after(10):
                await cancelled.wait()
        await broker.quiet()
        assert [event.code for event in broker.audit.terminal()] == ["disconnected"]


async def test_attack_66_others_go_on_when_one_agent_hangs_up(transport):
    release = trio.Event()
    running: list[object] = []

    async def work(arguments: object, context: object) -> list[object]:
        running.append(context)
        await release.wait()
        return []

    async with serve(transport, actions={"sessions": work}) as broker:
        peer = peer_of(broker)
        results: list[object] = []

        async def honest() -> None:
            results.append(await peer.call(broker))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(honest)
            await until(lambda: len(running) == 1)
            action = peer.m3(await peer.challenge(broker))
            async with connect(peer.host) as wire:
                await wire.send(action.request.raw(peer.host))
                await until(lambda: len(running) == 2)
                wire.reset()
            await until(lambda: len(broker.audit.terminal()) == 1)
            release.set()
        assert results == [(200, [])]
        assert [event.code for event in broker.audit.terminal()] == ["disconnected", None]
        assert broker.transport != OWN or await broker.quiet() is None
