"""Every way to send a body, from an agent's tab on a real Chromium: a secret never gets to the site's socket,
and what is clean gets there byte for byte."""

import json

import pytest
from tabwarden_adapters.browser import Egress, guarded_chromium
from tabwarden_adapters.browser.cdp import Command
from tabwarden_adapters.dlp import CorporateRule, compile_rules, start_inspector

from tests.browser.guard.agents import GuardedAgent, Rules
from tests.browser.guard.sending import Looker, Watched, evaluate
from tests.dlp.support import FakeCatalogue

SECRET, CLEAN = "Project Falcon 7", "Project Robin 7"
RULE = {"id": "birds", "kind": "words", "values": ("project falcon",), "directions": ("to-site",)}
SENT = "fetch('@P', {method: 'POST', body: %s}).then(() => 1, () => 0)"
AGAIN = SENT.replace("@P", "/again@P")
FORM = (
    "(() => { const form = new FormData(); form.append('a', 'b'); form.append('text', %s); return form })()"
)
XHR = (
    "new Promise(done => { const one = new XMLHttpRequest(); one.open('PUT', '@P');"
    " one.onloadend = () => done(one.status); one.send('@T') })"
)
HTML_FORM = (
    "new Promise(done => { const to = document.createElement('iframe'); to.name = '@P';"
    " document.body.append(to);"
    " document.body.insertAdjacentHTML('beforeend', `<form method=post action=@P target=@P enctype=%s>"
    "<input name=text value='@T'></form>`); to.onload = () => done(1);"
    " document.body.lastChild.submit(); document.body.lastChild.remove() })"
)
WORKER = (
    "new Promise(done => { const one = new Worker('/worker.js'); one.onmessage = event => done(event.data);"
    f" one.postMessage(`{SENT % repr('@T')}`) }})"
)
FRAME = (
    "new Promise(done => { const to = document.createElement('iframe'); to.src = '@F/far';"
    " to.onload = () => to.contentWindow.postMessage(`fetch('@P', {method: 'POST', body: '@T'})"
    ".then(() => parent.postMessage(1, '*'), () => parent.postMessage(0, '*'))`, '*');"
    " onmessage = event => done(event.data); document.body.append(to) })"
)

# How a body is sent; and whether what comes is exactly the text, or something with the text in it.
WAYS = {
    "text": (SENT % "'@T'", True),
    "xhr": (XHR, True),
    "keepalive": ("fetch('@P', {method: 'POST', body: '@T', keepalive: true}).then(() => 1, () => 0)", True),
    "blob": (SENT % "new Blob(['@T'.slice(0, 9), '@T'.slice(9)])", True),
    "bytes": (SENT % "new TextEncoder().encode('@T')", True),
    "request": (
        "fetch(new Request('@P', {method: 'POST', body: '@T'}).clone()).then(() => 1, () => 0)",
        True,
    ),
    "fields": (SENT % "new URLSearchParams({a: 'b', text: '@T'})", False),
    "json": (SENT % "JSON.stringify({text: '@T'}).replace('P', '\\\\u0050')", False),
    "multipart": (SENT % (FORM % "'@T'"), False),
    "file": (SENT % (FORM % "new File(['@T'], 'a.txt')"), False),
    "document": (HTML_FORM % "application/x-www-form-urlencoded", False),
    "document-multipart": (HTML_FORM % "multipart/form-data", False),
    "worker": (WORKER, True),
    "cross-site": (FRAME, True),
    "redirected": (AGAIN % "'@T'", True),
    "beacon": ("navigator.sendBeacon('@P', '@T'), 1", True),
    "beacon-form": (f"navigator.sendBeacon('@P', {FORM % repr('@T')}), 1", False),
}
# What cannot be looked through to its end, clean or not.
UNSEEN = {
    "binary": "new Uint8Array([0, 255, 254, 1])",
    "compressed": "await new Response(new Blob(['text']).stream()"
    ".pipeThrough(new CompressionStream('gzip'))).arrayBuffer()",
    "charset": "new Blob(['text=%E9'], {type: 'application/x-www-form-urlencoded'})",
    "megabyte": "'clean '.repeat(200_000)",
    "more": "'clean '.repeat(2_500_000)",
    "stored-file": FORM % "chosen.files[0]",
}


@pytest.fixture
def rules():
    return Rules()


@pytest.fixture
def counts():
    return Watched()


async def tab_of(browser, rules, receiver, path="/"):
    rules.pages["one"] = {f"{name}:{receiver.port}" for name in ("127.0.0.1", "other.localhost")}
    agent = GuardedAgent("one", browser.actions)
    await agent.call("navigate", url=receiver.url(path))
    return agent, (await browser.guard.context(agent.caller)).view.own()[0]


def script(way, path, text, receiver):
    far = receiver.url("", "other.localhost")
    if way == WAYS["cross-site"][0]:
        path = f"{far}{path}"
    return way.replace("@P", path).replace("@T", text).replace("@F", far)


async def test_every_way_to_send_a_body(nursery, rules, counts, receiver):
    inspector = start_inspector(nursery, compile_rules([CorporateRule(**RULE)]), make=FakeCatalogue)
    async with guarded_chromium(nursery, rules, lambda: 1, counters=counts, inspect=inspector) as browser:
        _, tab = await tab_of(browser, rules, receiver)
        for name, (way, exact) in WAYS.items():
            answer = await evaluate(tab, script(way, f"/{name}-clean", CLEAN, receiver))
            path = f"/twice/{name}-clean" if name == "redirected" else f"/{name}-clean"
            (body,) = await receiver.wait(path)
            assert answer in (1, 200), name
            if exact:
                assert body == CLEAN.encode(), name
        assert receiver.bodies["/again/redirected-clean"] == [CLEAN.encode()]
        assert receiver.bodies["/fields-clean"] == [b"a=b&text=Project+Robin+7"]
        assert json.loads(receiver.bodies["/json-clean"][0]) == {"text": CLEAN}
        assert counts.counts().get(("127.0.0.1", Egress.CONTENT)) is None
        for name, (way, _) in WAYS.items():
            answer = await evaluate(tab, script(way, f"/{name}-secret", SECRET, receiver))
            sent = 1 if name.startswith(("beacon", "document")) else 0  # of these a page is not told
            assert answer == sent, name
        await counts.wait(Egress.CONTENT, len(WAYS))
        assert b"Falcon" not in receiver.raw
        assert not [path for path in receiver.bodies if path.endswith("-secret")]
        told = {
            host: count for (host, outcome), count in counts.counts().items() if outcome is Egress.CONTENT
        }
        assert told == {"127.0.0.1": len(WAYS) - 1, "other.localhost": 1}
        await unseen(tab, receiver, counts)
        await service_worker(tab, receiver)


async def unseen(tab, receiver, counts):
    before = sum(count for (_, one), count in counts.counts().items() if one is Egress.CONTENT)
    await evaluate(tab, "document.body.innerHTML = '<input type=file id=chosen>', 1")
    found = await tab.session.call(Command("Runtime.evaluate", {"expression": "chosen"}, dict))
    where = {"files": [__file__], "objectId": found["result"]["objectId"]}
    await tab.session.call(Command("DOM.setFileInputFiles", where, dict))
    for name, body in UNSEEN.items():
        sending = SENT.replace("@P", f"/{name}") % body
        assert await evaluate(tab, f"(async () => await {sending})()") == 0, name
        assert f"/{name}" not in receiver.bodies
    after = sum(count for (_, one), count in counts.counts().items() if one is Egress.CONTENT)
    assert after - before == len(UNSEEN) - 1  # of the largest nothing is known, not even where it was to go
    # A stream's bytes are not shown either; without HTTP/2 Chromium itself does not send it.
    stream = (
        SENT.replace("@P", "/stream").replace("}", ", duplex: 'half'}", 1) % "new Blob(['text']).stream()"
    )
    assert await evaluate(tab, stream) == 0
    assert sum(count for (_, one), count in counts.counts().items() if one is Egress.CONTENT) == after + 1


async def service_worker(tab, receiver):
    """It sends what the page hands it: the page's own request goes nowhere."""
    await evaluate(
        tab,
        "navigator.serviceWorker.register('/service.js').then(() => navigator.serviceWorker.ready)"
        ".then(() => navigator.serviceWorker.controller || new Promise(done =>"
        " navigator.serviceWorker.oncontrollerchange = done)).then(() => 1)",
    )
    for text, sent in ((CLEAN, 1), (SECRET, 0)):
        assert await evaluate(tab, script(SENT % "'@T'", "/served", text, receiver)) == sent
    assert receiver.bodies["/served"] == [CLEAN.encode()]
    assert b"Falcon" not in receiver.raw


async def test_a_form_that_an_agent_sends(nursery, rules, receiver, counts):
    looker = Looker("a=b&c=d", "a=b\nc=d\n\na=b&c=d")
    async with guarded_chromium(nursery, rules, lambda: 1, counters=counts, inspect=looker) as browser:
        agent, tab = await tab_of(browser, rules, receiver)
        form = (
            "<form method=post action=/sent><input name=a value=%s><input name=c value=d><button>go</button>"
        )
        await evaluate(tab, f"document.body.innerHTML = '{form % 'x'}', 1")
        await agent.call("click", selector="button")
        await counts.wait(Egress.CONTENT, 1)
        assert tab.document.url == receiver.url()  # where it was, and usable
        assert "/sent" not in receiver.bodies
        await evaluate(tab, f"document.body.innerHTML = '{form % 'b'}', 1")
        await agent.call("click", selector="button")
        assert await receiver.wait("/sent") == [b"a=b&c=d"]


async def test_where_policy_does_not_ask_nobody_looks(nursery, rules, receiver, counts):
    looker = Looker()
    looker.wanted = False
    async with guarded_chromium(nursery, rules, lambda: 1, counters=counts, inspect=looker) as browser:
        agent, tab = await tab_of(browser, rules, receiver)
        for name, body in {**UNSEEN, "text": repr(SECRET)}.items():
            if name not in ("stored-file", "more"):
                sending = SENT.replace("@P", f"/{name}") % body
                assert await evaluate(tab, f"(async () => await {sending})()") == 1, name
        assert receiver.bodies["/text"] == [SECRET.encode()]
        assert receiver.bodies["/binary"] == [bytes([0, 255, 254, 1])]
        assert looker.asked == []
        # From the next request on, when it does.
        looker.wanted = True
        browser.guard.recheck()
        assert await evaluate(tab, SENT.replace("@P", "/late") % repr(SECRET)) == 0
        assert "/late" not in receiver.bodies
        await agent.call("navigate", url=receiver.url())
        await evaluate(tab, f"onpagehide = () => navigator.sendBeacon('/late', '{SECRET}'), 1")
        await agent.call("tabs:create")
        await agent.call("tabs:close", sessionId=tab.id)
        await counts.wait(Egress.CONTENT, 2)
        assert "/late" not in receiver.bodies
