"""A client that is closed while a call of its is in flight: that call ends as ever, nothing stays open."""

import pytest
import trio
from tabwarden import ActionError, AgentClient, CallFailed, Code

from tests.attacks.serving import OWN, serve


@pytest.mark.parametrize("fails", [False, True])
async def test_nothing_is_kept_of_a_call_that_ends_after_it(fails, nursery):
    inside, go_on, ended = trio.Event(), trio.Event(), trio.Event()
    outcomes: list[object] = []

    async def act(arguments: object, context: object) -> list[object]:
        inside.set()
        await go_on.wait()
        if fails:
            raise ActionError(Code.NOT_AVAILABLE)
        return []

    async def call(client: AgentClient) -> None:
        try:
            outcomes.append(await client.call("sessions"))
        except CallFailed as failed:
            outcomes.append(failed.code)
        ended.set()

    async with serve(OWN, actions={"sessions": act}) as broker:
        async with AgentClient(broker.descriptor) as client:
            nursery.start_soon(call, client)
            await inside.wait()
        go_on.set()
        await ended.wait()
        assert outcomes == ["not-available" if fails else []]
        while broker.control.statistics().connections:  # ended by the test's own time limit
            await trio.lowlevel.checkpoint()
