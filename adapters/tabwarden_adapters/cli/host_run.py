"""`tabwarden host`: a Chromium, the control server for engines, and the person's terminal, until it ends."""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass

import trio

from tabwarden_adapters.browser import HostedChromium, hosted_chromium
from tabwarden_adapters.cli.host_counts import tell_counts, write_line
from tabwarden_adapters.cli.host_face import HostFace
from tabwarden_adapters.cli.host_scrubber import HostScrubber
from tabwarden_adapters.cli.host_settings import HostSettings
from tabwarden_adapters.cli.host_sites import host_sites
from tabwarden_adapters.cli.host_tabs import ChromiumTabs
from tabwarden_adapters.cli.plain import plain
from tabwarden_adapters.host import HostControlServer, PersonBackend, Questions, StaticPolicy
from tabwarden_adapters.policy import PolicyReport, SignedPolicy

NOT_LOADED = "The detectors could not be loaded: texts stay withheld. `tabwarden doctor` may say why."
LOADED = "The detectors are loaded: from now on texts are shown."
CLOSED = "tabwarden: the browser was closed, and the host with it."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningHost:
    """Everything that one host consists of. Implements `Keys`."""

    server: HostControlServer
    chromium: HostedChromium
    questions: Questions
    scrubber: HostScrubber
    policy: SignedPolicy | None
    ended: trio.Event

    def revoke(self) -> None:
        """Withdraw the consent for good."""
        self.server.revoke()
        self.questions.withdraw_all()

    def quit(self) -> None:
        """End the host."""
        self.questions.withdraw_all()
        self.ended.set()

    async def open_private(self) -> bool:
        """Open a window that no agent may know of."""
        return await self.chromium.open_private()


@asynccontextmanager
async def running_host(
    settings: HostSettings, nursery: trio.Nursery, report: Callable[[PolicyReport], None]
) -> AsyncIterator[RunningHost]:
    """A Chromium and its control server while the block runs; ends both, and removes host.json.

    Raises `ConfigurationError` saying what to do.
    """
    sites, policy = await host_sites(settings, report)
    sensitive = await StaticPolicy.from_flags(sensitive=settings.sensitive).allowed_sensitive_hosts()
    home = settings.home_path
    questions, scrubber = Questions(), HostScrubber()
    async with hosted_chromium(nursery, headless=settings.headless) as chromium:
        tabs = ChromiumTabs(chromium)
        await tabs.start()
        backend = PersonBackend(sites, questions, tabs, sensitive_hosts=sensitive)
        async with HostControlServer(
            nursery, backend, cdp_port=chromium.debugging_port, home=home, scrubber=scrubber
        ) as server:
            yield RunningHost(
                server=server,
                chromium=chromium,
                questions=questions,
                scrubber=scrubber,
                policy=policy,
                ended=trio.Event(),
            )


async def host(settings: HostSettings) -> None:
    """Run until SIGINT, SIGTERM or SIGHUP, `q`, or the browser's end.

    At a terminal the person is asked there; without one a JSON line says that it is ready, and every question
    is answered no.
    """
    face: HostFace | None = None
    person = _has_terminal()

    def tell_policy(report: PolicyReport) -> None:
        if face is not None:
            face.tell(f"Policy {report.kind}: {plain(report.message)}.")
        elif not person:  # whom the first lines tell the version
            told = {"policy": report.kind, "version": report.version, "message": report.message}
            sys.stderr.write(json.dumps(told) + "\n")
            sys.stderr.flush()

    with _signals() as signals:
        async with trio.open_nursery() as nursery:

            async def end_on_signal() -> None:
                async for _ in signals:
                    # Also while it is starting; everything ends in bounded time.
                    nursery.cancel_scope.cancel()

            nursery.start_soon(end_on_signal)
            async with running_host(settings, nursery, tell_policy) as running:
                if person:
                    face = HostFace(running.questions, running.server.log, running, _facts(running, settings))
                    await nursery.start(_attended, face, running)
                else:
                    await write_line(_ready(running, settings))
                    nursery.start_soon(tell_counts, running.server.log, running.questions)
                nursery.start_soon(_load, running.scrubber, face)
                nursery.start_soon(_end_with_browser, running)
                if running.policy is not None:
                    nursery.start_soon(running.policy.watch)
                await running.ended.wait()
            nursery.cancel_scope.cancel()
    if face is not None:
        with suppress(OSError):
            os.write(1, b"\n")  # below a question that is open still


def _signals() -> AbstractContextManager[AsyncIterator[int]]:
    chosen = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        chosen.append(signal.SIGHUP)
    return trio.open_signal_receiver(*chosen)


async def _attended(
    face: HostFace, running: RunningHost, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    await face.run(task_status=task_status)
    running.quit()  # the terminal is gone: nobody could end it by its keys


async def _load(scrubber: HostScrubber, face: HostFace | None) -> None:
    loaded = await scrubber.load()
    if face is not None:
        face.tell(LOADED if loaded else NOT_LOADED)


async def _end_with_browser(running: RunningHost) -> None:
    await running.chromium.wait_ended()
    if not running.ended.is_set():
        running.quit()
        sys.stderr.write(CLOSED + "\n")


def _has_terminal() -> bool:
    """Whether a person can be asked: this process prints to a terminal, and one controls it."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return os.isatty(1)


def _facts(running: RunningHost, settings: HostSettings) -> Sequence[tuple[str, str]]:
    listed = [("allowed", settings.allow), ("asked about", settings.ask), ("off", settings.off)]
    rest = "off"
    if running.policy is not None:
        rest = f"asked about where version {running.policy.policy_version} of the policy allows it, else off"
    return [
        ("browser", f"{running.chromium.product}, debugging port {running.chromium.debugging_port}"),
        ("engines find it by", str(settings.home_path / "host.json")),
        *((name, ", ".join(texts)) for name, texts in listed if texts),
        ("all other sites", rest),
    ]


def _ready(running: RunningHost, settings: HostSettings) -> dict[str, object]:
    return {
        "ready": True,
        "address": running.server.address,
        "host_file": str(settings.home_path / "host.json"),
        "cdp_port": running.chromium.debugging_port,
        "browser": running.chromium.product,
        "questions": "no-terminal: every question is answered no",
        "policy_version": None if running.policy is None else running.policy.policy_version,
        "pid": os.getpid(),
    }
