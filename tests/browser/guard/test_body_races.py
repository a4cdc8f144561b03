"""Bodies that are held when something else ends: nothing of them is sent, whichever comes first."""

from types import SimpleNamespace

import pytest
import trio
import trio.testing
from tabwarden_adapters.browser import Egress, guarded_attached, guarded_chromium, launch_chromium
from tabwarden_adapters.browser.cdp.generated import page

from tests.browser.guard.agents import GuardedAgent, Rules
from tests.browser.guard.sending import Looker, Watched, evaluate
from tests.browser.guard.test_attached import FLAGS, Owner

BODY = "a held body"
BEACON = f"navigator.sendBeacon('/beacon', '{BODY}')"


@pytest.fixture
def looker():
    looker = Looker(BODY)
    looker.held = trio.Event()
    return looker


@pytest.fixture
def rules():
    return Rules()


@pytest.fixture
def counts():
    return Watched()


@pytest.fixture
async def guarded(nursery, rules, counts, looker):
    async with guarded_chromium(nursery, rules, lambda: 1, counters=counts, inspect=looker) as browser:
        yield browser


async def agent_tab(guarded, rules, receiver):
    rules.pages["one"] = {f"127.0.0.1:{receiver.port}", f"other.localhost:{receiver.port}"}
    agent = GuardedAgent("one", guarded.actions)
    await agent.call("navigate", url=receiver.url())
    return agent, (await guarded.guard.context(agent.caller)).view.own()[0]


async def holds(tab, looker, script, times=1):
    """Run `script`, and return when the inspector has a body of it."""
    before = len(looker.asked)
    await evaluate(tab, f"{script}, 1")
    await looker.wait_asked(before + times)


async def nothing_was_sent(agent, receiver, looker):
    """Let the inspector answer; nothing of what was held comes before what is sent to the site after that."""
    looker.held.set()
    await trio.testing.wait_all_tasks_blocked(0.05)
    await agent.call("tabs:create", url=receiver.url("/marker"))
    await receiver.wait("/marker")
    assert BODY.encode() not in receiver.raw


async def test_a_body_that_passes_goes_on_when_it_was_looked_at(guarded, rules, receiver, looker, counts):
    agent, tab = await agent_tab(guarded, rules, receiver)
    await holds(tab, looker, BEACON)
    assert looker.callers == {agent.caller}
    assert BODY.encode() not in receiver.raw
    looker.held.set()
    assert await receiver.wait("/beacon") == [BODY.encode()]
    assert looker.asked == [BODY]  # once, though it comes by twice
    # What a tab sends while it closes is looked at as well.
    await agent.call("tabs:create")
    looker.held = trio.Event()
    await evaluate(tab, f"onpagehide = () => {{ {BEACON} }}, 1")
    tab.session.post(page.close())
    await looker.wait_asked(2)
    looker.held.set()
    assert await receiver.wait("/beacon", 2) == [BODY.encode()] * 2


async def test_a_tab_that_closes_while_bodies_are_held(guarded, rules, receiver, looker, counts):
    looker.passing = ()
    agent, tab = await agent_tab(guarded, rules, receiver)
    # From frames as well, one of which has never asked for anything before.
    frame = "Object.assign(document.body.appendChild(document.createElement('iframe')), {srcdoc: '<b>'})"
    await evaluate(tab, f"new Promise(done => {frame}.onload = done).then(() => 1)")
    late = BEACON.replace("/beacon", receiver.url("/late"))
    post = f"{{method: 'POST', body: '{BODY}', keepalive: true}}"
    await evaluate(tab, f"onpagehide = () => {{ frames[0].{late} }}, fetchLater('/later', {post}), 1")
    await holds(tab, looker, f"{BEACON}, fetch('/alive', {post})")
    await agent.call("tabs:create")
    tab.session.post(page.close())
    await tab.session.wait_ended()
    looker.held.set()
    await counts.wait(Egress.CONTENT, 4)
    await nothing_was_sent(agent, receiver, looker)


async def test_frames_and_documents_that_go_while_their_bodies_are_held(
    guarded, rules, receiver, looker, counts
):
    looker.passing = ()
    agent, tab = await agent_tab(guarded, rules, receiver)
    far = receiver.url("/far", "other.localhost")
    frame = f"Object.assign(document.body.appendChild(document.createElement('iframe')), {{src: '{far}'}})"
    await evaluate(tab, f"new Promise(done => {frame}.onload = done).then(() => 1)")
    script = f"navigator.sendBeacon('{receiver.url('/x')}', '{BODY}')"
    await holds(tab, looker, f'frames[0].postMessage("{script}", "*")')
    await evaluate(tab, "document.querySelector('iframe').remove(), 1")
    looker.held.set()
    await counts.wait(Egress.CONTENT, 1)
    looker.held = trio.Event()
    await holds(tab, looker, f"onpagehide = () => {{ {BEACON} }}, {BEACON}")
    await agent.call("navigate", url=receiver.url("/next", "other.localhost"))
    looker.held.set()
    await counts.wait(Egress.CONTENT, 3)
    await nothing_was_sent(agent, receiver, looker)


async def test_rights_that_end_while_bodies_are_held(guarded, rules, receiver, looker):
    agent, tab = await agent_tab(guarded, rules, receiver)
    await holds(tab, looker, f"fetch('/x', {{method: 'POST', body: '{BODY}'}}).then(() => 1, () => gone = 1)")
    allowed, rules.pages["one"] = rules.pages["one"], set()
    looker.held.set()
    assert await evaluate(tab, "new Promise(done => setInterval(() => window.gone && done(1), 5))") == 1
    rules.pages["one"] = allowed
    looker.held = trio.Event()
    await holds(tab, looker, BEACON)
    guarded.guard.end("one")
    await tab.session.wait_ended()
    await nothing_was_sent(agent, receiver, looker)


async def test_a_tab_that_is_given_back_while_its_body_is_held(nursery, rules, receiver, looker):
    async with guarded_chromium(nursery, rules, lambda: 1, context="shared", inspect=looker) as browser:
        rules.pages["one"] = {f"127.0.0.1:{receiver.port}"}
        agent = GuardedAgent("one", browser.actions)
        await agent.call("navigate", url=receiver.url())
        tab = browser.guard._inventory.tabs()[0]
        await holds(
            tab, looker, f"gone = fetch('/x', {{method: 'POST', body: '{BODY}'}}).then(() => 1, () => 0)"
        )
        browser.guard.release(tab)
        looker.held.set()
        assert await evaluate(tab, "gone") == 0
        assert BODY.encode() not in receiver.raw
        # It is the person's again: nobody looks.
        asked = len(looker.asked)
        assert (
            await evaluate(tab, "fetch('/mine', {method: 'POST', body: 'mine'}).then(() => 1, () => 0)") == 1
        )
        assert await receiver.wait("/mine") == [b"mine"]
        assert len(looker.asked) == asked


async def test_a_hosts_browser_that_is_left_while_a_body_is_held(nursery, rules, receiver, looker):
    async with launch_chromium(nursery, extra_flags=FLAGS) as chromium:
        owner = Owner(chromium)
        (first,) = await owner.pages()
        theirs = SimpleNamespace(session=await owner.session(first))
        rules.pages["one"] = {f"127.0.0.1:{receiver.port}"}
        arguments = (owner.port, owner.excluding, rules, lambda: 1)
        async with guarded_attached(nursery, *arguments, inspect=looker) as browser:
            await GuardedAgent("one", browser.actions).call("navigate", url=receiver.url())
            sending = f"gone = fetch('/x', {{method: 'POST', body: '{BODY}'}}).then(() => 1, () => 0)"
            await holds(theirs, looker, sending)
        assert await evaluate(theirs, "gone") == 0
        assert await evaluate(theirs, "fetch('/mine', {method: 'POST', body: 'mine'}).then(() => 1)") == 1
    assert BODY.encode() not in receiver.raw
