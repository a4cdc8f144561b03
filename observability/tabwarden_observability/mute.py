"""Silences the loggers of OpenTelemetry's exporters in our own export threads: what they log is the text of
exceptions, with addresses in it."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _MuteThread(logging.Filter):
    """Silences a logger for one thread; a host's own exporter may log as it likes."""

    def __init__(self, ident: int) -> None:
        super().__init__()
        self._ident = ident

    def filter(self, record: logging.LogRecord) -> bool:
        return threading.get_ident() != self._ident


@contextmanager
def muted(*loggers: str) -> Iterator[None]:
    """While the block runs, this thread writes nothing to `loggers`."""
    mute = _MuteThread(threading.get_ident())
    for name in loggers:
        logging.getLogger(name).addFilter(mute)
    try:
        yield
    finally:
        for name in loggers:
            logging.getLogger(name).removeFilter(mute)
