"""What a broker does by itself, until cancelled."""

import trio

from tabwarden.errors import HostReason
from tabwarden.service.runtime import Runtime


async def keep_pool(runtime: Runtime) -> None:
    """Have challenges ready."""
    while True:
        try:
            await runtime.pool.run()
        except Exception:
            # Callers wait for a challenge until their deadline; the broker goes on trying.
            runtime.report(HostReason.CHALLENGE_POOL_FAILED)
            await trio.sleep(1)


async def summarize_refusals(runtime: Runtime) -> None:
    """Record refusals once a window."""
    while True:
        await trio.sleep(runtime.limits.refusal_window_s)
        runtime.refusals.summarize()
