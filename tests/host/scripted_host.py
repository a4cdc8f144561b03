"""A host in a process of its own, with a browser that it runs and a person whose answers come over a pipe.

Standard input has one command a line, as JSON: see `obey`. Standard output tells one event a line.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio
from tabwarden_adapters.browser.cdp.generated import target
from tabwarden_adapters.browser.chromium import Chromium, launch_chromium
from tabwarden_adapters.host import (
    Answer,
    ApprovalRequest,
    HandoffRequest,
    HostControlServer,
    LogEntry,
    OpenTabRequest,
    SiteMode,
)

FLAGS = ("--remote-debugging-port=0", "--disable-popup-blocking")


def tell(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Person:
    """A `HostBackend` that tells what it is asked and answers as it is told."""

    def __init__(self) -> None:
        self.modes: dict[str, SiteMode] = {}
        self.excluded: list[str] = []
        self.overrides: list[str] = []
        self.send, self._answers = trio.open_memory_channel[Any](10)

    async def site_mode(self, origin: str, /) -> SiteMode:
        return self.modes.get(origin, SiteMode.OFF)

    async def sensitive_overrides(self) -> Sequence[str]:
        return self.overrides

    async def excluded_targets(self) -> Sequence[str]:
        return self.excluded

    async def _asked(self, **question: Any) -> Any:
        tell(**question)
        try:
            return await self._answers.receive()
        except trio.Cancelled:
            tell(event="withdrawn")
            raise

    async def approve(self, request: ApprovalRequest, /) -> Answer:
        kind = request.kind.value
        return await self._asked(event="approve", kind=kind, origin=request.origin, summary=request.summary)

    async def handoff(self, request: HandoffRequest, /) -> bool:
        return await self._asked(event="handoff", origin=request.origin, reason=request.reason)

    async def log(self, entry: LogEntry, /) -> None:
        tell(event="log", type=entry.type, origin=entry.origin, text=entry.text)

    async def open_tab(self, request: OpenTabRequest, /) -> bool:
        return False


async def obey(person: Person, chromium: Chromium, command: dict[str, Any]) -> None:
    root = chromium.connection.root
    match command:
        case {"mode": [origin, mode]}:
            person.modes[origin] = SiteMode(mode)
        case {"answer": answer}:
            await person.send.send(Answer(answer))
        case {"done": done}:
            await person.send.send(done)
        case {"override": hosts}:
            person.overrides = hosts
        case {"private": url}:
            # As a host should: what is there to be seen is excluded before there is anything to see.
            context = await root.call(target.create_browser_context())
            made = await root.call(
                target.create_target(url="about:blank", browser_context_id=context.browser_context_id)
            )
            person.excluded.append(made.target_id)
            sought = await root.call(
                target.create_target(url=url, browser_context_id=context.browser_context_id)
            )
            person.excluded.append(sought.target_id)
        case {"exclude": target_id}:
            person.excluded.append(target_id)
        case {"targets": _}:
            infos = (await root.call(target.get_targets())).target_infos
            pages = {info.target_id: [info.url, info.attached] for info in infos if info.type == "page"}
            tell(event="targets", pages=pages, excluded=person.excluded)
            return
    tell(event="ok")


async def main(home: Path) -> None:
    person = Person()
    async with trio.open_nursery() as nursery, launch_chromium(nursery, extra_flags=FLAGS) as chromium:
        assert chromium.profile is not None
        told = chromium.profile / "profile" / "DevToolsActivePort"
        port = int(told.read_text().split()[0])

        async def unchanged(text: str) -> str:
            return text

        async with HostControlServer(nursery, person, cdp_port=port, home=home, scrubber=unchanged):
            tell(event="ready", port=port)
            while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
                await obey(person, chromium, json.loads(line))
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
