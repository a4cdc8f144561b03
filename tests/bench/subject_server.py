"""The subject: the broker as it is embedded, with durable audit and tracer, and one no-op action.

The environment says whether traces are exported; with `BENCH_TRACING=off` there are none at all.
`BENCH_PRINCIPALS` is how many are issued.
"""

import os
import sys
import time
from pathlib import Path

import msgspec
import trio
from tabwarden import ACTIONS, Authorization, Caller, Grant, Limits, start_agent_control
from tabwarden.ports import CallContext, PersonWait
from tabwarden_adapters.audit import durable_audit_log
from tabwarden_observability import Tracing, setup_tracing
from tabwarden_observability.readings import walk

from tests.bench.control import serve_control

PRINCIPALS = int(os.environ.get("BENCH_PRINCIPALS", "64"))
# Nothing may be limited but the machine.
LIMITS = Limits(
    connections=2_500,
    requests_per_minute=10_000_000,
    outstanding_challenges=1000,
    idle_connection_s=120.0,
)


async def allow(
    action: str,
    args: msgspec.Struct,
    scope: str,
    session_id: str | None,
    *,
    caller: Caller,
    waiting_for_person: PersonWait,
) -> Authorization:
    """Everything is allowed: what is measured is the way there."""
    return Authorization(allowed=True, scopes=frozenset({ACTIONS[action].internal_scope}))


async def nothing(arguments: object, context: CallContext) -> list[object]:
    """The no-op action."""
    return []


def spans_of_the_last_call(tracing: Tracing) -> int:
    """All calls are alike."""
    return sum(1 + sum(1 for _ in walk(request.phases)) for request in tracing.recent(1))


async def main(folder: Path) -> None:
    """Serve until the runner is done."""
    tracing = setup_tracing()
    async with durable_audit_log(folder / "audit") as audit, trio.open_nursery() as nursery:
        control = await start_agent_control(
            nursery,
            authorize=allow,
            actions={"sessions": nothing},
            audit=audit,
            tracer=None if os.environ.get("BENCH_TRACING") == "off" else tracing.tracer,
            identity_mode="individual",
            limits=LIMITS,
        )
        await audit.sign_with(control.statement_signer)
        names = [f"agent-{number}" for number in range(PRINCIPALS)]
        await control.reconcile_principals([Grant(name, 1) for name in names])
        issued = [await control.issue_principal(name, 1) for name in names]
        ready = {
            "address": control.address,
            "ed_public": control.ed_public.hex(),
            "pq_public": control.pq_public.hex(),
            "instance": issued[0].instance.hex(),
            "tokens": {one.principal_id: one.token.hex() for one in issued},
        }

        def read() -> dict[str, int]:
            statistics = control.statistics()
            return {
                "calls": sum(statistics.outcomes.values()),
                "signatures": statistics.signatures,
                "syncs": audit.statistics.fdatasyncs,
                "cpu_us": time.process_time_ns() // 1000,
                "dropped": tracing.dropped,
                "spans_a_call": spans_of_the_last_call(tracing),
            }

        await serve_control(ready, read)
        await control.close()
        await tracing.shutdown()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
