"""Runs the machine, and counts what it did."""

import trio
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.bridge import beside
from tests.properties.machine import Rights


async def run_machine(whole: bool, examples: int, steps: int, shrink: bool = True) -> None:
    """So many examples of at most so many steps. Raises what fails, made small unless `shrink` is False."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    async with trio.open_nursery() as nursery:
        await beside(lambda: run_state_machine_as_test(lambda: Rights(nursery, whole=whole), settings=chosen))
