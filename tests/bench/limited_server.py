"""A broker in a process of its own with the limits of a real one, for the limiter run and the soak.

`python -m tests.bench.limited_server FOLDER PRINCIPALS REQUESTS_PER_MINUTE CONNECTIONS`. It judges its own
limiter from the exact moments in which that decided, which no agent can know.
"""

import os
import sys
from array import array
from collections import defaultdict
from pathlib import Path

import msgspec
import trio
from tabwarden import Code, Grant, Limits, start_agent_control
from tabwarden.clock import SystemClock
from tabwarden.model import AgentEvent, AuditEvent
from tabwarden.ports import AuditSink, AuditTicket
from tabwarden_adapters.audit import durable_audit_log
from tabwarden_adapters.load import Asked, judge
from tabwarden_observability import setup_tracing

from tests.bench.control import serve_control
from tests.bench.subject_server import allow, nothing

MS = 1_000_000
VERDICT_FILE = "verdict.json"  # left in its folder at the end


class RememberingClock(SystemClock):
    """Knows what it last said: to the limiter, since nothing else asks between that and the audit."""

    said_ms = 0

    def monotonic_ms(self) -> int:
        self.said_ms = super().monotonic_ms()
        return self.said_ms


class Witness:
    """The audit, and a note of what the limiter did: a call that is admitted had its unit, and one that is
    `rate-limited` had not. Both come here in the very step of the loop in which the limiter decided."""

    def __init__(self, audit: AuditSink, clock: RememberingClock) -> None:
        self._audit = audit
        self._clock = clock
        self._taken: dict[str | None, array[int]] = defaultdict(lambda: array("q"))
        self._turned_away: dict[str | None, array[int]] = defaultdict(lambda: array("q"))

    def admit(self, event: AgentEvent) -> AuditTicket:
        self._taken[event.principal_id].append(self._clock.said_ms)
        return self._audit.admit(event)

    def note(self, event: AuditEvent) -> None:
        if isinstance(event, AgentEvent) and event.code is Code.RATE_LIMITED:
            self._turned_away[event.principal_id].append(self._clock.said_ms)
        self._audit.note(event)

    async def flush(self) -> None:
        await self._audit.flush()

    def verdicts(self, limit: int) -> dict[str, object]:
        """Over all principals: whether it was right with each, the most that one got in any window, and the
        least in any window that ended with a call turned away (None: none was)."""
        found = []
        for name, taken in self._taken.items():
            calls = [Asked(moment * MS, moment * MS, True) for moment in taken]
            calls += [Asked(moment * MS, moment * MS, False) for moment in self._turned_away[name]]
            found.append(judge(calls, limit))
        return {
            "wrong": sum(one.wrong for one in found),
            "most": max((one.most for one in found), default=0),
            "fewest": min((one.fewest for one in found if one.fewest is not None), default=None),
            "judged": sum(one.turned_away for one in found),
        }


async def main(folder: Path, principals: int, requests: int, connections: int) -> None:
    """Serve until the runner is done."""
    tracing, clock = setup_tracing(), RememberingClock()
    async with durable_audit_log(folder / "audit") as audit, trio.open_nursery() as nursery:
        witness = Witness(audit, clock)
        control = await start_agent_control(
            nursery,
            authorize=allow,
            actions={"sessions": nothing},
            audit=witness,
            tracer=tracing.tracer,
            clock=clock,
            identity_mode="individual",
            limits=Limits(connections=connections, requests_per_minute=requests),
        )
        await audit.sign_with(control.statement_signer)
        names = [f"agent-{number}" for number in range(principals)]
        await control.reconcile_principals([Grant(name, 1) for name in names])
        issued = [await control.issue_principal(name, 1) for name in names]
        ready = {
            "pid": os.getpid(),
            "address": control.address,
            "ed_public": control.ed_public.hex(),
            "pq_public": control.pq_public.hex(),
            "instance": issued[0].instance.hex(),
            "tokens": {one.principal_id: one.token.hex() for one in issued},
        }

        def read() -> dict[str, int]:
            calls = sum(control.statistics().outcomes.values())
            return {"calls": calls, "tasks": trio.lowlevel.current_statistics().tasks_living}

        await serve_control(ready, read)
        (folder / VERDICT_FILE).write_bytes(msgspec.json.encode(witness.verdicts(requests)))
        await control.close()
        nursery.cancel_scope.cancel()
    await tracing.shutdown()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
