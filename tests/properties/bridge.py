"""Hypothesis drives its machines with plain calls; what they drive waits in trio. This lets the one wait for
the other within one thread: no hop, no other loop, and a coroutine that need not wait costs a switch.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

T = TypeVar("T")


async def beside(work: Callable[[], object]) -> None:
    """Run `work()`, which may use `wait_for`, in a greenlet beside this trio task. Raises what it raises."""
    side = greenlet(work)
    asked: Any = side.switch()
    while not side.dead:
        try:
            answer = await asked
        except BaseException as error:  # it belongs to whoever asked
            asked = side.throw(error)
        else:
            asked = side.switch(answer)


def wait_for(what: Awaitable[T]) -> T:
    """From below `beside`: what `what` gives, awaited in the trio task above."""
    above = getcurrent().parent
    assert above is not None
    return cast("T", above.switch(what))
