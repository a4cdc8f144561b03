"""Calls of other libraries that may wait for a service, or for a person who is not there."""

import threading
from collections.abc import Callable
from typing import TypeVar

from tabwarden.errors import DescriptorError

T = TypeVar("T")


def within(limit_s: float, work: Callable[[], T], too_slow: str) -> T:
    """What `work` returns or raises; `DescriptorError(too_slow)` when it takes longer than `limit_s`.

    A thread cannot be ended from outside: one that is too slow is left to itself, as a daemon, so that it
    does not keep the process from ending.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again where the caller waits
            failures.append(error)

    thread = threading.Thread(target=run, name="tabwarden credential service", daemon=True)
    thread.start()
    thread.join(limit_s)
    if failures:
        raise failures[0]
    if not results:
        raise DescriptorError(too_slow)
    return results[0]
