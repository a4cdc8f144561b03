"""What many grants cost, and how soon a revocation has its last effect.

Run as `python -m tests.bench.rights_run FOLDER`; answers each line `{"do": "grants" | "revocation",
"rounds": n}` with seconds, until end of input. Everything is in this one process, agents and tasks alone too:
what is compared is compared under the same load.
"""

import contextlib
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio
from tabwarden import AgentClient, Caller, Grant, Limits, start_agent_control
from tabwarden.actions import parse_arguments
from tabwarden.clock import SystemClock
from tabwarden.control import AgentControl
from tabwarden.errors import ClientError
from tabwarden.ports import CallContext
from tabwarden_adapters.audit import durable_audit_log
from tabwarden_adapters.credentials import KeyFileProtector
from tabwarden_adapters.policy import SignedPolicy, StateFile, enrol, write_time
from tabwarden_adapters.policy.signing import SigningKeys

from tests.bench.control import input_lines, say
from tests.bench.subject_server import allow

FEW, MANY = 10, 10_000
DECISIONS = 500  # in one round, for each of the two policies
IN_FLIGHT = 64
DAY = 86_400_000
LIMITS = Limits(
    connections=200,
    requests_per_minute=10_000_000,
    outstanding_challenges=1000,
    action_deadline_s=60.0,
    idle_connection_s=60.0,
)


def document(grants: int, version: int) -> bytes:
    """A policy with so many grants, each with scopes and a host of its own."""
    now = SystemClock().wall_ms()
    return json.dumps(
        {
            "format": "tabwarden-policy/1",
            "version": version,
            "issued": write_time(now),
            "expires": write_time(now + DAY),
            "agents": {"enabled": True, "scopes": ["sessions", "navigate", "read"]},
            "destinations": {"allow": ["*"]},
            "profiles": [{"name": "readers", "scopes": ["sessions", "navigate", "read"]}],
            "grants": [
                {
                    "id": f"agent-{number}",
                    "name": f"Agent {number}",
                    "profile": "readers",
                    "scopes": ["navigate", "read"],
                    "additionalHosts": [f"*.of-{number}.example.org"],
                    "generation": version,
                }
                for number in range(grants)
            ],
        }
    ).encode()


class Device:
    """An enrolled device with one policy file."""

    def __init__(self, folder: Path, grants: int) -> None:
        folder.mkdir(mode=0o700)
        self.file = folder / "policy.json"
        self.grants = grants
        self.version = 0
        self.keys = SigningKeys(b"\x01" * 32, b"\x02" * 32)
        self.state = StateFile(folder / "state" / "state.json", KeyFileProtector(folder / "state"))
        enrol(self.state, self.keys.public, SystemClock().wall_ms())
        self.on_change: Callable[[], Awaitable[None]] | None = None
        self.policy = SignedPolicy(
            self.file, self.state, SystemClock(), report=lambda report: None, on_change=self._changed
        )

    async def _changed(self) -> None:
        if self.on_change is not None:
            await self.on_change()

    def put(self) -> None:
        """The next version, with another generation of every grant."""
        self.version += 1
        self.file.write_bytes(self.keys.sign(document(self.grants, self.version)))

    async def decide(self, first: int, count: int) -> float:
        """Seconds for `count` decisions, each for another grant from `first` on."""
        arguments = [
            parse_arguments("navigate", {"url": f"https://www.of-{number % self.grants}.example.org/"})[1]
            for number in range(first, first + count)
        ]
        begun = time.perf_counter()
        for number, one in enumerate(arguments, first):
            answer = await self.policy(
                "navigate",
                one,
                "navigate",
                None,
                caller=Caller(f"agent-{number % self.grants}", self.version),
                waiting_for_person=contextlib.nullcontext,
            )
            assert answer.allowed, answer
        return time.perf_counter() - begun


async def grants(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Publishing and reconciling many grants, and decisions with many beside decisions with few: for the same
    ten agents, so that only the number of the others differs."""
    few, many = Device(folder / "few", FEW), Device(folder / "many", MANY)
    names = ("publish", "publish-cpu", "reconcile", "few", "many", "first")
    found: dict[str, list[float]] = {name: [] for name in names}
    async with durable_audit_log(folder / "audit") as audit, trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=many.policy,
            actions={},
            audit=audit,
            identity_mode="individual",
            limits=LIMITS,
        )

        async def reconcile() -> None:
            begun = time.perf_counter()
            await control.reconcile_principals(many.policy.grants())
            found["reconcile"].append(time.perf_counter() - begun)

        many.on_change = reconcile
        few.put()
        many.put()
        few.policy.load()
        many.policy.load()
        await reconcile()
        found["reconcile"].clear()
        for number in range(rounds):
            many.put()
            begun, used = time.perf_counter(), time.process_time()
            report = await many.policy.reload()
            found["publish"].append(time.perf_counter() - begun)
            found["publish-cpu"].append(time.process_time() - used)
            assert report.kind == "taken", report
            # The rights of a grant are put together at its first decision: that one is measured by itself.
            found["first"].append(await many.decide(0, FEW) / FEW)
            await few.decide(0, FEW)
            for device, name in ((few, "few"), (many, "many"))[:: 1 if number % 2 else -1]:
                for _ in range(DECISIONS // FEW):
                    found[name].append(await device.decide(0, FEW) / FEW)
        await control.close()
        nursery.cancel_scope.cancel()
    return found


class Waiting:
    """The action `sessions`: waits until it is cancelled, and notes when that was."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.inside = 0
        self.full = trio.Event()
        self.ended: list[float] = []

    async def __call__(self, arguments: object, context: CallContext) -> list[object]:
        await self.wait()
        return []

    async def wait(self) -> None:
        self.inside += 1
        if self.inside == IN_FLIGHT:
            self.full.set()
        try:
            await trio.sleep_forever()
        finally:
            self.ended.append(time.perf_counter())


async def call(client: AgentClient) -> None:
    """A call that has to end without a result."""
    try:
        await client.call("sessions")
    except ClientError:
        return
    raise AssertionError("a revoked call was answered")


class Revocations:
    """A broker with `IN_FLIGHT` calls in flight, again and again."""

    def __init__(self, control: AgentControl, waiting: Waiting) -> None:
        self.control, self.waiting = control, waiting

    async def last_effect(self, names: list[str], revoke: Callable[[], Awaitable[None]]) -> float:
        """Seconds from the revocation to the end of the last adapter; the calls are spread over `names`."""
        await self.control.reconcile_principals([Grant(name, 1) for name in names])
        clients = [AgentClient(await self.control.issue_principal(name, 1)) for name in names]
        self.waiting.reset()
        async with trio.open_nursery() as nursery:
            for number in range(IN_FLIGHT):
                nursery.start_soon(call, clients[number % len(clients)])
            await self.waiting.full.wait()
            begun = time.perf_counter()
            await revoke()
        for client in clients:
            await client.aclose()
        return self._last() - begun

    async def bare(self) -> float:
        """The same with tasks that do nothing else, and one cancel scope."""
        self.waiting.reset()
        async with trio.open_nursery() as nursery:
            for _ in range(IN_FLIGHT):
                nursery.start_soon(self.waiting.wait)
            await self.waiting.full.wait()
            begun = time.perf_counter()
            nursery.cancel_scope.cancel()
        return self._last() - begun

    def _last(self) -> float:
        assert len(self.waiting.ended) == IN_FLIGHT
        return max(self.waiting.ended)


async def revocation(folder: Path, rounds: int) -> dict[str, list[float]]:
    """One principal with all calls; as many principals as calls, one time in four; and tasks alone."""
    found: dict[str, list[float]] = {"one": [], "each": [], "bare": []}
    names = [f"agent-{number}" for number in range(IN_FLIGHT)]
    waiting = Waiting()
    async with durable_audit_log(folder / "audit-2") as audit, trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=allow,
            actions={"sessions": waiting},
            audit=audit,
            identity_mode="individual",
            limits=LIMITS,
        )
        revocations = Revocations(control, waiting)
        # A collection of all that the grants left behind is no part of a revocation.
        gc.collect()
        gc.freeze()
        for number in range(-1, rounds):  # the first warms up
            taken = {
                "one": await revocations.last_effect(names[:1], lambda: control.revoke_principal(names[0])),
                "bare": await revocations.bare(),
            }
            if number % 4 == 0:
                taken["each"] = await revocations.last_effect(names, lambda: control.reconcile_principals([]))
            for name, seconds in taken.items() if number >= 0 else ():
                found[name].append(seconds)
        await control.close()
        nursery.cancel_scope.cancel()
    return found


async def main(folder: Path) -> None:
    """Answer the runner."""
    async for line in input_lines():
        question = json.loads(line)
        work = {"grants": grants, "revocation": revocation}[question["do"]]
        say(await work(folder, question["rounds"]))


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
