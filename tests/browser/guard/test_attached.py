"""Attached to a Chromium that somebody else runs: what is seen, what is guarded, what is left behind."""

import os
import signal
from collections.abc import Container
from typing import ClassVar

import pytest
import trio
from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller
from tabwarden_adapters.browser import guarded_attached, launch_chromium
from tabwarden_adapters.browser.cdp.generated import page, runtime, target
from tabwarden_adapters.browser.guarded_attached import _Downloads
from tabwarden_adapters.browser.prospect import Prospect

from tests.browser.guard.agents import GuardedAgent, Rules

FLAGS = ("--remote-debugging-port=0", "--disable-popup-blocking")


class Owner:
    """Whoever runs the browser, at its pipe; asked which tabs are private. `unknown`: cannot say; `broken`:
    not even that."""

    def __init__(self, chromium):
        self.root = chromium.connection.root
        self.connection = chromium.connection
        self.pid = chromium.pid
        self.private: set[str] = set()
        self.unknown = self.broken = False
        self.asked = 0
        told = chromium.profile / "profile" / "DevToolsActivePort"
        self.port = int(told.read_text().split()[0])

    async def excluding(self) -> Container[str] | None:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        if self.broken:
            raise ValueError("no answer")
        return None if self.unknown else self.private

    async def pages(self):
        """Target id -> whether anything is attached to it."""
        found = (await self.root.call(target.get_targets())).target_infos
        return {info.target_id: info.attached for info in found if info.type == "page"}

    async def let_go(self, *but):
        """Wait until nothing but our own is attached to any page: Chromium hears of an end a moment later."""
        with trio.fail_after(20):
            while any(held for one, held in (await self.pages()).items() if one not in but):
                await trio.lowlevel.checkpoint()

    async def opens(self, url):
        return (await self.root.call(target.create_target(url=url))).target_id

    async def session(self, target_id):
        answer = await self.root.call(target.attach_to_target(target_id=target_id, flatten=True))
        return self.connection.session(answer.session_id)


@pytest.fixture
async def owner(nursery):
    async with launch_chromium(nursery, extra_flags=FLAGS) as chromium:
        yield Owner(chromium)


@pytest.fixture
def rules():
    return Rules()


def attached(nursery, owner, rules):
    return guarded_attached(nursery, owner.port, owner.excluding, rules, lambda: 1)


async def evaluate(session, expression):
    found = await session.call(
        runtime.evaluate(expression=expression, await_promise=True, return_by_value=True, user_gesture=True)
    )
    return found.result.value


async def test_private_tabs_do_not_exist(nursery, owner, rules):
    (first,) = await owner.pages()
    private = await owner.opens("about:blank")
    owner.private.add(private)
    async with attached(nursery, owner, rules) as browser:
        agent = GuardedAgent("one", browser.actions)

        async def listed():
            sessions = await agent.call("sessions")
            return [session["id"] for session in sessions]

        async def counted():
            return (await agent.call("application:state"))["tabCount"], browser.guard.tabs()

        (known,) = await listed()
        assert await counted() == (1, 1)
        assert await owner.pages() == {first: True, private: False}
        # One that is private from its beginning, and others.
        later = await owner.opens("about:blank")
        with trio.fail_after(20):
            while len(await listed()) < 2:
                await trio.lowlevel.checkpoint()
        assert await owner.pages() == {first: True, private: False, later: True}
        # One that becomes private is let go, whatever is under way there.
        other = next(one for one in await listed() if one != known)
        owner.private.add(later)
        assert await listed() == [known]
        assert await counted() == (1, 1)
        with trio.fail_after(20):
            while (await owner.pages())[later]:
                await trio.lowlevel.checkpoint()
        assert await agent.fails("read", sessionId=other) is Code.UNKNOWN_SESSION
        # While nobody can say which they are, there are none; what was known is known again afterwards.
        owner.unknown = True
        assert await listed() == []
        assert await counted() == (0, 0)
        assert await agent.fails("read", sessionId=known) is Code.UNKNOWN_SESSION
        owner.unknown, owner.broken = False, True
        assert await listed() == []
        owner.broken = False
        assert await listed() == [known]
        asked = owner.asked
        await agent.call("sessions")
        assert owner.asked >= asked + 2
    await owner.let_go()


async def test_a_tab_that_turns_private_while_it_is_read(nursery, owner, rules, site):
    site.pages["/"] = "here"
    rules.pages["one"] = {f"127.0.0.1:{site.port}"}
    (first,) = await owner.pages()
    async with attached(nursery, owner, rules) as browser:
        agent = GuardedAgent("one", browser.actions)
        await agent.call("navigate", url=site.url())
        assert (await agent.call("read"))["text"] == "here"
        asked = 0

        async def turns_private():
            nonlocal asked
            asked += 1
            if asked == 2:
                owner.private.add(first)
            return owner.private

        browser.tabs._inventory._excluding = turns_private
        assert await agent.fails("read") is Code.UNKNOWN_SESSION
        assert asked == 2


async def test_what_is_acted_in_is_guarded_and_what_is_not_is_the_persons(nursery, owner, rules, site):
    site.pages.update({"/": "here", "/popup": "popped"})
    mine, others = f"127.0.0.1:{site.port}", f"other.localhost:{site.port}"
    rules.pages = {"one": {mine}}
    persons_target = await owner.opens(site.url())
    persons = await owner.session(persons_target)
    await persons.call(page.enable())
    fetch = f"fetch('http://{others}/x', {{mode: 'no-cors'}}).then(() => 1, () => 0)"
    async with attached(nursery, owner, rules) as browser:
        agent = GuardedAgent("one", browser.actions)
        created = (await agent.call("tabs:create", url=site.url()))["sessionId"]
        target_id = browser.tabs._host.tab(created).target_id
        bound = await owner.session(target_id)
        assert await evaluate(bound, fetch) == 0
        assert await evaluate(persons, fetch) == 1
        # A dialog of the person's is hers to answer, one in the agent's tab is dismissed as ever.
        assert await evaluate(bound, "confirm('?')") is False
        with persons.subscribe(page.JavascriptDialogOpening) as dialogs:
            async with trio.open_nursery() as asking:
                answers = []

                async def confirm():
                    answers.append(await evaluate(persons, "confirm('?')"))

                asking.start_soon(confirm)
                await anext(dialogs)
                assert len(await agent.call("sessions")) == 3
                assert answers == []
                await persons.call(page.handle_java_script_dialog(accept=True))
        assert answers == [True]
        # What it opens is the grant's too.
        await evaluate(bound, "void open('/popup')")
        while not (popups := [tab for tab in browser.tabs._host.tabs() if tab.opener_id == target_id]):
            await browser.tabs._host.tab_change()
        assert popups[0].standing is not None
        browser.guard.end_all()
        assert await evaluate(bound, fetch) == 0
    # The person's tabs are as they were, and so are the others, without anything of ours.
    await owner.let_go(target_id, persons_target)
    assert len(await owner.pages()) == 4
    assert await evaluate(bound, fetch) == 1
    assert await evaluate(persons, fetch) == 1


PAGE = """<h1>Tea</h1><form action="http://bank.test/pay"><input name=street>
<button id=buy>Buy <b>now</b></button><button id=go formaction="https://other.test/x">Go</button></form>
<form><input name=action value=x><input id=own></form>
<a id=link href="http://news.test/z" download><span id=inside>More</span></a>
<label id=label for=tick>Delete all</label><input id=tick type=checkbox>"""


async def test_what_a_call_may_lead_to(nursery, owner, rules, site):
    secret = "<input type=password>"
    frame = f'<iframe srcdoc="{secret}"></iframe>'
    shows = {"/login": secret, "/frame": frame, "/hidden": f"<div hidden>{secret}</div>x", "/": PAGE}
    site.pages.update(shows)
    rules.pages["one"] = {f"127.0.0.1:{site.port}"}
    here = site.url()
    forms = ("http://bank.test/pay", "https://other.test/x")
    async with attached(nursery, owner, rules) as browser:
        agent = GuardedAgent("one", browser.actions)
        for path, found in (("/login", True), ("/frame", True), ("/hidden", False), ("/", False)):
            await agent.call("navigate", url=site.url(path))
            assert await browser.tabs.tab(None).secrets() is found, path
        tab = browser.tabs.tab(None)
        assert await tab.element("[name=street]") == Prospect("", True, forms, "", False)
        assert await tab.element("#buy") == Prospect("Buy now", True, forms, "", False)
        assert await tab.element("#buy b") == Prospect("now Buy now", True, forms, "", False)
        assert await tab.element("#own") == Prospect("", True, (here,), "", False)
        assert await tab.element("#inside") == Prospect("More", False, (), "http://news.test/z", True)
        assert (await tab.element("#label")).name == "Delete all"
        assert (await tab.element("#none")).missing is Code.TARGET_DENIED
        assert (await tab.element("input")).missing is Code.TARGET_DENIED
        assert (await tab.element("r0000000000000000.1")).missing is Code.STALE_REF
        assert await tab.entry(-1) == site.url("/hidden")
        assert await tab.entry(1) is None
        await agent.call("reload")
        assert not tab.current()
        assert await tab.secrets() is None
        assert (await tab.element("#buy")).name is None


async def test_a_tab_that_was_handed_over(nursery, owner, rules, site):
    site.pages.update({"/": "<button id=b>Go</button>", "/popup": "sign in"})
    mine, others = f"127.0.0.1:{site.port}", f"other.localhost:{site.port}"
    rules.pages["one"] = {mine}
    (first,) = await owner.pages()
    persons = await owner.session(first)
    fetch = f"fetch('http://{others}/x', {{mode: 'no-cors'}}).then(() => 1, () => 0)"
    async with attached(nursery, owner, rules) as browser:
        agent = GuardedAgent("one", browser.actions)
        await agent.call("navigate", url=site.url())
        ref = (await agent.call("inspect"))["controls"][0]["ref"]
        tab = browser.tabs.tab(None)
        where = browser.where(Caller("one", 1), None)
        assert where.session_id == tab.session_id
        with tab.alone():
            assert await agent.call("sessions") == []
            assert await agent.fails("read", sessionId=tab.session_id) is Code.UNKNOWN_SESSION
            assert not tab.current()
            # Where a person signs in is no matter of the grant, and what that opens is hers as well.
            assert await evaluate(persons, fetch) == 1
            await evaluate(persons, "void open('/popup')")
            with trio.fail_after(20):
                while len([one for one, held in (await owner.pages()).items() if held]) < 2:
                    await trio.lowlevel.checkpoint()
            assert await agent.call("sessions") == []
            with pytest.raises(ActionError), tab.alone():
                pass
        assert not tab.current()
        assert not where.current()
        assert len(await agent.call("sessions")) == 2
        await agent.call("tabs:activate", sessionId=tab.session_id)
        assert await agent.fails("click", selector=ref) is Code.STALE_REF


async def test_the_end_of_the_browser_ends_what_is_under_way(nursery, owner, rules, site):
    async def never():
        await trio.sleep_forever()

    site.pages.update({"/slow": never})
    rules.pages["one"] = {f"127.0.0.1:{site.port}"}
    async with attached(nursery, owner, rules) as browser:
        agent = GuardedAgent("one", browser.actions)
        ended = []

        async def call():
            ended.append(await agent.fails("navigate", url=site.url("/slow")))

        with trio.fail_after(30):
            async with trio.open_nursery() as calling:
                calling.start_soon(call)
                await site.wait_asked("GET /slow")
                os.killpg(owner.pid, signal.SIGKILL)
            await browser.chromium.connection.root.wait_ended()
        assert ended == [Code.SESSION_GONE]
        assert await agent.call("sessions") == []


def test_downloads_are_denied_while_something_is_done():
    class Root:
        said: ClassVar[list[str]] = []

        def post(self, command):
            self.said.append(command.to_json()["behavior"])

    downloads = _Downloads(Root())
    with downloads.denied(), downloads.denied():
        assert Root.said == ["deny"]
    with pytest.raises(ValueError, match="x"), downloads.denied():
        raise ValueError("x")
    assert Root.said == ["deny", "default", "deny", "default"]
