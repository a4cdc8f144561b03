"""A broker in a process of its own that ends on SIGTERM as `tabwarden serve` does, and has no browser.

`python -m tests.load.broker_process FOLDER HELD`. It prints a ready line with what its test connects with,
a line when HELD calls of `read` are inside their adapter at once (which never ends by itself), and a line at
its end. `sessions` ends at once. Spans go to where the environment says.
"""

import json
import signal
import sys
from pathlib import Path

import trio
from tabwarden import Limits, start_agent_control
from tabwarden_adapters.audit import durable_audit_log
from tabwarden_observability import setup_tracing

from tests.support.fakes import AllowOnly, Reasons

PATIENCE_S = 60.0  # for the last spans: whether they come is what matters, on the busiest of machines


def say(**line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def main(folder: Path, held: int) -> None:
    tracing, reasons, inside = setup_tracing(), Reasons(), 0

    async def read(arguments: object, context: object) -> object:
        nonlocal inside
        inside += 1
        if inside == held:
            say(held=inside)
        await trio.sleep_forever()

    async def sessions(arguments: object, context: object) -> list[object]:
        return []

    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with durable_audit_log(folder) as audit, trio.open_nursery() as nursery:
            control = await start_agent_control(
                nursery,
                authorize=AllowOnly("read", "sessions"),
                actions={"read": read, "sessions": sessions},
                audit=audit,
                tracer=tracing.tracer,
                on_error=reasons,
                timeout=300.0,
                limits=Limits(connections=256, requests_per_minute=100_000, outstanding_challenges=1000),
            )
            await audit.sign_with(control.statement_signer)
            one = control.descriptor
            assert one is not None
            say(
                address=one.address,
                token=one.token.hex(),
                ed_public=one.ed_public.hex(),
                pq_public=one.pq_public.hex(),
                instance=one.instance.hex(),
            )
            async for _ in signals:
                break
            await control.close()
            nursery.cancel_scope.cancel()
    say(dropped=await tracing.shutdown(PATIENCE_S), told=reasons.told)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
