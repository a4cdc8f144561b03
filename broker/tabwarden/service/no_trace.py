"""A tracer for brokers that are not traced: ids for the audit, and nothing else."""

import os
from contextlib import AbstractContextManager, nullcontext

from tabwarden.model import Phase, TraceOutcome

_NOTHING: AbstractContextManager[None] = nullcontext()


class NullTrace:
    """Implements `RequestTrace`."""

    __slots__ = ("span_id", "trace_id")

    def __init__(self) -> None:
        self.trace_id = os.urandom(16).hex()
        self.span_id = os.urandom(8).hex()

    def adopt(self, traceparent: str) -> None:
        self.trace_id = traceparent[3:35]

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        return _NOTHING

    def child(self, name: str) -> AbstractContextManager[None]:
        return _NOTHING

    def annotate(self, **attributes: str | int | bool | None) -> None:
        pass

    def end(self, outcome: TraceOutcome, code: str | None = None) -> None:
        pass


class NullTracer:
    """Implements `Tracer`."""

    def start_request(self) -> NullTrace:
        return NullTrace()
