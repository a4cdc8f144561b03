"""Attack 60: without a durable record of the authorization nothing is done."""

import pytest
import trio
from tabwarden.errors import AuditUnavailable, HostReason

from tests.attacks.serving import serve
from tests.attacks.toolkit import envelope, peer_of
from tests.support.fakes import MemoryAudit

TAB = "00000000-0000-0000-0000-000000000000"

ERRORS = [
    AuditUnavailable(),
    OSError(28, "marked: no space left on device"),
    OSError(30, "marked: read-only file system"),
    RuntimeError("marked"),
]


class Broken(MemoryAudit):
    """Raises `error` at one step."""

    def __init__(self, step: str, error: BaseException) -> None:
        super().__init__()
        self.step, self.error = step, error
        if step == "durable":
            self.durable_hook = self._fail
        elif step == "settle":
            self.settle_hook = self._fail

    def _fail(self) -> None:
        raise self.error

    def admit(self, event):
        if self.step == "admit":
            raise self.error
        return super().admit(event)

    def note(self, event):
        if self.step == "admit" and hasattr(event, "request_id"):
            raise self.error
        super().note(event)


@pytest.mark.parametrize("step", ["admit", "durable"])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
async def test_attack_60_no_record_no_dispatch(transport, step, error):
    done: list[str] = []

    async def act(arguments: object, context: object) -> dict[str, bool]:
        done.append("acted")
        return {"completed": True}

    audit = Broken(step, error)
    async with serve(transport, allow=("reload",), actions={"reload": act}, audit=audit) as broker:
        peer = peer_of(broker)
        status, body = await peer.call(broker, envelope("reload", args={"sessionId": TAB}))
        assert (status, body) == (503, {"code": "audit-unavailable", "effect": "not_started"})
        assert done == []
        assert HostReason.AUDIT_UNAVAILABLE in broker.reasons.told
        assert [event.code for event in audit.terminal()] == (
            ["audit-unavailable"] if step == "durable" else []
        )
        # The broker lives, and serves again when the audit does.
        audit.step, audit.durable_hook = "none", None
        status, body = await peer.call(broker, envelope("reload", args={"sessionId": TAB}))
        assert (status, body) == (200, {"completed": True})


@pytest.mark.parametrize("error", ERRORS, ids=repr)
async def test_attack_60_an_outcome_that_cannot_be_recorded_is_not_released(transport, error):
    async def act(arguments: object, context: object) -> dict[str, bool]:
        return {"completed": True}

    audit = Broken("settle", error)
    async with serve(transport, allow=("reload",), actions={"reload": act}, audit=audit) as broker:
        peer = peer_of(broker)
        status, body = await peer.call(broker, envelope("reload", args={"sessionId": TAB}))
        # It was done, and the caller is told so; what it gave stays here.
        assert (status, body) == (503, {"code": "audit-unavailable", "effect": "committed"})
        assert broker.reasons.told == [HostReason.AUDIT_UNAVAILABLE]
        audit.settle_hook = None
        assert (await peer.call(broker, envelope("reload", args={"sessionId": TAB})))[0] == 200


async def test_attack_60_the_authorization_is_durable_before_the_action_begins(transport):
    order: list[str] = []
    audit = MemoryAudit()

    async def slow_disk() -> None:
        await trio.lowlevel.checkpoint()
        order.append("durable")

    async def act(arguments: object, context: object) -> list[object]:
        order.append("act")
        assert [event.outcome for event in audit.agent_events] == ["authorized"]
        return []

    audit.durable_hook = slow_disk
    audit.settle_hook = lambda: order.append("settle")
    async with serve(transport, actions={"sessions": act}, audit=audit) as broker:
        assert await peer_of(broker).call(broker) == (200, [])
    assert order == ["durable", "act", "settle"]
    first, last = audit.agent_events
    assert (first.outcome, last.outcome) == ("authorized", "completed")
    assert first.request_id == last.request_id
