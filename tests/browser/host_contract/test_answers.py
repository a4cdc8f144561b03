"""A third party's host: every callback, and every answer that the contract does not know."""

from typing import Any

import pytest
from tabwarden.actions import parse_arguments
from tabwarden.authority.projection import NotProjectable
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden_adapters.browser import Acted, SessionInfo, create_agent_adapters

from tests.browser.agent import Call
from tests.browser.host_contract.fake_host import (
    ACTIONS,
    ADDRESS,
    BOOKMARKS,
    CONTROL,
    CONTROLS,
    IN_A_TAB,
    NOT_STARTED,
    ONE,
    READ,
    TWO,
    UNKNOWN,
    FakeHost,
    changed,
    effect,
    open_host,
)

JUNK: list[Any] = [None, 1, "text", [], {}, object()]
READING = ["read", "inspect"]
ACTING = ["scroll", "click", "type", "select", "check"]
LOADING = ["navigate", "back", "forward", "reload"]


async def ends(host: FakeHost, action: str, **arguments: Any) -> tuple[Code, str | None, bool | None]:
    call = Call(action)
    error = await host.fails(action, call, **{**ACTIONS[action][0], **arguments})
    return error.code, error.rule, effect(error, call)


# ---- what it does -----------------------------------------------------------------------------------


async def test_a_host_that_allows_nothing_has_nothing_done():
    for action in ACTIONS:
        host = FakeHost()
        if action == "sessions":
            assert [tab["title"] for tab in await host.call(action)] == ["", ""]
        elif action == "bookmarks:list":
            assert await host.call(action) == BOOKMARKS  # no page is concerned
        else:
            assert await ends(host, action) == (Code.DESTINATION_DENIED, None, NOT_STARTED), action
        assert host.done == []


@pytest.mark.parametrize("action", ACTIONS)
async def test_every_callback_is_asked_once_in_its_place(action):
    host = open_host()
    await host.call(action, **ACTIONS[action][0])
    assert host.passed == ["audit started", *ACTIONS[action][1], "audit completed"]


async def test_what_comes_back():
    host = open_host()
    assert await host.call("sessions") == [
        {"id": ONE, "title": "Title", "foreground": True},
        {"id": TWO, "title": "Title", "foreground": False},
    ]
    untrusted = {"origin": "https://allowed.test", "untrusted": True}
    assert await host.call("read") == {"text": "what shows", **untrusted}
    assert await host.call("inspect") == {"controls": [CONTROL], **untrusted}
    assert await host.call("ai", prompt="?") == {"text": "an answer", "untrusted": True}
    host.instead["act"] = Acted(2, (TWO,))
    assert await host.call("click", selector="#send") == {
        "completed": True, "openedSessions": [TWO], "dialogsDismissed": 2,
    }  # fmt: skip
    host.change_fresh = changed(dialogs_dismissed=3)
    assert await host.call("reload") == {"completed": True, "dialogsDismissed": 3}
    host.change_fresh = changed(dialogs_dismissed=0)
    assert await host.call("navigate", url="https://ALLOWED.test./x") == {"completed": True}
    assert host.tabs[ONE].url == "https://allowed.test/x"


async def test_reading_and_asking_work_behind_and_acting_does_not():
    host = open_host()
    for action in ("read", "inspect", "ai", *LOADING):
        await host.call(action, sessionId=TWO, **ACTIONS[action][0])
    host.done.clear()
    for action in ACTING:
        assert await ends(host, action, sessionId=TWO) == (Code.CONFLICT, None, NOT_STARTED)
    host.interactive = False
    for action in ACTING:
        assert await ends(host, action) == (Code.TARGET_DENIED, "tab-not-interactive", NOT_STARTED)
    await host.call("read")
    assert host.done == []
    host.interactive = True
    for action in ACTING:
        await host.call(action, **ACTIONS[action][0])


async def test_a_tab_that_is_not_there():
    host = open_host()
    host.front = None
    for action in IN_A_TAB:
        if action != "tabs:close":
            assert (await ends(host, action))[0] is Code.UNKNOWN_SESSION
    del host.tabs[TWO]
    assert (await ends(host, "tabs:close"))[0] is Code.UNKNOWN_SESSION
    assert await host.call("sessions") == [{"id": ONE, "title": "Title", "foreground": False}]
    assert host.done == []


async def test_what_a_host_does_not_give_is_not_there():
    host = open_host()
    least = create_agent_adapters(
        get_context=host.get_context,
        get_sessions=host.get_sessions,
        context_current=host.context_current,
        navigate=host.navigate,
        inspect=None,
    )
    assert set(least) == {"sessions", "navigate", *READING, *ACTING}
    assert {"back", "forward"} < set(host.adapters(reload=None))
    assert "reload" not in host.adapters(reload=None)
    assert "ai" not in host.adapters(ai=None)
    assert "bookmarks:list" not in host.adapters(app_controls=None)


def test_what_cannot_be_set_up():
    host = open_host()
    for changes in (
        {"app_controls": {"read": host.bookmarks_list}},
        {"app_controls": {"bookmarks:burn": host.bookmarks_list}},
        {"policy_version": None},
        {"inspect": None},
    ):
        with pytest.raises(ConfigurationError):
            host.adapters(**changes)


# ---- answers that are none --------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [1, "yes", None, [True], object(), RuntimeError("no policy")])
@pytest.mark.parametrize("action", IN_A_TAB)
async def test_only_true_allows(action, verdict):
    host = open_host()
    host.verdict = verdict
    host.careless = action in ("navigate", "reload")
    assert await ends(host, action) == (Code.DESTINATION_DENIED, None, NOT_STARTED)
    assert host.done == []


@pytest.mark.parametrize("current", [1, "yes", None, False, object()])
@pytest.mark.parametrize("action", IN_A_TAB)
async def test_only_true_is_current(action, current):
    host = open_host()
    host.current = current
    assert await ends(host, action) == (Code.STALE, None, NOT_STARTED)
    assert host.passed == []


@pytest.mark.parametrize(
    "change",
    [
        lambda context: object(),
        lambda context: vars,
        lambda context: {"session_id": ONE, "ready": True},
        changed(session_id=TWO),
        changed(session_id=1),
        changed(ready=1),
        changed(foreground=None),
        changed(interactive="no"),
        changed(policy_version="1"),
        changed(policy_version=True),
        changed(dialogs_dismissed=-1),
        changed(destination_allowed=True),
        changed(page=None),
        changed(page=object()),
    ],
)
@pytest.mark.parametrize("action", [name for name in IN_A_TAB if name != "tabs:close"])
async def test_a_context_that_is_none(action, change):
    host = open_host()
    host.change = change
    assert await ends(host, action, sessionId=ONE) == (Code.FAILURE, "host-contract", NOT_STARTED)
    assert host.passed == []


async def test_without_an_id_only_the_tab_in_front_will_do():
    host = open_host()
    host.change = changed(foreground=False)
    assert await ends(host, "read") == (Code.FAILURE, "host-contract", NOT_STARTED)


@pytest.mark.parametrize("action", IN_A_TAB)
async def test_a_tab_that_is_not_ready(action):
    host = open_host()
    host.change = changed(ready=False)
    assert await ends(host, action) == (Code.SESSION_GONE, None, NOT_STARTED)
    assert host.done == []


@pytest.mark.parametrize("action", LOADING)
async def test_where_a_navigation_says_that_it_has_come_to(action):
    for fresh in [*JUNK, changed(session_id=TWO)]:
        host = open_host()
        if callable(fresh):
            host.change_fresh = fresh
        else:
            host.instead["fresh"] = fresh
        code, rule, committed = await ends(host, action)
        assert (code, rule, committed) == (
            Code.FAILURE,
            "host-contract",
            True,
        )  # the host said that it is done
        assert host.events[-1].outcome == "failed"

    for change, code in {
        changed(ready=False): Code.SESSION_GONE,
        changed(destination_allowed=lambda caller, href: 1): Code.DESTINATION_DENIED,
    }.items():
        host = open_host()
        host.change_fresh = change
        assert await ends(host, action) == (code, None, True)

    host = open_host()
    for audited in (True, False):
        host = open_host()
        host.audited = audited
        host.change_fresh = lambda context, host=host: (host.moves(), context)[1]
        assert await ends(host, action) == (Code.STALE, None, True)


async def test_a_host_that_says_nothing_of_its_effects_has_had_unknown_ones():
    host = open_host()

    async def navigate(url: str, captured: Any, operation: Any, /) -> Any:
        return None

    call = Call("navigate")
    with pytest.raises(ActionError) as caught:
        await host.adapters(navigate=navigate)["navigate"](
            parse_arguments("navigate", {"url": ADDRESS})[1], call
        )
    assert caught.value.code is Code.FAILURE
    assert caught.value.committed is UNKNOWN
    assert effect(caught.value, call) is UNKNOWN


async def test_a_page_elsewhere_than_where_it_may_be():
    for action in ("back", "forward"):
        host = open_host()
        host.careless = True
        host.verdict = False
        assert await ends(host, action) == (Code.DESTINATION_DENIED, None, True)
    host = open_host()
    host.change_fresh = changed(page=_Elsewhere())
    assert await ends(host, "navigate") == (Code.DESTINATION_DENIED, None, True)
    for address in (
        "about:blank",
        "file:///etc/passwd",
        "https://user:word@allowed.test/",
        "chrome://version",
    ):
        host = open_host()
        host.tabs[ONE].url = address
        for action in (*READING, *ACTING, "ai", "reload"):
            assert (await ends(host, action))[0] is Code.DESTINATION_DENIED
        assert host.done == []


class _Elsewhere:
    url = "https://elsewhere.test/"


@pytest.mark.parametrize("action", READING)
async def test_what_a_page_says(action):
    right: dict[str, Any] = READ if action == "read" else CONTROLS
    wrong = [*JUNK[1:], {**right, "next": "1"}, {**right, "frames": [1]}, {**right, "cut": None}]
    wrong.append({**right, "text": 1, "controls": [{**CONTROL, "role": None}]})
    for answer in wrong:
        host = open_host()
        host.instead["run"] = answer
        assert (await ends(host, action))[0] is Code.FAILURE
        assert "inspect from-page" not in host.passed
    host = open_host()
    host.instead["run"] = None  # what our script answers in another document
    assert (await ends(host, action))[0] is Code.STALE
    # The window, and what is looked at beyond it.
    host.instead["run"] = {**READ, "text": "x" * 14_097, "controls": []}
    if action == "read":
        assert (await ends(host, action))[0] is Code.FAILURE


async def test_text_is_cleaned_whoever_brings_it():
    host = open_host()
    host.instead["run"] = {**READ, "text": "a\u202eb\U000e0041c", "frames": ["\u200bframe"]}
    read = await host.call("read")
    assert (read["text"], read["framesNotRead"]) == ("abc", ["frame"])
    host.instead["run"] = {
        **CONTROLS,
        "controls": [{**CONTROL, "name": "a\u202eb", "selector": "input >>> x"}],
    }
    (control,) = (await host.call("inspect"))["controls"]
    assert (control["name"], control["selector"]) == ("ab", CONTROL["ref"])
    host.instead["ai"] = "a\u202eb"
    assert (await host.call("ai", prompt="?"))["text"] == "ab"
    host.tabs[ONE].title = "a\u202eb\n" + "c" * 1000
    assert (await host.call("sessions"))[0]["title"] == "ab " + "c" * 253


@pytest.mark.parametrize(
    "acted",
    [*JUNK, Acted(-1, ()), Acted(True, ()), Acted(0, [TWO]), Acted(0, (1,))],  # type: ignore[arg-type]
)
@pytest.mark.parametrize("action", ACTING)
async def test_what_an_act_says(action, acted):
    host = open_host()
    host.instead["act"] = acted
    assert await ends(host, action) == (Code.FAILURE, "host-contract", True)


@pytest.mark.parametrize(
    "listed",
    [
        *(junk for junk in JUNK if junk != []),
        [None],
        [{"id": ONE, "title": "", "foreground": True}],
        [SessionInfo(1, "", True, "")],  # type: ignore[arg-type]
        [SessionInfo(ONE, None, True, "")],  # type: ignore[arg-type]
        [SessionInfo(ONE, "", 1, "")],  # type: ignore[arg-type]
        [SessionInfo(ONE, "", True, None)],  # type: ignore[arg-type]
    ],
)
async def test_an_inventory_that_is_none(listed):
    host = open_host()
    host.instead["get_sessions"] = listed
    assert await ends(host, "sessions") == (Code.FAILURE, "host-contract", NOT_STARTED)


async def test_titles_are_for_those_with_a_right_to_their_pages():
    host = open_host()
    host.tabs[ONE].url = "https://elsewhere.test/"
    host.tabs[TWO].url = "chrome://settings"
    assert [tab["title"] for tab in await host.call("sessions")] == ["", ""]
    host = open_host()
    host.change = changed(ready=False)
    assert [tab["title"] for tab in await host.call("sessions")] == ["", ""]
    host = open_host()
    host.change = changed(session_id=TWO)
    assert await ends(host, "sessions") == (Code.FAILURE, "host-contract", NOT_STARTED)
    host = open_host()
    host.instead["get_sessions"] = [SessionInfo("gone", "Secret", True, ADDRESS)]
    with pytest.raises(NotProjectable):
        await host.call("sessions")
    host.instead["get_sessions"] = [SessionInfo(ONE.replace("1", "3"), "Secret", True, ADDRESS)]
    assert (await host.call("sessions"))[0]["title"] == ""


@pytest.mark.parametrize("answer", [None, 1, b"text", ["text"]])
async def test_a_model_that_answers_no_text(answer):
    host = open_host()
    host.instead["ai"] = answer
    assert await ends(host, "ai") == (Code.FAILURE, "host-contract", True)
    host.instead["ai"] = "x" * 20_001
    assert (await ends(host, "ai"))[::2] == (Code.RESULT_TOO_LARGE, True)


@pytest.mark.parametrize("version", [None, "1", -1, True])
async def test_a_policy_without_a_version(version):
    host = open_host()
    host.version = version
    for action in ACTIONS:
        assert (await ends(host, action))[:2] == (Code.FAILURE, "host-contract")
    assert host.done == []
