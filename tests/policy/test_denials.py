"""The audit learns by which rule a tab's own address was refused; the agent does not."""

from typing import Any

import pytest
import trio
from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller
from tabwarden_adapters.policy import StaticPolicy, naming_denials

from tests.attacks.serving import OWN, serve
from tests.attacks.toolkit import envelope, peer_of
from tests.policy.signed_support import HELPER, Device

NOBODY: Any = None


def static(*hosts: str) -> StaticPolicy:
    return StaticPolicy({"scopes": ["sessions"], "allowed_hosts": hosts})


def adapter_that(*asks: str, error: ActionError | None = None) -> Any:
    policy = static("good.test")

    async def act(arguments: object, context: object) -> str:
        for href in asks:
            policy.destination_allowed(Caller(None, None), href)
            await trio.lowlevel.checkpoint()
        if error is not None:
            raise error
        return "done"

    return naming_denials({"read": act})["read"]


DENIED = ActionError(Code.DESTINATION_DENIED, committed=None)


@pytest.mark.parametrize(
    ("asks", "error", "rule"),
    [
        (["https://bad.test/"], DENIED, "hosts.not-listed"),
        (["https://bad.test/", "ftp://bad.test/"], DENIED, "url.scheme"),
        (["https://good.test/"], DENIED, None),
        (["https://bad.test/"], ActionError(Code.DESTINATION_DENIED, rule="own"), "own"),
        (["https://bad.test/"], ActionError(Code.STALE), None),
    ],
)
async def test_only_a_denied_destination_takes_the_rule(asks, error, rule) -> None:
    with pytest.raises(ActionError) as caught:
        await adapter_that(*asks, error=error)(None, NOBODY)
    assert (caught.value.code, caught.value.rule) == (error.code, rule)
    assert caught.value.committed is error.committed


async def test_what_is_done_is_done_and_another_call_knows_nothing_of_it() -> None:
    assert await adapter_that("https://bad.test/")(None, NOBODY) == "done"
    with pytest.raises(ActionError) as caught:
        await adapter_that(error=DENIED)(None, NOBODY)
    assert caught.value.rule is None


async def test_two_at_once_do_not_meet() -> None:
    rules = []

    async def one(href: str) -> None:
        with pytest.raises(ActionError) as caught:
            await adapter_that(href, error=DENIED)(None, NOBODY)
        rules.append(caught.value.rule)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, "https://bad.test/")
        nursery.start_soon(one, "ftp://bad.test/")
    assert sorted(rules) == ["hosts.not-listed", "url.scheme"]


async def test_a_signed_policy_names_its_layer_in_the_audit_only(tmp_path) -> None:
    device = Device(tmp_path)
    device.publish()
    device.policy.load()

    async def act(arguments: object, context: object) -> list[object]:
        if not device.policy.destination_allowed(HELPER, "https://bad.wide.test/"):
            raise ActionError(Code.DESTINATION_DENIED)
        return []

    async with serve(OWN, actions=naming_denials({"sessions": act})) as broker:
        status, body = await peer_of(broker).call(broker, envelope("sessions"))
        assert (status, body) == (403, {"code": "destination-denied", "effect": "not_started"})
        assert [event.rule for event in broker.audit.terminal()] == ["destinations.block"]
