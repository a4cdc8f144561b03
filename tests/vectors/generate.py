"""Make the frozen vectors: `python -m tests.vectors.generate [--replace]`.

Everything but the ML-KEM encapsulations and the ML-DSA signatures comes from fixed seeds, so those are all
that changes from one run to the next. An existing file is only replaced when told to.
"""

import argparse
import json
import sys
from pathlib import Path

from tabwarden.protocol.codec import SUITE

from tests.vectors.exchange import PLANS, Exchange, Json
from tests.vectors.wrong import failures

FILE = Path(__file__).with_name("exchange-1.json")


def generate() -> Json:
    exchanges = [Exchange(at, plan) for at, plan in enumerate(PLANS)]
    return {
        "about": "Known answers of one call, version 1. Bytes are hexadecimal; a failure's change keeps the "
        "message up to `at`, puts `hex` there and goes on with the message at `resume`.",
        "suite": SUITE,
        "exchanges": [exchange.record for exchange in exchanges],
        "failures": failures(exchanges),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.vectors.generate", description=__doc__)
    parser.add_argument("--replace", action="store_true", help="replace frozen vectors that are there")
    if FILE.exists() and not parser.parse_args().replace:
        sys.stderr.write(f"{FILE.name} is frozen: pass --replace to make another\n")
        return 1
    FILE.write_text(json.dumps(generate(), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
