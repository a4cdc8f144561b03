"""Keeps the HTTP library's logs quiet about our exchanges: they have addresses, and headers that a gateway
wrote. Other users of the library in this program log as they like."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_LOGGERS: Final = ("httpcore.connection", "httpcore.http11")
_OURS: Final[ContextVar[bool]] = ContextVar("tabwarden_ai_exchange", default=False)


class _NotOurs(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not _OURS.get()


_FILTER: Final = _NotOurs()


@contextmanager
def unlogged() -> Iterator[None]:
    """While the block runs, this task writes nothing to those loggers."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # the same one again is no second one
    token = _OURS.set(True)
    try:
        yield
    finally:
        _OURS.reset(token)
