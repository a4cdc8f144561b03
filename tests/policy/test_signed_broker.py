"""A running broker under a signed policy: what a new file takes away is gone, what it leaves goes on."""

import copy
from pathlib import Path

import pytest
import trio
from tabwarden import AgentClient, start_agent_control
from tabwarden.errors import CallFailed, ClientError, ConfigurationError
from tabwarden_adapters.policy import SignedPolicy

from tests.policy.signed_support import DAY, Device
from tests.support.fakes import MemoryAudit

SCOPES = ["sessions", "navigate"]
GRANTS = [
    {"id": "one", "name": "One", "scopes": SCOPES, "generation": 1},
    {"id": "two", "name": "Two", "scopes": ["sessions"], "generation": 1},
]


class Held:
    """The action `sessions`, held until it is let go."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.go = trio.Event()

    async def __call__(self, arguments: object, context: object) -> list[object]:
        self.begun.set()
        await self.go.wait()
        return []


async def test_publish_call_revoke_rotate_and_restart(tmp_path: Path) -> None:
    device, audit, held = Device(tmp_path), MemoryAudit(), Held()
    held.go.set()

    async def reconcile() -> None:
        await control.reconcile_principals(signed.grants())

    signed = SignedPolicy(
        device.file, device.state, device.clock, report=device.reports.append, on_change=reconcile
    )
    device.publish(grants=GRANTS)
    signed.load()
    async with trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=signed,
            actions={"sessions": held},
            audit=audit,
            identity_mode=signed.identity_mode,
            clock=device.clock,
        )
        await reconcile()
        with pytest.raises(ConfigurationError):
            await control.issue_principal("one", 2)
        one = await control.issue_principal("one", 1)
        two = await control.issue_principal("two", 1)
        async with (
            AgentClient(one, clock=device.clock) as first,
            AgentClient(two, clock=device.clock) as second,
        ):
            assert await first.call("sessions") == []
            with pytest.raises(CallFailed, match="policy-denied"):
                await second.call("navigate", {"url": "https://good.test/"})
            assert audit.terminal()[-1].rule == "grant:two.scopes"
            held.go, held.begun = trio.Event(), trio.Event()
            ended: list[str] = []

            async def call_that_is_taken_away() -> None:
                try:
                    ended.append(str(await first.call("sessions")))
                except ClientError as error:
                    ended.append(type(error).__name__)

            nursery.start_soon(call_that_is_taken_away)
            await held.begun.wait()
            without_one = copy.deepcopy(GRANTS)
            without_one[0]["enabled"] = False
            device.publish(version=6, grants=without_one)
            assert (await signed.reload()).kind == "taken"
            with trio.fail_after(30):
                while not ended:
                    await trio.lowlevel.checkpoint()
            assert ended != ["[]"]
            assert audit.terminal()[-1].code == "revoked"
            held.go.set()
            assert await second.call("sessions") == []
            device.publish(version=5, grants=GRANTS)
            assert (await signed.reload()).kind == "refused"
            with pytest.raises(ConfigurationError):
                await control.issue_principal("one", 1)
            device.clock.wall += 40 * DAY
            await signed.look()
            with pytest.raises(ClientError):
                await second.call("sessions")
        await control.close()
