"""Shared mode: what Fetch holds of an agent's tab in the person's own context, and who gets it back."""

import pytest
import trio
from tabwarden.errors import Code
from tabwarden_adapters.browser import Egress, HostCounts, guarded_chromium
from tabwarden_adapters.browser.cdp.generated import fetch, page, runtime

from tests.browser.guard.agents import GuardedAgent, Rules


@pytest.fixture
def rules():
    return Rules()


@pytest.fixture
def counts():
    return HostCounts()


@pytest.fixture
async def guarded(nursery, rules, counts):
    async with guarded_chromium(
        nursery,
        rules,
        lambda: 1,
        context="shared",
        counters=counts,
        extra_flags=("--disable-popup-blocking",),
    ) as browser:
        yield browser


def base(guarded):
    """The host below the adapters."""
    return guarded.actions["read"].func.__self__._base


async def evaluate(tab, expression):
    found = await tab.session.call(
        runtime.evaluate(expression=expression, await_promise=True, return_by_value=True, user_gesture=True)
    )
    return found.result.value


def get(url):
    return f"fetch('{url}', {{mode: 'no-cors'}}).then(() => 1, () => 0)"


async def goes(tab, url):
    """Another program's navigation: no page asked for it, but no person's gesture came with it either."""
    await tab.session.call(page.navigate(url=url, transition_type="typed"))
    while tab.document.url != url or not tab.document.loaded:
        await tab.change(tab.version)


async def test_a_tab_is_bound_by_what_an_agent_does_in_it(guarded, rules, counts, site):
    site.pages.update({"/": "here", "/popup": "popped"})
    mine, others = f"127.0.0.1:{site.port}", f"other.localhost:{site.port}"
    rules.pages = {"one": {mine}, "two": {others}}
    agent = GuardedAgent("one", guarded.actions)
    tab = base(guarded).tab(None)
    await goes(tab, f"http://{others}/")
    # To be asked about, and denied, binds nothing.
    assert await agent.fails("reload") is Code.DESTINATION_DENIED
    assert await agent.fails("navigate", url=f"http://{others}/") is Code.DESTINATION_DENIED
    assert tab.standing is None
    assert await evaluate(tab, get("/x")) == 1
    await agent.call("navigate", url=f"http://{mine}/")
    assert tab.standing is not None
    asked = len(site.asked)
    assert await evaluate(tab, get(f"http://{others}/x")) == 0
    await evaluate(tab, f"location.href = 'http://{others}/'")
    assert await evaluate(tab, get("/y")) == 1
    assert [line for line in site.asked[asked:] if line != "GET /favicon.ico"] == ["GET /y"]
    # So are the tabs that it opens, and those that the agent asks for.
    await evaluate(tab, "void open('/popup')")
    while len(base(guarded).tabs()) < 2:
        await base(guarded).tab_change()
    popup = base(guarded).tabs()[1]
    assert popup.standing is not None
    created = (await agent.call("tabs:create", url=f"http://{mine}/"))["sessionId"]
    assert base(guarded).tab(created).standing is not None
    assert await evaluate(base(guarded).tab(created), get(f"http://{others}/x")) == 0
    # The end of the grant is the end of what its tabs may load.
    guarded.guard.end("one")
    assert await evaluate(tab, get("/z")) == 0
    assert "GET /z" not in site.asked


async def test_the_whole_browser_is_held_to_the_global_policy(guarded, rules, counts, site):
    site.pages["/"] = "here"
    rules.pages["one"] = {f"127.0.0.1:{site.port}"}
    tab = base(guarded).tab(None)
    await goes(tab, site.url())
    assert await evaluate(tab, get(site.url("/x", "other.localhost"))) == 0
    assert counts.counts()["other.localhost", Egress.HOST] >= 1
    agent = GuardedAgent("one", guarded.actions)
    rules.patterns = {f"inside.localhost:{site.port}"}
    inside = site.url("/", "inside.localhost")
    assert await agent.fails("navigate", url=inside) is Code.DESTINATION_DENIED
    guarded.guard.protect(site.port)
    assert await evaluate(tab, get("/y")) == 0
    assert "GET /x" not in site.asked
    assert "GET /y" not in site.asked


async def test_neither_pages_nor_programs_pass_for_a_person(guarded, rules, site):
    """That a person does: test_address_bar.py, on what Chromium was seen to say; there is no screen here."""
    site.pages.update({"/": "here", "/there": "there"})
    mine, others = f"127.0.0.1:{site.port}", f"other.localhost:{site.port}"
    rules.pages = {"one": {mine}, "two": {others}}
    agent = GuardedAgent("one", guarded.actions)
    await agent.call("navigate", url=f"http://{mine}/")
    tab = base(guarded).tab(None)
    refused = trio.Event()
    undo = tab.session.on(fetch.RequestPaused, lambda event: refused.set())
    await evaluate(tab, f"location.href = 'http://{others}/there'")
    await refused.wait()  # else it might come in the middle of the agent's own
    undo()
    await tab.session.call(page.navigate(url=f"http://{others}/there", transition_type="typed"))
    await agent.call("navigate", url=f"http://{mine}/there")
    await agent.call("reload")
    await agent.call("back")
    await goes(tab, f"http://{mine}/there")
    assert tab.standing is not None
    assert await evaluate(tab, get(f"http://{others}/x")) == 0
    assert site.asked.count("GET /there") <= 3  # the agent's, its reload, and the last


async def test_a_worker_that_nobody_answers_for_sends_nothing(guarded, rules, site):
    script = f"{get('/from-worker')}.then(got => clients.matchAll({{includeUncontrolled: true}})"
    script += ".then(all => all.forEach(one => one.postMessage(got))))"
    worker = (200, {"Content-Type": "text/javascript"}, f"onmessage = () => {{ {script} }}")
    site.pages.update({"/": "here", "/worker.js": worker, "/from-worker": "x"})
    host = f"a.localhost:{site.port}"
    rules.pages["one"] = {host}
    agent = GuardedAgent("one", guarded.actions)
    await agent.call("navigate", url=f"http://{host}/")
    tab = base(guarded).tab(None)
    got = await evaluate(
        tab,
        "new Promise(done => { navigator.serviceWorker.onmessage = event => done(event.data);"
        "navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)"
        ".then(ready => ready.active.postMessage(1)) })",
    )
    assert got == 0
    assert "GET /from-worker" not in site.asked
