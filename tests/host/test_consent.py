"""What the host is asked when, and what its answers are worth. The table is in docs/host-control.md."""

from typing import Any

import pytest
import trio
from tabwarden.errors import Code
from tabwarden.model import Caller
from tabwarden_adapters.host import Answer, HostProblem, SiteMode
from trio.testing import MockClock as Clock

from tests.host.seen import AGENT, BANK, OTHER, SHOP, TAB, Desk, Element, Tab

SITE, RISK, NAVIGATE = ("site", SHOP), ("risk", SHOP), ("navigate", BANK)


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.person.modes = {SHOP: SiteMode.ASK, BANK: SiteMode.ALLOWED}
    desk.tab.elements["#next"] = Element("Next", False, ())
    desk.tab.elements["#buy"] = Element("Buy now", False, ())
    desk.tab.elements["#street"] = Element("Street", True, (f"{BANK}/pay",))
    return desk


async def test_both_must_permit(desk: Desk) -> None:
    desk.inner.actions = {"sessions"}
    desk.person.answers = [Answer.YES]
    assert await desk.denied("read") == ("policy-denied", "inner")
    desk.inner.actions = {"read"}
    desk.inner.ask = "inner.ask"
    assert (await desk.decide("read")).ask == "inner.ask"
    assert desk.person.asked == []
    desk.inner.ask = None
    assert await desk.allowed("read") == [SITE]
    desk.person.modes = {}
    assert await desk.denied("read") == ("policy-denied", "host:site-off")


async def test_a_site_is_asked_about_once_for_each_agent(desk: Desk) -> None:
    assert await desk.denied("read") == ("user-denied", "host:site")
    desk.person.answers = [Answer.YES, Answer.YES]
    assert await desk.allowed("read") == [SITE]
    assert await desk.allowed("inspect", sessionId=TAB) == []
    other = Caller("agent-1", 2)
    assert (await desk.decide("read", other)).rule == "host:approved inner"
    assert desk.person.asked == [SITE, SITE, SITE]
    assert desk.person.words[0] == f"Agent agent-1 wants to see and use {SHOP}."
    assert desk.waits == 3


@pytest.mark.parametrize("end", ["policy", "tab"])
async def test_what_was_agreed_to_ends_with_policy_and_tab(desk: Desk, end: str) -> None:
    desk.person.answers = [Answer.YES]
    await desk.allowed("read")
    if end == "policy":
        desk.inner.version += 1
    else:
        desk.tabs.all = [Tab(OTHER)]
    assert await desk.denied("read") == ("user-denied", "host:site")


async def test_an_allowed_site_is_not_asked_about(desk: Desk) -> None:
    assert await desk.allowed("read", sessionId=OTHER) == []


async def test_pages_without_a_site_are_off(desk: Desk) -> None:
    for url in ("about:blank", "data:text/html,x", "chrome://settings/", "https://[", ""):
        desk.tab.url = url
        assert await desk.denied("read") == ("policy-denied", "host:site-off")
        assert await desk.denied("handoff", reason="x") == ("policy-denied", "host:site-off")
        desk.person.answers = [Answer.YES]
        assert await desk.allowed("tabs:close", sessionId=TAB) == []


# ---- risks --------------------------------------------------------------------------------------------


async def test_risks_after_a_yes_to_the_site(desk: Desk) -> None:
    desk.person.answers = [Answer.YES] * 10
    assert await desk.allowed("click", selector="#next") == [SITE]
    assert await desk.allowed("type", selector="#street", text="x") == [RISK]
    assert await desk.allowed("type", selector="#street", text="y") == []
    desk.tab.elements["#street"] = Element("Street", True, ("https://other.test/",))
    assert await desk.allowed("type", selector="#street", text="y") == [RISK]  # a form to another site
    assert await desk.allowed("click", selector="#buy") == [RISK]
    assert await desk.allowed("click", selector="#buy") == [RISK]


async def test_risks_after_a_confirm_to_the_site_are_asked_each_time(desk: Desk) -> None:
    desk.person.answers = [Answer.CONFIRM, *[Answer.YES] * 10]
    assert await desk.allowed("click", selector="#next") == [SITE]
    for _ in range(3):
        assert await desk.allowed("type", selector="#street", text="x") == [RISK]
    assert await desk.allowed("click", selector="#next") == []


async def test_a_confirm_to_a_risk_holds_once(desk: Desk) -> None:
    desk.person.answers = [Answer.YES, Answer.CONFIRM, Answer.CONFIRM]
    await desk.allowed("read")
    assert await desk.allowed("check", selector="#street", checked=True) == [RISK]
    assert await desk.allowed("select", selector="#street", value="x") == [RISK]
    assert await desk.denied("type", selector="#street", text="") == ("user-denied", "host:risk")


async def test_risks_on_an_allowed_site(desk: Desk) -> None:
    tab = desk.tabs.all[1]
    tab.elements = {"#a": Element("Street", True, (f"{SHOP}/",)), "#b": Element("Delete", False, ())}
    desk.person.answers = [Answer.YES] * 3
    assert await desk.allowed("type", sessionId=OTHER, selector="#a", text="x") == [("risk", BANK)]
    assert await desk.allowed("type", sessionId=OTHER, selector="#a", text="x") == []
    assert await desk.allowed("click", sessionId=OTHER, selector="#b") == [("risk", BANK)]
    assert await desk.allowed("click", sessionId=OTHER, selector="#b") == [("risk", BANK)]


async def test_what_is_not_known_is_risky(desk: Desk) -> None:
    desk.person.answers = [Answer.YES, Answer.YES]
    await desk.allowed("read")
    assert await desk.allowed("click", selector="#unknown") == [RISK]
    assert await desk.denied("type", selector="#unknown", text="x") == ("user-denied", "host:risk")


async def test_what_is_not_there_is_asked_of_nobody(desk: Desk) -> None:
    desk.person.answers = [Answer.YES]
    await desk.allowed("read")
    desk.tab.elements["#none"] = Element(missing=Code.STALE_REF)
    assert await desk.denied("click", selector="#none") == ("stale-ref", "host:no-such-element")


async def test_new_sites(desk: Desk) -> None:
    desk.person.answers = [Answer.YES] * 4
    assert await desk.allowed("navigate", url=f"{BANK}/x") == [SITE, NAVIGATE]
    assert await desk.allowed("navigate", url=f"{BANK}/y") == []
    assert await desk.allowed("tabs:create", url=f"{SHOP}/y") == []  # agreed to as a site
    assert await desk.allowed("tabs:create") == []
    assert await desk.denied("navigate", url="https://off.test/") == ("policy-denied", "host:site-off")
    assert await desk.denied("tabs:create", url="https://off.test/") == ("policy-denied", "host:site-off")
    desk.tab.elements["#l"] = Element("More", False, (), leads_to="https://off.test/")
    assert await desk.denied("click", selector="#l") == ("policy-denied", "host:site-off")
    desk.tab.elements["#j"] = Element("More", False, (), leads_to="javascript:go()")
    assert await desk.allowed("click", selector="#j") == []


async def test_from_a_page_without_a_site_only_the_way_out_is_asked_about(desk: Desk) -> None:
    desk.tab.url = "about:blank"
    desk.person.answers = [Answer.YES]
    assert await desk.allowed("navigate", url=f"{BANK}/") == [NAVIGATE]
    assert await desk.denied("navigate", url=f"{SHOP}/") == ("user-denied", "host:navigate")


async def test_back_and_forward_lead_where_the_history_says(desk: Desk) -> None:
    desk.person.answers = [Answer.YES, Answer.YES]
    desk.tab.entries = {-1: f"{BANK}/", 1: f"{SHOP}/2"}
    assert await desk.allowed("forward") == [SITE]
    assert await desk.allowed("back") == [NAVIGATE]
    desk.tab.entries = {}
    assert await desk.denied("back") == ("policy-denied", "host:site-off")


async def test_several_risks_of_one_kind_are_one_question(desk: Desk) -> None:
    desk.tab.elements["#all"] = Element("Buy and delete", True, (f"{BANK}/",), f"{BANK}/", downloads=True)
    desk.person.answers = [Answer.YES] * 3
    assert await desk.allowed("click", selector="#all") == [SITE, RISK, NAVIGATE]
    assert desk.person.words[1].count("Why you are asked:") == 4


async def test_words_of_page_and_agent_are_marked(desk: Desk) -> None:
    name = 'Next". The agent wrote nothing. \u202e\n'
    desk.tab.elements["#x"] = Element(f"Buy {name}", False, ())
    desk.person.answers = [Answer.YES, Answer.YES]
    await desk.allowed("click", selector="#x")
    said = desk.person.words[1]
    assert 'The page calls it: "Buy Next\\". The agent wrote nothing. \\u202e\\n".' in said
    assert said.endswith('The agent wrote: element: "#x".')
    desk.tab.elements["#y"] = Element("\u202e" * 5000, None, ())
    await desk.decide("type", selector="#y", text="\u202e" * 20_000)
    assert len(desk.person.words[-1]) <= 4000


# ---- sensitive pages ----------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["read", "inspect", "screenshot", "ai", "reload", "scroll"])
async def test_a_sensitive_page_pauses_the_agent(desk: Desk, action: str) -> None:
    args: dict[str, Any] = {"prompt": "x"} if action == "ai" else {}
    desk.person.answers = [Answer.YES]
    desk.tab.secret = True
    assert await desk.denied(action, **args) == ("target-denied", "host:sensitive-page")
    desk.tab.secret = None  # it cannot be told
    assert await desk.denied(action, **args) == ("target-denied", "host:sensitive-page")
    assert await desk.allowed("handoff", reason="sign in") == []
    assert await desk.allowed("navigate", url=f"{SHOP}/") == []
    desk.person.overrides = frozenset({"bank.test"})
    assert await desk.denied(action, **args) == ("target-denied", "host:sensitive-page")
    desk.person.overrides = frozenset({"shop.test"})
    assert await desk.allowed(action, **args) == []
    assert len(desk.person.asked) == 1


async def test_hosts_of_known_classes_pause_whatever_they_show(desk: Desk) -> None:
    for host in ("accounts.google.com", "www.paypal.com", "vault.bitwarden.com"):
        desk.person.modes[f"https://{host}"] = SiteMode.ALLOWED
        desk.tab.url = f"https://{host}/x"
        assert await desk.denied("read") == ("target-denied", "host:sensitive-page")
        desk.person.overrides = frozenset({host})
        assert await desk.allowed("read") == []
    desk.person.modes["https://notpaypal.com"] = SiteMode.ALLOWED
    desk.tab.url = "https://notpaypal.com/"
    assert await desk.allowed("read") == []


# ---- while the person thinks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code", "rule"),
    [
        ("document", "stale", "host:changed"),
        ("policy", "stale", "host:changed"),
        ("inner", "stale", "host:changed"),
        ("host", "policy-denied", "host:gone"),
    ],
)
async def test_an_answer_to_what_is_no_more_is_none(desk: Desk, change: str, code: str, rule: str) -> None:
    def changes() -> None:
        match change:
            case "document":
                desk.tab.document += 1
            case "policy":
                desk.inner.version += 1
            case "inner":
                desk.inner.holds = False
            case "host":
                desk.link.end()

    desk.person.meanwhile = changes
    desk.person.answers = [Answer.YES]
    assert await desk.denied("read") == (code, rule)
    desk.person.meanwhile = lambda: None
    desk.inner.holds = True
    if change != "host":
        assert await desk.denied("read") == ("user-denied", "host:site")  # nor is it remembered


async def test_an_element_that_is_another_one_by_then_is_not_what_was_asked_about(desk: Desk) -> None:
    desk.person.answers = [Answer.YES, Answer.YES]
    await desk.allowed("read")

    def renamed() -> None:
        desk.tab.elements["#buy"] = Element("Delete all", False, ())

    desk.person.meanwhile = renamed
    assert await desk.denied("click", selector="#buy") == ("stale", "host:changed")


async def test_what_was_decided_is_looked_at_once_more_before_it_begins(desk: Desk) -> None:
    desk.person.answers = [Answer.YES]
    answer = await desk.decide("read")
    assert answer.still_holds is not None
    desk.tab.document += 1
    assert not answer.still_holds()
    desk.tab.document -= 1
    assert answer.still_holds()
    desk.link.end()
    assert not answer.still_holds()


@pytest.mark.parametrize(
    ("problem", "code"),
    [(HostProblem.TIMEOUT, "approval-timeout"), (HostProblem.UNREACHABLE, "no-approver")],
)
async def test_no_answer_is_no(desk: Desk, problem: HostProblem, code: str) -> None:
    desk.person.problem = problem
    assert await desk.denied("read") == (code, "host:site")


async def test_a_person_who_does_not_answer(desk: Desk, autojump_clock: Clock) -> None:
    desk.person.meanwhile = trio.sleep_forever
    before = trio.current_time()
    assert await desk.denied("read") == ("approval-timeout", "host:site")
    assert trio.current_time() - before < 300  # before broker and protocol give up, which say less


async def test_an_answer_that_is_none(desk: Desk) -> None:
    desk.person.answers = ["yes"]  # type: ignore[list-item]
    assert await desk.denied("read") == ("failure", "host:site")


async def test_once_the_host_is_gone_everything_is_denied(desk: Desk) -> None:
    desk.link.end()
    for action in ("sessions", "application:state", "tabs:create"):
        assert await desk.denied(action) == ("policy-denied", "host:gone")
    assert await desk.denied("read", sessionId=OTHER) == ("policy-denied", "host:gone")
    assert desk.person.asked == []


async def test_a_tab_that_is_not_there(desk: Desk) -> None:
    desk.tabs.all = []
    assert await desk.denied("read") == ("unknown-session", "host:no-such-tab")
    assert await desk.allowed("sessions") == []
    assert desk.tabs.refreshed == 2


async def test_nobody_is_pestered(desk: Desk, autojump_clock: Clock) -> None:
    for _ in range(20):
        assert await desk.denied("read") == ("user-denied", "host:site")
    assert await desk.denied("read") == ("rate-limited", "host:too-many")
    assert (await desk.decide("read", Caller("agent-2", 1))).rule == "host:site"
    autojump_clock.jump(61)
    assert await desk.denied("read") == ("user-denied", "host:site")
    desk.person.meanwhile = trio.sleep_forever
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(desk.decide, "read")
        await trio.testing.wait_all_tasks_blocked()
        assert await desk.denied("read") == ("rate-limited", "host:too-many")
        nursery.cancel_scope.cancel()
    desk.person.meanwhile = lambda: None
    assert await desk.denied("read") == ("user-denied", "host:site")
    assert AGENT.principal_id is not None
