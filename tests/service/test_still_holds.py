"""The last look before an action: after its record is durable, and with nothing in between."""

from collections.abc import Callable
from typing import Any

import pytest
from tabwarden import Authorization
from tabwarden.errors import HostReason
from tabwarden.model import AuthorizedAction

from tests.attacks.serving import serve
from tests.attacks.toolkit import peer_of
from tests.support.fakes import MemoryAudit


def answer(**more: Any) -> Any:
    async def authorize(*arguments: Any, **_: Any) -> Authorization:
        return Authorization(True, scopes=frozenset({"sessions:list"}), rule="test.yes", **more)

    return authorize


class Act:
    def __init__(self) -> None:
        self.done = 0

    async def __call__(self, arguments: object, context: object) -> list[object]:
        self.done += 1
        return []


@pytest.mark.parametrize(
    ("says", "code", "told"),
    [
        (lambda: False, "stale", []),
        (lambda: None, "stale", []),
        (lambda: 1, "stale", []),
        (lambda: 1 / 0, "failure", [HostReason.AUTHORIZER_FAILED]),
        (lambda: (_ for _ in ()).throw(KeyboardInterrupt), "failure", [HostReason.AUTHORIZER_FAILED]),
    ],
)
async def test_what_does_not_hold_any_more_is_not_done(
    says: Callable[[], Any], code: str, told: list[HostReason]
) -> None:
    act = Act()
    async with serve(authorize=answer(still_holds=says), actions={"sessions": act}) as broker:
        _, body = await peer_of(broker).call(broker)
        assert body == {"code": code, "effect": "not_started"}
        assert broker.reasons.told == told
        assert [event.outcome for event in broker.audit.agent_events] == ["authorized", "failed"]
        assert broker.audit.agent_events[-1].committed is False
    assert act.done == 0


async def test_it_is_looked_at_once_after_the_record_is_durable_and_right_before_the_action() -> None:
    order: list[str] = []
    audit = MemoryAudit()
    audit.durable_hook = lambda: order.append("durable")

    def holds() -> bool:
        order.append("looked")
        return True

    async def act(arguments: object, context: object) -> list[object]:
        order.append("begun")
        return []

    async with serve(authorize=answer(still_holds=holds), actions={"sessions": act}, audit=audit) as broker:
        assert await peer_of(broker).call(broker) == (200, [])
    assert order == ["durable", "looked", "begun"]


async def test_what_asks_a_person_is_not_granted_by_a_broker_that_asks_nobody() -> None:
    act = Act()
    async with serve(authorize=answer(ask="test.ask"), actions={"sessions": act}) as broker:
        status, body = await peer_of(broker).call(broker)
        assert (status, body) == (403, {"code": "no-approver", "effect": "not_started"})
        [event] = broker.audit.agent_events
        assert (event.outcome, event.code, event.rule) == ("denied", "no-approver", "test.ask")
    assert act.done == 0


def test_an_answer_that_asks_makes_no_authorized_action() -> None:
    for ask in ("test.ask", ""):
        asking = Authorization(True, scopes=frozenset({"sessions:list"}), ask=ask)
        assert not asking.grants("sessions:list")
        with pytest.raises(ValueError, match="not authorized"):
            AuthorizedAction.of(_Request(), asking)  # type: ignore[arg-type]


class _Request:
    internal_scope = "sessions:list"
