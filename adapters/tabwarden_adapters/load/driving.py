"""The run itself: N agents, each with one call in flight, by the clock or as fast as they are answered."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec
import trio
from tabwarden.errors import ClientDeadline, ClientError, ConfigurationError
from tabwarden.model import ConnectionDescriptor

from tabwarden_adapters.load.outcomes import UNFINISHED, Kind, ending_of
from tabwarden_adapters.load.plan import LoadPlan, require_loopback, spread
from tabwarden_adapters.load.samples import Sample, Samples
from tabwarden_adapters.load.timed_client import Now, TimedClient

# After what says that nobody is there, or that this credential is no good: trying on at full speed would only
# heat the machine.
PAUSE_S: Final = 0.25
_HOPELESS: Final = frozenset({"unreachable", "refused"})

EndedBy = Literal["time", "interrupt", "enough"]


class Brakes:
    """How a run is ended early: `stop` lets calls in flight end, `halt` does not."""

    def __init__(self) -> None:
        self.stop = trio.Event()
        self.halt = trio.Event()

    def press(self) -> None:
        """Stop; the second time, halt."""
        if self.stop.is_set():
            self.halt.set()
        self.stop.set()


@dataclass(slots=True)
class Tally:
    """Counts for whoever watches the run. Nanoseconds since its start."""

    counts: Counter[Kind] = field(default_factory=Counter)
    elapsed_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was measured. `principals` names each agent's; `lasted_ns` ends with the last call's end.

    `not_sent` are calls that the plan had start within the time, and whose agent was still busy with the one
    before when it was over.
    """

    plan: LoadPlan
    principals: tuple[str, ...]
    started_wall_ns: int
    lasted_ns: int
    ended_by: EndedBy
    not_sent: int
    samples: Samples


async def drive(
    plan: LoadPlan,
    descriptors: Sequence[ConnectionDescriptor],
    *,
    brakes: Brakes | None = None,
    tally: Tally | None = None,
    now: Now = time.monotonic_ns,
) -> Run:
    """Do it. Needs trio. Raises `ConfigurationError` and `DescriptorError` before anything is sent."""
    require_loopback(descriptors)
    driver = _Driver(plan, descriptors, brakes or Brakes(), tally or Tally(), now)
    return await driver.run()


class _Driver:
    def __init__(
        self,
        plan: LoadPlan,
        descriptors: Sequence[ConnectionDescriptor],
        brakes: Brakes,
        tally: Tally,
        now: Now,
    ) -> None:
        self._plan = plan
        self._clients = [TimedClient(one, now=now) for one in spread(plan.agents, descriptors)]
        self._principals = tuple(one.principal_id for one in spread(plan.agents, descriptors))
        self._plaintext = _request(plan)
        self._brakes = brakes
        self._over = trio.Event()  # no call begins any more
        self._tally = tally
        self._now = now
        self._samples = Samples()
        self._not_sent = 0
        self._ended_by: EndedBy = "time"
        self._start_ns = 0
        self._start = 0.0

    async def run(self) -> Run:
        wall_ns = time.time_ns()
        self._start_ns, self._start = self._now(), trio.current_time()
        async with trio.open_nursery() as watching:
            async with trio.open_nursery() as agents:
                watching.start_soon(self._end, agents)
                for number in range(self._plan.agents):
                    agents.start_soon(self._agent, number)
            watching.cancel_scope.cancel()
        return Run(
            plan=self._plan,
            principals=self._principals,
            started_wall_ns=wall_ns,
            lasted_ns=max(self._elapsed(), 1),
            ended_by=self._ended_by,
            not_sent=self._not_sent,
            samples=self._samples,
        )

    async def _end(self, agents: trio.Nursery) -> None:
        """No call begins after the time, or after `stop`; those in flight have their patience, or until
        `halt`."""
        with trio.move_on_at(self._start + self._plan.seconds):
            await self._brakes.stop.wait()
            self._ended_by = "interrupt"
        self._over.set()
        with trio.move_on_after(self._plan.patience_s):
            await self._brakes.halt.wait()
        agents.cancel_scope.cancel()

    async def _agent(self, number: int) -> None:
        async with self._clients[number] as client:
            calls = 0
            while await self._may_begin(number, calls):
                intended = self._plan.start_ns(number, calls) if self._plan.rate else self._elapsed()
                calls += 1
                if await self._call(client, number, intended) in _HOPELESS:
                    with trio.move_on_after(PAUSE_S):
                        await self._over.wait()
        self._count_not_sent(number, calls)

    async def _may_begin(self, number: int, calls: int) -> bool:
        """Wait until the next call is due; False when there is none any more."""
        if len(self._samples) >= self._plan.most_calls:
            self._ended_by = "enough"
            self._over.set()
        due = self._plan.start_ns(number, calls) / 1e9
        if due >= self._plan.seconds or self._over.is_set():
            return False
        with trio.move_on_at(self._start + due):
            await self._over.wait()
        return not self._over.is_set()

    async def _call(self, client: TimedClient, number: int, intended: int) -> str:
        """One call and its sample. Returns its code."""
        error: ClientError | None = ClientDeadline("the call took longer than the run has patience for")
        begun = self._elapsed()
        try:
            with trio.move_on_after(self._plan.patience_s):
                try:
                    await client.attempt(self._plaintext)
                    error = None
                except ClientError as raised:
                    error = raised
        except trio.Cancelled:
            self._note(client, number, intended, begun, (Kind.TRANSPORT, UNFINISHED, _unknown(client)))
            raise
        ending = ending_of(error, asked=client.marks.asked is not None)
        self._note(client, number, intended, begun, ending)
        return ending[1]

    def _note(
        self,
        client: TimedClient,
        number: int,
        intended: int,
        begun: int,
        ending: tuple[Kind, str, bool | None],
    ) -> None:
        marks, ended = client.marks, self._now()
        kind, code, taken = ending
        self._tally.counts[kind] += 1
        self._tally.elapsed_ns = ended - self._start_ns
        asked = None if marks.asked is None else marks.asked - self._start_ns
        self._samples.add(
            Sample(
                number,
                kind,
                code,
                taken,
                intended,
                begun,
                asked,
                ended - self._start_ns,
                marks.phases(ended),
            )
        )

    def _count_not_sent(self, number: int, calls: int) -> None:
        if self._plan.rate is None:
            return
        # An interrupted run is judged up to its interrupt.
        until = min(self._elapsed(), round(self._plan.seconds * 1e9))
        while self._plan.start_ns(number, calls) < until:
            calls += 1
            self._not_sent += 1

    def _elapsed(self) -> int:
        return self._now() - self._start_ns


def _unknown(client: TimedClient) -> bool | None:
    return False if client.marks.asked is None else None


def _request(plan: LoadPlan) -> bytes:
    request = {"type": "agent-request", "action": plan.action, "args": dict(plan.arguments)}
    try:
        return msgspec.json.encode(request)
    except (TypeError, ValueError):
        raise ConfigurationError("the arguments are not JSON values") from None
