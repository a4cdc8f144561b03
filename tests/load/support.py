"""A broker to load, and calls made by hand."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import trio
from tabwarden import Grant, Limits, start_agent_control
from tabwarden.authority.principals import IdentityMode
from tabwarden.control import AgentControl
from tabwarden.model import ConnectionDescriptor
from tabwarden.ports import ActionAdapter
from tabwarden_adapters.load import Kind, LoadPlan, Run, Sample, Samples

from tests.support.fakes import AllowOnly, MemoryAudit

SECOND = 1_000_000_000


async def no_tabs(arguments: object, context: object) -> list[object]:
    return []


class Broker:
    """A running broker and the credentials that it gave out."""

    def __init__(
        self, control: AgentControl, audit: MemoryAudit, descriptors: Sequence[ConnectionDescriptor]
    ) -> None:
        self.control = control
        self.audit = audit
        self.descriptors = descriptors


@asynccontextmanager
async def broker(
    *principals: str,
    limits: Limits | None = None,
    adapter: ActionAdapter = no_tabs,
    mode: IdentityMode = "individual",
) -> AsyncIterator[Broker]:
    """One that allows `sessions` alone. Without `principals` it has the one credential of legacy mode."""
    audit = MemoryAudit()
    if not principals:
        mode = "legacy"
    async with trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=AllowOnly("sessions"),
            actions={"sessions": adapter},
            audit=audit,
            identity_mode=mode,
            limits=limits or Limits(requests_per_minute=100_000),
        )
        if principals:
            await control.reconcile_principals([Grant(name, 1) for name in principals])
            issued = [await control.issue_principal(name, 1) for name in principals]
        else:
            assert control.descriptor is not None
            issued = [control.descriptor]
        yield Broker(control, audit, issued)
        await control.close()


def sample(
    begun: float,
    lasted: float = 0.01,
    kind: Kind = Kind.ACCEPTED,
    *,
    agent: int = 0,
    code: str | None = None,
    intended: float | None = None,
    phases: tuple[float | None, ...] = (0.001, 0.002, 0.003, 0.003, 0.001),
) -> Sample:
    """A call, in seconds. What was accepted has taken a unit, anything else has not."""
    start, end = round(begun * SECOND), round((begun + lasted) * SECOND)
    return Sample(
        agent,
        kind,
        code or ("ok" if kind is Kind.ACCEPTED else kind.title),
        kind is Kind.ACCEPTED,
        start if intended is None else round(intended * SECOND),
        start,
        start,
        end,
        tuple(None if phase is None else round(phase * SECOND) for phase in phases),
    )


def run_of(
    calls: Sequence[Sample],
    *,
    principals: Sequence[str] = ("alice",),
    seconds: float = 10.0,
    rate: float | None = 1.0,
    limit: int = 60,
    not_sent: int = 0,
) -> Run:
    """A run that was these calls; agent n is the n-th of `principals`."""
    samples = Samples()
    for call in calls:
        samples.add(call)
    return Run(
        plan=LoadPlan(agents=len(principals), seconds=seconds, rate=rate, limit=limit),
        principals=tuple(principals),
        started_wall_ns=1_800_000_000 * SECOND,
        lasted_ns=round(seconds * SECOND),
        ended_by="time",
        not_sent=not_sent,
        samples=samples,
    )
