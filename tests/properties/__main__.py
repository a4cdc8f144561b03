"""`python -m tests.properties`: at least TABWARDEN_STEPS steps (1,000,000) fast, and a fiftieth of them
whole.

A step is a rule that was executed, or one of the calls that are made after each rule.
"""

import os
import sys
import time

import trio

from tests.properties.running import run_machine
from tests.properties.world import COUNTED

STEPS, EXAMPLES = 60, 50
WHOLE_SHARE = 50
SHRINK = bool(os.environ.get("TABWARDEN_SHRINK"))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def steps() -> int:
    return COUNTED["rules"] + COUNTED["calls"]


def run(whole: bool, wanted: int) -> None:
    """Chunks of examples until enough rules were executed; raises at the first failing example."""
    name = "whole" if whole else "fast"
    begun, told = time.monotonic(), 0.0
    COUNTED.clear()
    while steps() < wanted:
        # Making a failing example small takes longer than all the rest: run again to have that.
        trio.run(run_machine, whole, EXAMPLES, STEPS, SHRINK)
        spent = time.monotonic() - begun
        if spent - told > 30 or steps() >= wanted:
            told = spent
            say(f"{name}: {steps()} steps in {spent:.0f} s")
    for what, count in sorted(COUNTED.items()):
        say(f"  {what}: {count}")


def main() -> None:
    wanted = int(os.environ.get("TABWARDEN_STEPS", "1000000"))
    run(False, wanted)
    run(True, wanted // WHOLE_SHARE)


if __name__ == "__main__":
    main()
