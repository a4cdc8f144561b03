"""Policies that have a person asked: any layer can, and none can take it back."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden import Code, start_agent_control
from tabwarden.authority.approvals import ApprovalBook
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.approvals import ApprovingAuthorizer, PendingApprovals, Reach
from tabwarden_adapters.policy import StaticPolicy
from tabwarden_adapters.policy.comparing import compare
from tabwarden_adapters.policy.expectations import load_cases, try_cases
from tabwarden_adapters.policy.explaining import explain
from tabwarden_adapters.policy.layers import CompiledPolicy
from tabwarden_adapters.policy.reading import read_document

from tests.approvals.support import TAB, FakeTabs
from tests.attacks.serving import until
from tests.attacks.toolkit import Peer, connect, envelope
from tests.policy.signed_support import CLICKER, HELPER, NOW, Device, ask, document_bytes, policy
from tests.policy.test_static import decide
from tests.support.fakes import MemoryAudit

HELPERS, CLICKERS = policy()["grants"]
READERS = policy()["profiles"][0]


def compiled(**changes: Any) -> CompiledPolicy:
    return CompiledPolicy(read_document(document_bytes(**changes)))


async def asked(tmp_path: Path, **changes: Any) -> dict[str, str | None]:
    """By which rule a person is asked, for what is allowed."""
    device = Device(tmp_path)
    device.publish(**changes)
    device.policy.load()
    answers = {
        f"{caller.principal_id} {action}": await ask(device.policy, caller, action, args)
        for caller in (HELPER, CLICKER)
        for action, args in (("read", {}), ("click", {"selector": "#a"}))
    }
    for one in answers.values():
        if one.ask is not None:
            assert one.allowed
            assert not any(one.grants(scope) for scope in one.scopes)
    return {name: one.ask for name, one in answers.items() if one.allowed}


async def test_any_layer_asks(tmp_path: Path) -> None:
    everybody = {"helper read": None, "clicker read": None, "clicker click": None}
    for number, (changes, asks) in enumerate(
        (
            ({}, {}),
            ({"agents__ask": ["read"]}, {"helper read": "agents.ask", "clicker read": "agents.ask"}),
            ({"profiles": [{**READERS, "ask": ["read"]}]}, {"helper read": "profile:readers.ask"}),
            (
                {"grants": [HELPERS, {**CLICKERS, "ask": ["click"]}]},
                {"clicker click": "grant:clicker.ask"},
            ),
            (
                {"agents__ask": ["click"], "grants": [{**HELPERS, "ask": ["read", "click"]}, CLICKERS]},
                {"helper read": "grant:helper.ask", "clicker click": "agents.ask"},
            ),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert await asked(folder, **changes) == everybody | asks


async def test_a_scope_that_is_not_given_is_denied_without_asking(tmp_path: Path) -> None:
    device = Device(tmp_path)
    device.publish(agents__ask=["click"])
    device.policy.load()
    answer = await ask(device.policy, HELPER, "click", {"selector": "#a"})
    assert (answer.allowed, answer.ask, answer.code) == (False, None, Code.POLICY_DENIED)
    answer = await ask(device.policy, HELPER, "navigate", {"url": "https://elsewhere.test"})
    assert (answer.allowed, answer.ask, answer.code) == (False, None, Code.DESTINATION_DENIED)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"agents__ask": ["raed"]}, "agents.ask[0]: there is no scope 'raed'; did you mean 'read'?"),
        ({"agents__ask": ["read", "read"]}, "agents.ask[1]: 'read' is listed twice"),
        ({"agents__ask": "read"}, "agents.ask: expected array, got str"),
        ({"profiles": [{**READERS, "ask": ["x"]}]}, "profiles[0].ask[0]: there is no scope 'x'"),
        ({"grants": [{**HELPERS, "ask": [1]}]}, "grants[0].ask[0]: expected str, got int"),
        ({"grants": [{**HELPERS, "ask": ["click", "x"]}]}, "grants[0].ask[1]: there is no scope 'x'"),
        (
            {"grants": [{**HELPERS, "asks": []}]},
            "grants[0].asks: there is no such field; did you mean 'ask'?",
        ),
        (
            {"groups": [{"name": "g", "profiles": ["readers"], "ask": []}]},
            "groups[0].ask: there is no such field",
        ),
    ],
)
def test_a_malformed_list_is_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_document(document_bytes(**changes))
    assert str(caught.value).startswith(says)


def test_explain_says_who_asks() -> None:
    one = compiled(agents__ask=["read", "click"])
    verdict = explain(one, "helper", "read", "good.test", NOW).verdict
    assert (verdict.allowed, verdict.ask) == (True, "agents.ask")
    for grant, action, place in (("helper", "click", None), ("helper", "read", "bad.test")):
        verdict = explain(one, grant, action, place, NOW).verdict
        assert (verdict.allowed, verdict.ask) == (False, None)


def test_diff_tells_what_needs_a_person() -> None:
    plain, asking = compiled(), compiled(profiles=[{**READERS, "ask": ["read"]}])
    assert [f"{one.grant} {one.change} {one.right}" for one in compare(plain, asking, NOW)] == [
        "helper lost scope read",
        "helper gained scope read if a person agrees",
    ]
    assert [f"{one.grant} {one.change} {one.right}" for one in compare(asking, plain, NOW)] == [
        "helper lost scope read if a person agrees",
        "helper gained scope read",
    ]


def test_try_knows_ask(tmp_path: Path) -> None:
    one = compiled(agents__ask=["read"])
    cases = tmp_path / "cases.json"
    expected: list[dict[str, Any]] = [
        {"grant": "helper", "action": "read", "expect": "ask", "rule": "agents.ask"},
        {"grant": "helper", "action": "read", "host": "bad.test", "expect": "deny"},
        {"grant": "clicker", "action": "click", "expect": "allow"},
        {"grant": "helper", "action": "read", "expect": "allow"},
        {"grant": "clicker", "action": "click", "expect": "ask"},
        {"grant": "helper", "action": "read", "expect": "ask", "rule": "grant:helper.ask"},
    ]
    cases.write_text(json.dumps({"cases": expected}))
    outcomes = try_cases(one, load_cases(cases), NOW)
    assert [outcome.as_expected for outcome in outcomes] == [True, True, True, False, False, False]
    assert [outcome.decided for outcome in outcomes] == ["ask", "deny", "allow", "ask", "allow", "ask"]


async def test_the_static_policy_asks_too() -> None:
    one = StaticPolicy({"scopes": ["read", "click"], "ask": ["click", "type"]})
    assert (await decide(one, "read")).ask is None
    assert (await decide(one, "click")).ask == "static.ask"
    assert not (await decide(one, "click")).grants("browser:interact")
    assert (await decide(one, "type")).rule == "scopes.not-enabled"
    assert (await decide(one, "type")).ask is None
    for wrong, says in (
        (["clikc"], "policy.ask: there is no scope 'clikc'; did"),
        ("click", "policy.ask must"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            StaticPolicy({"ask": wrong})


@pytest.mark.parametrize("change", ["another policy", "expired", "the same document again"])
async def test_what_was_decided_under_one_policy_never_starts_under_another(
    tmp_path: Path, change: str
) -> None:
    """The policy changes while the authorization goes to disk, after everything else was looked at."""
    device, audit, done = Device(tmp_path), MemoryAudit(), []
    grants = [{"id": "one", "name": "One", "scopes": ["sessions"], "generation": 1}]
    device.publish(grants=grants)
    device.policy.load()

    def swap() -> None:
        if change == "another policy":
            device.publish(version=6, grants=grants)
            device.policy._publish(*device.policy._take())
        elif change == "expired":
            device.clock.wall += 30 * 86_400_000
        else:
            device.policy._publish(*device.policy._take())

    audit.durable_hook = swap

    async def sessions(arguments: object, context: object) -> list[object]:
        done.append(arguments)
        return []

    async with trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=device.policy,
            actions={"sessions": sessions},
            audit=audit,
            identity_mode="individual",
        )
        await control.reconcile_principals(device.policy.grants())
        peer = Peer(await control.issue_principal("one", 1), control._runtime.clock)
        async with connect(peer.host) as wire:
            opened = await peer.challenge_on(wire)
            action = peer.m3(opened)
            reply = action.open((await wire.ask(action.request.raw(peer.host))).body)
        if change == "the same document again":
            assert (reply["status"], len(done)) == (200, 1)
        else:
            assert (reply["status"], reply["body"]["code"], done) == (409, "stale", [])
            assert [event.outcome for event in audit.agent_events] == ["authorized", "failed"]
        await control.close()


async def test_a_signed_policy_that_asks_in_a_broker(tmp_path: Path) -> None:
    device, audit = Device(tmp_path), MemoryAudit()
    grants = [{"id": "one", "name": "One", "scopes": ["click"], "ask": ["click"], "generation": 1}]
    device.publish(grants=grants)
    device.policy.load()
    book = ApprovalBook()
    board = PendingApprovals(book, device.clock, lambda: device.policy.policy_version)

    authorize = ApprovingAuthorizer(
        device.policy,
        board,
        book=book,
        clock=device.clock,
        policy_version=lambda: device.policy.policy_version,
        place=FakeTabs(),
    )

    async def click(arguments: object, context: object) -> dict[str, bool]:
        return {"completed": True}

    replies: list[Any] = []

    async def call() -> None:
        async with connect(peer.host) as wire:
            action = peer.m3(
                await peer.challenge_on(wire),
                envelope("click", args={"selector": "#a", "sessionId": TAB}),
            )
            replies.append(action.open((await wire.ask(action.request.raw(peer.host))).body)["body"])

    async with trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=authorize,
            actions={"click": click},
            audit=audit,
            identity_mode="individual",
            clock=device.clock,
        )
        await control.reconcile_principals(device.policy.grants())
        peer = Peer(await control.issue_principal("one", 1), device.clock)
        with board.attending():
            nursery.start_soon(call)
            await until(board.pending)
            [one] = board.pending()
            board.answer(one.ticket_id, one.allow(Reach.SESSION))
            await until(lambda: replies)
            await call()
            assert replies == [{"completed": True}] * 2
            assert [event.rule for event in audit.terminal()] == ["approval:session grant:one.ask"] * 2
            device.publish(version=6, grants=grants)
            device.policy._publish(*device.policy._take())
            assert board.remembered() == ()
            nursery.start_soon(call)
            await until(board.pending)
            device.publish(version=7, grants=[{**grants[0], "scopes": []}])
            await device.policy.reload()
            authorize.policy_changed()
            await until(lambda: len(replies) == 3)
            assert replies[-1] == {"code": "stale", "effect": "not_started"}
            await call()
            assert replies[-1]["code"] == "policy-denied"
        await control.close()
