"""What happens while a host's callback is waited for: at every await of every action."""

from functools import partial

import pytest
import trio
from tabwarden.actions import parse_arguments
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser import AdapterEvent

from tests.browser.agent import Call
from tests.browser.host_contract.fake_host import (
    ACTIONS,
    AWAITS,
    COMMITTED,
    ONE,
    TWO,
    UNAUDITED,
    FakeHost,
    effect,
    open_host,
)

ACTING = ("scroll", "click", "type", "select", "check")
LOADING = ("navigate", "back", "forward", "reload")
DONE_AT = {"navigate": "navigate", "ai": "ai", "tabs:close": "tabs:close", "reload": "reload"}
DONE_AT |= dict.fromkeys(ACTING, "act") | dict.fromkeys(("back", "forward"), "history")


BEFORE = ("audit started", "inspect to-model", "inspect to-page")


def committed(action: str, point: str) -> bool:
    """What is known of effects when an action ends because of what happened at `point`."""
    return action in DONE_AT and point not in BEFORE


@pytest.mark.parametrize(("action", "point"), AWAITS)
async def test_the_policy_changes(action, point):
    host = open_host()
    host.meanwhile[point] = host.policy_changes
    call = Call(action)
    error = await host.fails(action, call, **ACTIONS[action][0])
    assert (error.code, error.committed) == (Code.STALE, committed(action, point))
    assert effect(error, call) == committed(action, point)
    assert bool(host.done) is committed(action, point)
    _ended_once(host, action)


@pytest.mark.parametrize(("action", "point"), AWAITS)
async def test_the_call_ends(action, point):
    host = open_host()
    call = Call(action)
    host.meanwhile[point] = lambda: setattr(call, "ended", Code.REVOKED)
    error = await host.fails(action, call, **ACTIONS[action][0])
    assert (error.code, effect(error, call)) == (Code.REVOKED, committed(action, point))
    assert host.passed[-1].startswith("audit")
    _ended_once(host, action)


# An act was one on what was captured, and a load is the host's own business until it answers.
HELD_TO_A_TAB = [
    (action, point)
    for action, point in AWAITS
    if action not in ("sessions", "bookmarks:list", "tabs:close")
    and not (action in ACTING and point in ("act", "audit completed"))
    and point not in ("navigate", "history", "reload")
]


@pytest.mark.parametrize(("action", "point"), UNAUDITED)
async def test_what_holds_without_an_audit_of_the_host(action, point):
    for happening in ("policy_changes", "call_ends", "moves"):
        if happening == "moves" and (action, point) not in HELD_TO_A_TAB:
            continue
        host = open_host()
        host.audited = False
        call = Call(action)
        if happening == "call_ends":
            host.meanwhile[point] = partial(setattr, call, "ended", Code.REVOKED)
        else:
            host.meanwhile[point] = getattr(host, happening)
        error = await host.fails(action, call, **ACTIONS[action][0])
        assert error.code is (Code.REVOKED if happening == "call_ends" else Code.STALE)
        assert effect(error, call) == committed(action, point)
        assert host.passed[-1] == point  # nothing more was asked for


@pytest.mark.parametrize("happening", ["moves", "tab_goes", "switches"])
@pytest.mark.parametrize(("action", "point"), HELD_TO_A_TAB)
async def test_the_tab_is_another_one_then(action, point, happening):
    host = open_host()
    host.meanwhile[point] = getattr(host, happening)
    call = Call(action)
    error = await host.fails(action, call, **ACTIONS[action][0])
    gone = happening == "tab_goes" and not (action in LOADING and point == "audit completed")
    assert error.code is (Code.SESSION_GONE if gone else Code.STALE)
    assert effect(error, call) == committed(action, point)
    _ended_once(host, action)


@pytest.mark.parametrize("happening", ["moves", "tab_goes", "switches"])
@pytest.mark.parametrize("point", ["act", "audit completed"])
@pytest.mark.parametrize("action", ACTING)
async def test_what_a_page_does_after_an_act_is_its_own(action, point, happening):
    host = open_host()
    host.meanwhile[point] = getattr(host, happening)
    assert (await host.call(action, **ACTIONS[action][0]))["completed"]


@pytest.mark.parametrize("action", LOADING)
async def test_a_tab_that_was_switched_away_from_while_it_loaded(action):
    host = open_host()
    host.meanwhile[DONE_AT[action]] = host.switches
    call = Call(action)
    error = await host.fails(action, call, **ACTIONS[action][0])
    assert (error.code, effect(error, call)) == (Code.STALE, COMMITTED)
    assert host.tabs[ONE].generation == 1


async def test_a_background_capture_survives_another_tab_being_chosen():
    host = open_host()
    host.meanwhile["run"] = lambda: setattr(host, "front", None)
    assert (await host.call("read", sessionId=TWO))["text"] == "what shows"


async def test_without_a_policy_version_a_click_that_leads_elsewhere_is_not_believed():
    host = open_host()
    adapters = host.adapters(policy_version=None, app_controls=None)
    _, click = parse_arguments("click", {"selector": "#send"})
    await adapters["click"](click, Call("click"))
    host.meanwhile["act"] = host.moves
    call = Call("click")
    with pytest.raises(ActionError) as caught:
        await adapters["click"](click, call)
    assert (caught.value.code, effect(caught.value, call)) == (Code.STALE, COMMITTED)


async def test_a_title_of_a_page_that_has_gone_meanwhile_is_withheld():
    host = open_host()
    host.meanwhile["inspect from-page"] = host.moves
    assert [tab["title"] for tab in await host.call("sessions")] == ["", ""]


# ---- cancellation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "point"), [pair for pair in AWAITS if pair[1] != "audit completed"])
async def test_cancelled_at_every_await(action, point):
    host = open_host()
    host.halt = point
    call = Call(action)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(host.call, action, call, **ACTIONS[action][0]))
            await host.halted.wait()
            nursery.cancel_scope.cancel()
    after = host.passed[host.passed.index(point) + 1 :]
    assert after == ([] if point == "audit started" else ["audit failed"])
    if point != "audit started":
        known = True if "done" in call.effects else None if "begin" in call.effects else False
        assert host.events[-1] == AdapterEvent(action, host.events[0].session_id, "failed", known)


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_record_that_never_comes_back_is_not_waited_for_for_ever(action, autojump_clock):
    for cancelled in (True, False):
        host = open_host()
        host.halt = "audit completed"
        call = Call(action)
        ended: list[ActionError] = []

        async def run(host: FakeHost = host, call: Call = call, ended: list[ActionError] = ended) -> None:
            ended.append(await host.fails(action, call, **ACTIONS[action][0]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await host.halted.wait()
            if cancelled:
                nursery.cancel_scope.cancel()
        assert [error.code for error in ended] == [Code.AUDIT_UNAVAILABLE]
        assert effect(ended[0], call) == (action in DONE_AT)


# ---- the inspector ----------------------------------------------------------------------------------


INSPECTED = [(action, point) for action, point in AWAITS if point.startswith("inspect")]


@pytest.mark.parametrize("raised", [RuntimeError("text"), ActionError(Code.CONTENT_DENIED), KeyError("text")])
@pytest.mark.parametrize(("action", "point"), INSPECTED)
async def test_what_the_inspector_does_not_pass_is_withheld(action, point, raised):
    host = open_host()
    host.instead[point] = raised
    if action == "sessions" and isinstance(raised, ActionError):
        assert [tab["title"] for tab in await host.call(action)] == ["", ""]
        return
    with pytest.raises(type(raised)):
        await host.call(action, **ACTIONS[action][0])
    if point in BEFORE:
        assert host.done == []
    _ended_once(host, action)


@pytest.mark.parametrize("answer", [1, [], b"", True])
@pytest.mark.parametrize(("action", "point"), INSPECTED)
async def test_what_the_inspector_may_answer(action, point, answer):
    host = open_host()
    host.instead[point] = answer
    error = await host.fails(action, **ACTIONS[action][0])
    assert (error.code, error.rule) == (Code.FAILURE, "host-contract")
    host.instead[point] = "known-finding"
    await host.call(action, **ACTIONS[action][0])


async def test_what_the_inspector_gets_to_see():
    host = open_host()
    host.tabs[TWO].url = "https://elsewhere.test/"
    await host.call("sessions")
    assert host.inspected == [("from-page", "Title")]
    host.inspected.clear()
    option = {"value": "v-1", "label": "l-1", "selected": True}
    control = {
        "ref": "r.1",
        "role": "combobox",
        "name": "n-1",
        "selector": "#s",
        "value": "c-1",
        "options": [option],
    }
    host.instead["run"] = {"controls": [control], "next": None, "frames": ["f-1"], "cut": False}
    await host.call("inspect")
    ((direction, text),) = host.inspected
    assert direction == "from-page"
    assert {"n-1", "c-1", "v-1", "l-1", "f-1", "#s"} <= set(text.split("\n"))
    host.inspected.clear()
    await host.call("ai", prompt="ask")
    assert host.inspected == [("to-model", "ask"), ("from-model", "an answer")]
    host.inspected.clear()
    mark = {"id": "1", "title": "t-1", "url": "https://b.test/", "folder": "d-1"}
    marks = {"managed": [], "personal": [mark], "revision": 1, "policyVersion": 1, "canMutate": False}
    host.instead["bookmarks:list"] = marks
    await host.call("bookmarks:list")
    assert {"t-1", "https://b.test/", "d-1"} <= set(host.inspected[0][1].split("\n"))


# ---- the audit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ACTIONS)
async def test_nothing_is_done_that_is_not_recorded(action):
    host = open_host()
    host.instead["audit started"] = OSError("disk")
    call = Call(action)
    error = await host.fails(action, call, **ACTIONS[action][0])
    assert (error.code, effect(error, call)) == (Code.AUDIT_UNAVAILABLE, False)
    assert (host.passed, host.done) == (["audit started"], [])


@pytest.mark.parametrize("action", ACTIONS)
async def test_nothing_is_told_whose_end_is_not_recorded(action):
    host = open_host()
    host.instead["audit completed"] = OSError("disk")
    call = Call(action)
    error = await host.fails(action, call, **ACTIONS[action][0])
    assert (error.code, effect(error, call)) == (Code.AUDIT_UNAVAILABLE, action in DONE_AT)


async def test_what_the_audit_is_told():
    host = open_host()
    await host.call("click", selector="#send")
    assert host.events == [
        AdapterEvent("click", ONE, "started", False),
        AdapterEvent("click", ONE, "completed", True),
    ]
    host.events.clear()
    host.instead["act"] = ActionError(Code.TARGET_DENIED, rule="target-none")
    await host.fails("click", selector="#send")
    assert host.events[-1] == AdapterEvent("click", ONE, "denied", None)
    host.instead["act"] = RuntimeError("text of a page")
    with pytest.raises(RuntimeError):
        await host.call("click", selector="#send")
    assert host.events[-1] == AdapterEvent("click", ONE, "failed", None)


@pytest.mark.parametrize("point", ["run", "act", "navigate", "ai", "bookmarks:list", "get_sessions"])
async def test_a_fault_of_the_host_passes_for_the_broker_to_report(point):
    host = open_host()
    action = next(name for name, (_, points) in ACTIONS.items() if point in points)
    host.instead[point] = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        await host.call(action, **ACTIONS[action][0])
    _ended_once(host, action)


def _ended_once(host: FakeHost, action: str) -> None:
    outcomes = [event.outcome for event in host.events]
    assert outcomes[:1] == ["started"]
    assert len(outcomes) == 2
    assert {event.action for event in host.events} == {action}
