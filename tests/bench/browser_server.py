"""The broker on a real Chromium, as it is embedded, and beside it the same work done over CDP alone.

Run as `python -m tests.bench.browser_server FOLDER`: one ready line, then one job a line. `take` takes hold
of the page in front, once for each page; `evaluate`, `script` and `page` are done so many `times` and answer
`{"seconds": [s, ...]}`. With `--debugging-port` after the folder, Chromium also listens for others
(`debugging_port` in the ready line).
"""

import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
from tabwarden import Caller, Grant, start_agent_control
from tabwarden.ports import AuditSink
from tabwarden_adapters.audit import durable_audit_log
from tabwarden_adapters.browser import GrantEnds, GuardedBrowser, guarded_chromium, inspecting, reading
from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser.cdp.generated import page, runtime
from tabwarden_adapters.browser.network_guard import NetworkGuard
from tabwarden_adapters.browser.tab import WORLD, Tab
from tabwarden_adapters.policy import StaticPolicy
from tabwarden_observability import setup_tracing

from tests.bench.browser_pages import PAGES
from tests.bench.control import input_lines, say
from tests.bench.subject_server import LIMITS, allow
from tests.browser.site import Site

AGENT = "agent-0"
SCRIPTS = {
    "read": (scripts.READ, (0, reading.READ_CHARACTERS, reading.BUDGET_MS)),
    "inspect": (scripts.INSPECT, (0, inspecting.CONTROLS, inspecting.CHARACTERS, reading.BUDGET_MS)),
}
# The time that the page itself is kept busy, told by its own clock.
TIMED = """function (...values) {{
  const begun = performance.now();
  const answer = ({script}).apply(this, values);
  return [performance.now() - begun, answer !== null];
}}"""


class Direct:
    """The same work without a broker: the one CDP call that it makes, on a script that is held there."""

    def __init__(self, tab: Tab) -> None:
        assert tab.document is not None
        self._tab = tab
        self._url = tab.document.url
        self._held: dict[str, str] = {}

    @classmethod
    async def take(cls, tab: Tab) -> "Direct":
        """Make the scripts ready in the document that `tab` shows."""
        direct = cls(tab)
        call = tab.session.call
        world = await call(page.create_isolated_world(frame_id=tab.target_id, world_name=WORLD))
        found = await call(runtime.evaluate(expression="document", context_id=world.execution_context_id))
        for name, (script, _) in SCRIPTS.items():
            for kind, source in (("script", script), ("page", TIMED.format(script=script))):
                made = await call(
                    runtime.call_function_on(
                        function_declaration=reading.MAKE.format(script=source),
                        object_id=found.result.object_id,
                    )
                )
                assert made.result.object_id is not None
                direct._held[f"{kind} {name}"] = made.result.object_id
        return direct

    async def evaluate(self) -> float:
        """The least that a call over CDP costs."""
        begun = time.perf_counter()
        await self._tab.session.call(runtime.evaluate(expression="1", return_by_value=True))
        return time.perf_counter() - begun

    async def script(self, name: str) -> float:
        """A fixed script and its result, with nothing around it."""
        seconds, answer = await self._call("script", name)
        assert answer
        return seconds

    async def page(self, name: str) -> float:
        """What of that is the page's."""
        _, (milliseconds, ended) = await self._call("page", name)
        assert ended
        return float(milliseconds) / 1e3

    async def _call(self, kind: str, name: str) -> tuple[float, Any]:
        values = [runtime.CallArgument(value=value) for value in (self._url, *SCRIPTS[name][1])]
        begun = time.perf_counter()
        answer = await self._tab.session.call(
            runtime.call_function_on(
                function_declaration=reading.CALL,
                object_id=self._held[f"{kind} {name}"],
                arguments=values,
                return_by_value=True,
            )
        )
        return time.perf_counter() - begun, answer.result.value


async def jobs(browser: GuardedBrowser) -> None:
    """Do one job a line until end of input."""
    assert isinstance(browser.guard, NetworkGuard)
    direct: Direct | None = None
    async for line in input_lines():
        job = json.loads(line)
        if job["do"] == "take":
            grant = await browser.guard.context(Caller(AGENT, 1))
            assert grant.view is not None
            direct = await Direct.take(grant.view.own()[0])
            say({})
            continue
        assert direct is not None
        timed: Callable[..., Awaitable[float]] = getattr(direct, job["do"])
        say({"seconds": [await timed(*job["with"]) for _ in range(job["times"])]})


async def debugging_port(browser: GuardedBrowser) -> int:
    """The port that this Chromium has chosen."""
    assert browser.chromium.profile is not None
    chosen = await trio.Path(browser.chromium.profile / "profile" / "DevToolsActivePort").read_text()
    return int(chosen.split("\n", 1)[0])


async def serve(audit: AuditSink, nursery: trio.Nursery, *, listening: bool) -> None:
    """A site, a browser and a broker, until end of input."""
    site = Site()
    site.pages.update(PAGES)
    listener = (await nursery.start(trio.serve_tcp, site.serve, 0))[0]
    site.port = listener.socket.getsockname()[1]
    policy = StaticPolicy(
        {"scopes": ["navigate", "read", "inspect"], "allowed_hosts": [f"127.0.0.1:{site.port}"]}
    )
    flags = ("--remote-debugging-port=0",) if listening else ()
    async with guarded_chromium(nursery, policy, lambda: 1, extra_flags=flags) as browser:
        control = await start_agent_control(
            nursery,
            authorize=allow,
            actions=browser.actions,
            audit=GrantEnds(audit, browser.guard),
            tracer=setup_tracing().tracer,
            identity_mode="individual",
            limits=LIMITS,
            timeout=30.0,
        )
        await control.reconcile_principals([Grant(AGENT, 1)])
        issued = await control.issue_principal(AGENT, 1)
        say(
            {
                "address": control.address,
                "ed_public": control.ed_public.hex(),
                "pq_public": control.pq_public.hex(),
                "instance": issued.instance.hex(),
                "tokens": {AGENT: issued.token.hex()},
                "site": site.url(""),
                "product": browser.chromium.product,
                **({"debugging_port": await debugging_port(browser)} if listening else {}),
            }
        )
        await jobs(browser)
        await control.close()


async def main(folder: Path) -> None:
    """Serve until the runner is done."""
    async with durable_audit_log(folder / "audit") as audit, trio.open_nursery() as nursery:
        await serve(audit, nursery, listening="--debugging-port" in sys.argv[2:])
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
