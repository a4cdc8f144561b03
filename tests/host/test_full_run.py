"""One whole run: a host with a browser, an engine attached to it, a person who answers, the host's death."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden import AgentClient
from tabwarden.errors import CallFailed
from tabwarden_adapters.cli.composition import running_broker
from tabwarden_adapters.cli.settings import ServeSettings
from tabwarden_adapters.credentials import load_descriptor

from tests.browser.site import Site
from tests.host.scripting import scripted_host
from tests.host.support import private_home

SCOPES = (
    *("sessions", "navigate", "read", "inspect", "click", "type", "handoff", "back"),
    *("application:state", "tabs:create"),
)
SHOP = """<title>Shop</title><h1>Tea shop</h1><p>We have 12 kinds.</p>
<button id=buy onclick="document.title = 'bought'">Buy now</button>
<button id=next onclick="document.title = 'next'">Next</button>
<form action="http://bank.test/"><input name=street></form>"""


@pytest.fixture
async def site(nursery: trio.Nursery) -> Site:
    site = Site()
    listeners = await nursery.start(trio.serve_tcp, site.serve, 0)
    site.port = listeners[0].socket.getsockname()[1]
    return site


@asynccontextmanager
async def attached(
    tmp_path: Path, home: Path, site: Site, gone: Callable[[], None]
) -> AsyncIterator[AgentClient]:
    settings = ServeSettings(
        host=True,
        host_home=str(home),
        scopes=SCOPES,
        allowed_hosts=(f"127.0.0.1:{site.port}",),
        connection=str(tmp_path / "connection.json"),
        audit=str(tmp_path / "audit"),
        approver="none",
        protector="key-file",
        timeout_s=60.0,
    )
    async with running_broker(settings, on_host_gone=gone) as running:
        await running.inspector.content.settled()
        async with AgentClient(load_descriptor(tmp_path / "connection.json"), deadline_s=320) as client:
            yield client


async def code(call: Awaitable[Any]) -> str:
    try:
        result = await call
    except CallFailed as failed:
        return failed.code
    raise AssertionError(f"it was done: {result}")


@pytest.mark.timeout(300)  # the detectors' rules are compiled for it: seconds of a core that is not busy
async def test_from_attaching_to_the_end_of_the_host(tmp_path: Path, site: Site) -> None:
    home = private_home(tmp_path)
    site.pages.update({"/": SHOP, "/private": "<title>diary</title>", "/login": "<input type=password>"})
    origin = f"http://127.0.0.1:{site.port}"
    gone = trio.Event()
    with trio.fail_after(280):
        async with (
            scripted_host(home) as host,
            attached(tmp_path, home, site, gone.set) as client,
            trio.open_nursery() as nursery,
        ):
            await host.does(private=site.url("/private"))
            tabs = await client.call("sessions")
            assert [tab["foreground"] for tab in tabs] == [True]
            tab = tabs[0]["id"]
            results: dict[str, Any] = {}

            async def call(name: str, action: str, **args: Any) -> None:
                try:
                    results[name] = await client.call(action, args)
                except CallFailed as failed:
                    results[name] = failed.code

            async def answered(kind: str, answer: str, action: str, **args: Any) -> tuple[Any, Any]:
                heard: list[dict[str, Any]] = []
                async with trio.open_nursery() as calling:

                    async def calls() -> None:
                        await call("asked", action, **args)
                        if not heard:
                            calling.cancel_scope.cancel()

                    calling.start_soon(calls)
                    heard.append(await host.event("approve"))
                    await host.does(answer=answer)
                assert heard, f"nobody was asked: {results['asked']}"
                assert heard[0]["kind"] == kind
                return results["asked"], heard[0]

            # A site that is off is off, and nobody is asked.
            assert await code(client.call("navigate", {"url": site.url()})) == "policy-denied"
            await host.does(mode=[origin, "ask"])
            moved, question = await answered("navigate", "yes", "navigate", url=site.url())
            assert moved == {"completed": True}
            assert question["origin"] == origin
            # The site is asked about once: no, which is not remembered, then yes.
            assert (await answered("site", "no", "read"))[0] == "user-denied"
            read, question = await answered("site", "confirm", "read")
            assert read["text"].startswith("Tea shop\n")
            assert "wants to see and use" in question["summary"]
            logged = await host.event("log")
            assert (logged["type"], logged["origin"], logged["text"]) == ("read", origin, read["text"])
            assert (await client.call("read"))["text"] == read["text"]
            assert (await host.event("log"))["text"] == read["text"]
            assert (await client.call("sessions"))[0]["title"] == "Shop"

            # Acting: what is not risky is done, what is risky is asked about each time.
            await client.call("click", {"selector": "#next"})
            denied, question = await answered("risk", "no", "click", selector="#buy")
            assert denied == "user-denied"
            assert 'The page calls it: "Buy now"' in question["summary"]
            assert (await client.call("sessions"))[0]["title"] == "next"
            for _ in range(2):
                done, question = await answered("risk", "yes", "type", selector="[name=street]", text="Lane")
                assert done == {"completed": True}
                assert 'The agent wrote: text to type: "Lane"' in question["summary"]
            assert (await answered("risk", "yes", "click", selector="#buy"))[0]["completed"]
            assert (await client.call("sessions"))[0]["title"] == "bought"
            controls = (await client.call("inspect"))["controls"]
            await host.event("log")

            # A page where a person signs in pauses the agent, until she overrides it.
            await client.call("navigate", {"url": site.url("/login")})
            assert await code(client.call("read")) == "target-denied"
            await client.call("back")

            # Handed over, the tab is the person's alone, and afterwards nothing old holds.
            controls = (await client.call("inspect"))["controls"]
            nursery.start_soon(lambda: call("handoff", "handoff", reason="please sign in"))
            handed = await host.event("handoff")
            assert '"please sign in"' in handed["reason"]
            assert await client.call("sessions") == []
            assert await code(client.call("read", {"sessionId": tab})) == "unknown-session"
            await host.does(done=True)
            while "handoff" not in results:
                await trio.lowlevel.checkpoint()
            assert results["handoff"] == {"completed": True}
            stale = await code(client.call("click", {"selector": controls[0]["ref"]}))
            assert stale == "stale-ref"

            # Nothing was ever sent to the private tabs.
            found = await host.targets()
            private = [found["pages"][one] for one in found["excluded"]]
            assert [attached for _, attached in private] == [False, False]
            assert private[1][0] == site.url("/private")
            assert (await client.call("application:state"))["tabCount"] == 1

            # The host is killed in the middle of a call.
            site.pages["/slow"] = never
            nursery.start_soon(lambda: call("slow", "navigate", url=site.url("/slow")))
            await site.wait_asked("GET /slow")
            host.process.kill()
            while "slow" not in results:
                await trio.lowlevel.checkpoint()
            assert results["slow"] in ("stale", "session-gone")
            await gone.wait()
            assert await code(client.call("sessions")) == "policy-denied"
            assert await code(client.call("read", {"sessionId": tab})) == "policy-denied"


async def never() -> Any:
    await trio.sleep_forever()
