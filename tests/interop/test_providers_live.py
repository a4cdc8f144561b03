"""A whole call over HTTP with every pair of providers present: one at the broker, one at the client."""

from itertools import product

import pytest
import trio
from tabwarden import AgentClient, CallFailed, Limits, start_agent_control

from tests.protocol.present import PROVIDERS
from tests.support.fakes import AllowOnly, MemoryAudit, Reasons


async def sessions(_arguments: object, _context: object) -> list[object]:
    return []


@pytest.mark.parametrize(("broker", "agent"), list(product(PROVIDERS, PROVIDERS)))
async def test_a_call_and_a_sealed_failure(broker: str, agent: str) -> None:
    reasons = Reasons()
    async with trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=AllowOnly("sessions"),
            actions={"sessions": sessions},
            audit=MemoryAudit(),
            on_error=reasons,
            limits=Limits(batch_size=8, idle_batch_size=4),
            provider=PROVIDERS[broker],
        )
        assert control.descriptor is not None
        async with AgentClient(control.descriptor, provider=PROVIDERS[agent]) as client:
            # More calls than one batch holds, so that a second root is signed and verified.
            for _ in range(10):
                assert await client.call("sessions") == []
            with pytest.raises(CallFailed) as caught:
                await client.call("reload")
        signatures = control.statistics().signatures
        await control.close()
    assert (caught.value.status, caught.value.code) == (403, "policy-denied")
    assert signatures >= 2
    assert reasons.told == []
