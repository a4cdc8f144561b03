"""A third party's host behind a running broker: what the agent, the audit and the host are told."""

import pytest
import trio
from tabwarden import AgentClient, Limits, start_agent_control
from tabwarden.errors import CallFailed, ClientError, Code, HostReason
from tabwarden.model import AuditOutcome

from tests.browser.host_contract.fake_host import ACTIONS, TWO, FakeHost, open_host
from tests.support.fakes import AllowOnly, MemoryAudit, Reasons


class Broker:
    def __init__(self, nursery, limits: Limits | None = None) -> None:
        self.nursery = nursery
        self.limits = limits
        self.audit = MemoryAudit()
        self.reasons = Reasons()

    async def serve(self, host: FakeHost, **changes):
        self.control = await start_agent_control(
            self.nursery,
            authorize=AllowOnly(*ACTIONS, "settings:get", "application:state"),
            actions=host.adapters(**changes),
            audit=self.audit,
            on_error=self.reasons,
            limits=self.limits or Limits(),
        )
        return self.control.descriptor

    def last(self):
        return self.audit.terminal()[-1]


async def test_every_action_of_a_host(nursery):
    broker = Broker(nursery)
    async with AgentClient(await broker.serve(open_host())) as client:
        for action, (arguments, _) in ACTIONS.items():
            await client.call(action, arguments)
    assert {event.outcome for event in broker.audit.terminal()} == {AuditOutcome.COMPLETED}
    assert broker.reasons.told == []
    await broker.control.close()


async def test_what_a_host_does_not_give_is_not_available(nursery):
    broker = Broker(nursery)
    least = await broker.serve(open_host(), history=None, reload=None, ai=None, app_controls=None)
    async with AgentClient(least) as client:
        for action in ("back", "forward", "reload", "ai", "bookmarks:list", "tabs:close", "settings:get"):
            arguments = ACTIONS.get(action, ({}, []))[0]
            with pytest.raises(CallFailed) as caught:
                await client.call(action, arguments)
            assert (caught.value.code, caught.value.effect) == (Code.NOT_AVAILABLE, "not_started")
    await broker.control.close()


async def test_faults_of_a_host(nursery):
    """It is told of its exceptions, the audit of broken answers; the agent hears no word of either."""
    host = open_host()
    broker = Broker(nursery)
    async with AgentClient(await broker.serve(host)) as client:
        host.instead["act"] = RuntimeError("text of a page")
        with pytest.raises(CallFailed) as caught:
            await client.call("click", {"selector": "#send"})
        assert (caught.value.code, caught.value.effect) == (Code.FAILURE, "unknown")
        assert broker.reasons.told == [HostReason.ADAPTER_FAILED]
        host.instead["run"] = {"text": 1}
        with pytest.raises(CallFailed) as caught:
            await client.call("read", {})
        assert (caught.value.code, caught.value.effect) == (Code.FAILURE, "not_started")
        host.change = lambda context: object()
        with pytest.raises(CallFailed) as caught:
            await client.call("click", {"selector": "#send"})
        assert (caught.value.code, caught.value.effect) == (Code.FAILURE, "not_started")
        assert broker.last().rule == "host-contract"
    await broker.control.close()


async def test_effects_are_told_as_they_are(nursery):
    host = open_host()
    broker = Broker(nursery)
    async with AgentClient(await broker.serve(host)) as client:
        host.meanwhile["navigate"] = host.policy_changes
        with pytest.raises(CallFailed) as caught:
            await client.call("navigate", {"url": "https://allowed.test/a"})
        assert (caught.value.code, caught.value.effect) == (Code.STALE, "committed")
        assert broker.last().committed is True
        host.meanwhile["tabs:close"] = host.policy_changes
        with pytest.raises(CallFailed) as caught:
            await client.call("tabs:close", {"sessionId": TWO})
        assert (caught.value.code, caught.value.effect) == (Code.STALE, "committed")
    await broker.control.close()


@pytest.mark.parametrize(("action", "effect"), [("click", None), ("read", False), ("ai", None)])
async def test_a_revocation_while_the_host_is_at_work(nursery, action, effect):
    host = open_host()
    host.halt = ACTIONS[action][1][-2 if action == "ai" else 0]
    broker = Broker(nursery)
    descriptor = await broker.serve(host)

    async def call() -> None:
        async with AgentClient(descriptor) as client:
            with pytest.raises(ClientError):
                await client.call(action, ACTIONS[action][0])

    with trio.fail_after(60):
        async with trio.open_nursery() as inner:
            inner.start_soon(call)
            await host.halted.wait()
            await broker.control.revoke()
    event = broker.last()
    assert (event.code, event.committed) == (Code.REVOKED, effect)
    assert host.events[-1].outcome == "failed"
