"""The demo's story, told while it happens. What a line says happened was checked to have happened."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from tabwarden.errors import ConfigurationError
from tabwarden.model import AgentEvent, LifecycleEvent, RefusalSummary
from tabwarden_observability import phase_summary, waterfall

from tabwarden_adapters.audit import AuditRecord, read_records, verify_log
from tabwarden_adapters.cli.composition import RunningBroker, running_broker
from tabwarden_adapters.cli.demo.agent_process import AgentProcess, agent_process
from tabwarden_adapters.cli.demo.site import HIDDEN, SECRET, Site, serving
from tabwarden_adapters.cli.settings import ServeSettings

_DEMO_S = 55.0
_SCOPES = ("sessions", "navigate", "read")


class DemoFailed(ConfigurationError):
    """Something did not happen as it must; the message says which step."""


class Story:
    """Prints steps and checks them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step = 0

    def step(self, title: str) -> None:
        self._step += 1
        self._console.print()
        self._console.print(Text(f"{self._step}. {title}", style="bold"))

    def say(self, text: str, style: str = "") -> None:
        self._console.print(Padding(Text(text, style=style), (0, 0, 0, 3)))

    def check(self, happened: bool, what: str) -> None:
        """Say `what`, or stop the demo: it never claims what it did not see."""
        if not happened:
            raise DemoFailed(f"the demo did not go as it must at step {self._step}: not so: {what}")
        self.say(f"✓ {what}", "green")


async def run_demo(terminal: bool) -> None:
    """Run it and print to stdout. Raises `DemoFailed`, or `ConfigurationError` saying what is missing."""
    console = Console(width=None if terminal else 110, highlight=False)
    with trio.move_on_after(_DEMO_S) as scope:
        async with _stage() as (folder, site, elsewhere, broker):
            await _play(Story(console), folder, site, elsewhere, broker)
            await broker.control.close()
            await broker.audit.flush()
            _show_audit(console, folder / "audit")
            _show_phases(console, broker)
    if scope.cancelled_caught:
        raise DemoFailed("the demo took too long: run `tabwarden doctor`")


@asynccontextmanager
async def _stage() -> AsyncIterator[tuple[Path, Site, Site, RunningBroker]]:
    with tempfile.TemporaryDirectory(prefix="tabwarden-demo-") as name:
        folder = Path(name)
        async with serving("library") as site, serving("elsewhere") as elsewhere:
            settings = ServeSettings(
                scopes=_SCOPES,
                allowed_hosts=(site.address,),
                connection=str(folder / "agent-connection.json"),
                audit=str(folder / "audit"),
                headless=True,
                approver="none",
            )
            async with running_broker(settings) as broker:
                await broker.inspector.content.settled()
                yield folder, site, elsewhere, broker


async def _play(story: Story, folder: Path, site: Site, elsewhere: Site, broker: RunningBroker) -> None:
    connection = folder / "agent-connection.json"
    story.step("A broker and a browser, started for this demo")
    story.say(f"broker at {broker.control.address}, {broker.browser}, headless")
    story.say(f"the policy allows {', '.join(_SCOPES)}, on {site.address} only")
    story.say(broker.protection)
    stored = connection.read_bytes()
    token = broker.control.token or b""
    story.check(
        b'"token"' not in stored and token.hex().encode() not in stored,
        "the pairing descriptor on disk is sealed",
    )
    async with agent_process(connection) as agent:
        story.step("An agent, as a separate process, pairs and lists the tabs")
        tabs = (await agent.ask("sessions")).get("result", [])
        story.check(len(tabs) == 1 and tabs[0]["foreground"], f"one tab: {tabs and tabs[0]['id']}")

        story.step("It opens a page and reads what a person would see")
        await _read_pages(story, agent, site)

        story.step("It tries a site that the policy does not allow")
        denied = await agent.ask("navigate", {"url": f"{elsewhere.url}/"})
        story.check(denied.get("code") == "destination-denied", "refused inside the seal: destination-denied")
        story.check(elsewhere.requests == 0, "the other site was never contacted")
        unlisted = await agent.ask("tabs:close", {"sessionId": tabs[0]["id"]})
        story.check(unlisted.get("code") == "policy-denied", "closing a tab is not enabled: policy-denied")

        story.step("An eavesdropper sends an old request again")
        statuses = (await agent.ask("replay")).get("result")
        story.check(statuses == [200, 403], "the first was answered, its exact copy was refused")

        story.step("The administrator revokes the agent in the middle of an action")
        await _revoke(story, agent, site, broker)


async def _read_pages(story: Story, agent: AgentProcess, site: Site) -> None:
    moved = await agent.ask("navigate", {"url": f"{site.url}/"})
    story.check(moved.get("result", {}).get("completed") is True, f"navigated to {site.url}/")
    text = str((await agent.ask("read")).get("result", {}).get("text"))
    story.check("The reading room has 64 seats." in text, "read the page's visible text")
    story.check(HIDDEN not in text, "a hidden instruction in the page did not come along")
    await agent.ask("navigate", {"url": f"{site.url}/card"})
    text = str((await agent.ask("read")).get("result", {}).get("text"))
    story.check("Cards are valid for one year." in text and SECRET not in text, "the form's secrets stayed")


async def _revoke(story: Story, agent: AgentProcess, site: Site, broker: RunningBroker) -> None:
    answers: list[dict[str, Any]] = []

    async def act() -> None:
        answers.append(await agent.ask("navigate", {"url": f"{site.url}/slow"}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(act)
        await site.slow_asked.wait()
        story.say("the page is loading, and now the pairing is revoked")
        await broker.control.revoke()
    story.check(answers[0].get("code") == "Refused", "the running action ended; nothing of it was released")
    again = await agent.ask("sessions")
    story.check(again.get("code") == "Refused", "the agent's credential opens nothing any more")


def _show_audit(console: Console, folder: Path) -> None:
    table = Table(
        "n", "action", "outcome", "code", "rule", title="What the audit log says", title_justify="left"
    )
    for record in read_records(folder):
        table.add_row(*_audit_row(record))
    console.print()
    console.print(table)
    verified = verify_log(folder)
    if verified.fault is not None:
        raise DemoFailed(f"the audit log does not verify: {verified.fault}")
    console.print(Text(f"{verified.records} records, the chain of hashes is intact"))


def _audit_row(record: AuditRecord) -> tuple[str, ...]:
    event, number = record.event, str(record.sequence)
    if isinstance(event, AgentEvent):
        return number, event.action or "", event.outcome.value, str(event.code or ""), event.rule or ""
    if isinstance(event, RefusalSummary):
        counts = ", ".join(f"{count} x {reason.value}" for reason, count in event.counts.items())
        return number, "(refused before the seal)", counts, "", ""
    if isinstance(event, LifecycleEvent):
        return number, "(broker)", event.event, "", ""
    if "signing" in record.members:
        return number, "(audit log)", "signed from here on", "", ""
    return number, "(unknown)", "", "", ""


def _show_phases(console: Console, broker: RunningBroker) -> None:
    requests = broker.tracing.recent(20)
    console.print()
    console.print(phase_summary(requests))
    console.print()
    console.print(Text("The slowest completed request, phase by phase", style="bold"))
    slowest = max(requests, key=lambda request: (request.code is None, request.duration_ns))
    console.print(waterfall([slowest]))
