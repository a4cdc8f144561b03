"""What may leave code that is not ours."""

import math

import trio


def leaving(error: BaseException) -> BaseException | None:
    """The part of `error` that must go on: Ctrl-C, and a cancellation if this task itself is cancelled.

    All else stays, also what is no `Exception`: code that is not ours ends nothing but itself.
    """
    kinds: tuple[type[BaseException], ...] = (KeyboardInterrupt,)
    if trio.current_effective_deadline() == -math.inf:
        kinds = (KeyboardInterrupt, trio.Cancelled)
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(kinds)
    return error if isinstance(error, kinds) else None
