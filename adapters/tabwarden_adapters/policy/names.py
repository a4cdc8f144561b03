"""Help with a misspelt name."""

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing when nothing comes close."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!a}?" if close else ""
