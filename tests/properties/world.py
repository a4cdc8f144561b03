"""One device with a broker on it, and the model beside them. Every deed is done to both."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import trio
from tabwarden import AgentClient, Limits, start_agent_control
from tabwarden.control import AgentControl
from tabwarden.errors import ClientError, ConfigurationError, DescriptorError
from tabwarden.model import Authorization, Caller, ConnectionDescriptor
from tabwarden.ports import CallContext
from tabwarden_adapters.credentials import KeyFileProtector
from tabwarden_adapters.policy import PolicyReport, SignedPolicy, StateFile, enrol

from tests.policy.signed_support import KEYS, NOW
from tests.properties.fast_call import fast_call
from tests.properties.model import Credential, Model, Paper
from tests.support.fakes import ManualClock, MemoryAudit

# Nothing but rights may decide here; one challenge at a time, because each costs a key pair and a signature.
LIMITS = Limits(
    requests_per_minute=1_000_000, batch_size=1, idle_batch_size=1, cancel_grace_s=0.002, close_s=5.0
)
STATIONS = ("authorize", "durable", "dispatch")
Deed = Callable[[], Awaitable[None]]

COUNTED: Counter[str] = Counter()
"""What happened in this process: for the run by hand, and to see that a property is not empty."""


@dataclass
class Call:
    """The call that is being made."""

    credential: Credential
    claimed: int
    action: str
    host: str | None
    station: str | None = None
    deed: Deed | None = None
    stubborn: bool = False
    dispatched: int = 0
    began: trio.Event | None = None
    ended: trio.Event | None = None


class World:
    """Made by `begin`. One call at a time; what happens meanwhile happens in another task."""

    def __init__(self, nursery: trio.Nursery, folder: Path, *, whole: bool) -> None:
        self.nursery = nursery
        self.whole = whole
        self.file = folder / "policy.json"
        self.clock = ManualClock(wall=NOW)
        self.model = Model(latest=NOW, saved=NOW, in_run=NOW)
        self.paper: Paper | None = None
        self.old: list[tuple[Paper, bytes]] = []
        self.descriptors: list[ConnectionDescriptor] = []
        self.wrong: list[str] = []
        self.reports: list[PolicyReport] = []
        self.call: Call | None = None
        self.state = StateFile(folder / "device" / "state.json", KeyFileProtector(folder / "device"))
        enrol(self.state, KEYS.public, NOW)
        self.control: AgentControl
        self.policy: SignedPolicy

    # ---- the broker's life ------------------------------------------------------------------------

    async def begin(self) -> None:
        """Start policy and broker from what is on disk."""
        self.state = StateFile(self.state.path, KeyFileProtector(self.state.path.parent))
        self.policy = SignedPolicy(
            self.file, self.state, self.clock, report=self._reported, on_change=self._changed
        )
        takes = self.model.takes(self.paper)
        assert (self.policy.load().kind == "taken") == takes
        self.audit = MemoryAudit()
        self.audit.durable_hook = lambda: self._at("durable")
        self.control = await start_agent_control(
            self.nursery,
            authorize=self._authorize,
            actions={"sessions": self._act, "navigate": self._act, "reload": self._act},
            audit=self.audit,
            identity_mode="individual",
            limits=LIMITS,
            clock=self.clock,
            serve_at=None if self.whole else f"127.0.0.1:{1024 + self.model.start % 60_000}",
        )
        self._notice()
        await self._changed()

    async def restart(self) -> None:
        """End the broker and start it again."""
        # Whatever it was doing is taken away before anything of the next one exists.
        self.model.revoke(None)
        await self.control.close()
        self.model.restart(self.clock.wall)
        await self.begin()

    async def end(self) -> None:
        await self.control.close()

    # ---- deeds ------------------------------------------------------------------------------------

    def put(self, paper: Paper, data: bytes) -> None:
        """Put a file in the place of the one before."""
        beside = self.file.with_suffix(".new")
        beside.write_bytes(data)
        beside.replace(self.file)
        self.paper = paper
        self.old.append((paper, data))

    async def reload(self) -> None:
        takes = self.model.takes(self.paper)
        report = await self.policy.reload()
        assert (report.kind in ("taken", "unchanged")) == takes, (report, self.paper)
        COUNTED[f"policy {report.kind}"] += 1

    async def look(self) -> None:
        await self.policy.look()
        self.model.looked()

    def step(self, milliseconds: int) -> None:
        """Set the wall clock; the others go on as they were."""
        if abs(self.clock.wall + milliseconds - NOW) < 100 * 365 * 86_400_000:
            self.clock.wall += milliseconds
        self._notice()

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self._notice()

    async def issue(self, grant_id: str, generation: int, lasts: int | None) -> None:
        expires = None if lasts is None else self.model.latest + lasts
        must = self.model.may_issue(grant_id, generation, expires)
        try:
            descriptor = await self.control.issue_principal(grant_id, generation, expires)
        except ConfigurationError:
            assert not must
            return
        approved = self.model.approved.get(grant_id)
        assert not self.model.revoked
        assert approved is not None
        assert approved.enabled
        assert approved.generation == generation == self.model.highest[grant_id]
        self.model.issued(grant_id, generation, expires)
        self.descriptors.append(descriptor)
        COUNTED["issued"] += 1

    async def revoke(self, grant_id: str | None) -> None:
        self.model.revoke(grant_id)
        if grant_id is None:
            await self.control.revoke()
        else:
            await self.control.revoke_principal(grant_id)

    async def make(self, call: Call) -> None:
        """Make a call; afterwards nothing may have been dispatched, or answered, that the model forbids."""
        number = self.model.credentials.index(call.credential)
        descriptor = replace(self.descriptors[number], generation=call.claimed)
        claims = call.claimed == call.credential.generation
        may = claims and self.model.objection(call.credential, call.action, call.host) is None
        arguments = {} if call.host is None else {"url": f"https://{call.host}/"}
        self.call = call
        if self.whole:
            answered = await self._whole_call(descriptor, call.action, arguments)
        else:
            answered = await fast_call(self.control, descriptor, call.action, arguments)
        if call.ended is not None:
            await call.ended.wait()
        assert not self.wrong, self.wrong
        if call.began is None:
            assert call.dispatched == may, (call, may, self.audit.terminal()[-1:])
            assert answered == may
        assert call.dispatched <= may
        if answered:
            assert self.model.objection(call.credential, call.action, call.host) is None, call
        COUNTED["calls"] += 1
        COUNTED["dispatched"] += call.dispatched
        COUNTED["answered"] += answered
        COUNTED["interrupted"] += call.began is not None
        COUNTED["suppressed"] += call.dispatched and not answered
        self.call = None

    # ---- what the broker is given -----------------------------------------------------------------

    async def _authorize(self, *arguments: Any, **more: Any) -> Authorization:
        answer = await self.policy(*arguments, **more)
        await self._at("authorize")
        return answer

    async def _act(self, arguments: Any, context: CallContext) -> object:
        call = self.call
        if call is None or context.action != call.action:
            self.wrong.append(f"nobody asked for {context.action}")
            raise AssertionError
        call.dispatched += 1
        if context.caller != Caller(call.credential.grant_id, call.credential.generation):
            self.wrong.append(f"{context.caller} is not {call.credential}")
        objection = self.model.objection(call.credential, call.action, call.host)
        if objection is not None:
            self.wrong.append(f"dispatched although {objection}: {call}")
        await self._at("dispatch")
        return [] if context.action == "sessions" else {"completed": True}

    async def _at(self, station: str) -> None:
        """Let the call's deed be done while it waits here. A stubborn call does not stop when told to."""
        call = self.call
        if call is None or call.deed is None or call.began is not None or call.station != station:
            return
        call.began, call.ended = trio.Event(), trio.Event()
        self.nursery.start_soon(self._do, call)
        with trio.CancelScope(shield=call.stubborn):
            await call.ended.wait()

    async def _do(self, call: Call) -> None:
        assert call.deed is not None
        assert call.ended is not None
        try:
            await call.deed()
        except Exception as error:
            self.wrong.append(repr(error))
        finally:
            call.ended.set()

    def _reported(self, report: PolicyReport) -> None:
        """The very moment at which another policy is in force."""
        self.reports.append(report)
        if report.kind in ("taken", "unchanged") and self.paper is not None:
            self.model.taken(self.paper)
        elif report.kind == "expired":
            self.model.force = None

    async def _changed(self) -> None:
        self.model.reconciled()
        await self.control.reconcile_principals(self.policy.grants())
        await self.control.policy_changed()

    def _notice(self) -> None:
        """What any call does: policy and broker look at the clock."""
        self.control._runtime.wall_ms()
        self.policy.destination_allowed(Caller("nobody", 1), "https://one.test/")
        self.model.notice(self.clock.wall)

    async def _whole_call(
        self, descriptor: ConnectionDescriptor, action: str, arguments: dict[str, str]
    ) -> bool:
        try:
            async with AgentClient(descriptor, clock=self.clock) as client:
                await client.call(action, arguments)
        except (ClientError, DescriptorError):
            return False
        return True
