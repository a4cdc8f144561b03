"""No garbage collection between a revocation and its last effect, and the collector as it was afterwards."""

import gc
from collections.abc import Iterator

import pytest
import trio
from tabwarden import AgentClient, Grant
from tabwarden.errors import ClientError
from tabwarden.service.collector_pause import collector_paused

from tests.attacks.serving import OWN, serve


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    assert gc.isenabled()
    yield
    gc.enable()


def test_it_is_off_until_the_last_block_ends() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


async def test_blocks_may_end_in_any_order(nursery) -> None:
    ends = [trio.Event(), trio.Event()]

    async def hold(end: trio.Event, *, task_status: trio.TaskStatus[None]) -> None:
        with collector_paused():
            task_status.started()
            await end.wait()

    for end in ends:
        await nursery.start(hold, end)
    ends[0].set()
    await trio.testing.wait_all_tasks_blocked()
    assert not gc.isenabled()
    ends[1].set()
    await trio.testing.wait_all_tasks_blocked()
    assert gc.isenabled()


async def test_it_goes_on_after_an_error_and_after_a_cancellation() -> None:
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()
    with trio.CancelScope() as scope, collector_paused():
        scope.cancel()
        await trio.sleep_forever()
    assert gc.isenabled()


def test_what_its_program_has_switched_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


@pytest.mark.parametrize("way", ["revoke_principal", "reconcile", "policy_changed", "revoke"])
async def test_calls_end_without_a_collection_in_between(way, nursery) -> None:
    inside, ended, seen = trio.Event(), trio.Event(), []

    async def wait(arguments: object, context: object) -> None:
        inside.set()
        try:
            await trio.sleep_forever()
        finally:
            seen.append(gc.isenabled())

    async def call(client: AgentClient) -> None:
        with pytest.raises(ClientError):
            await client.call("sessions")
        ended.set()

    async with serve(OWN, actions={"sessions": wait}, identity_mode="individual") as broker:
        control = broker.control
        await control.reconcile_principals([Grant("agent", 1)])
        async with AgentClient(await control.issue_principal("agent", 1)) as client:
            nursery.start_soon(call, client)
            await inside.wait()
            assert gc.isenabled()
            await {
                "revoke_principal": lambda: control.revoke_principal("agent"),
                "reconcile": lambda: control.reconcile_principals([]),
                "policy_changed": control.policy_changed,
                "revoke": control.revoke,
            }[way]()
            assert seen == [False]
            assert gc.isenabled()
            await ended.wait()
