"""Durations of requests, phases and browser commands, taken from finished requests off the path."""

from typing import Final

from tabwarden.model import Phase, TraceOutcome
from tabwarden.protocol.proof import AGENT_ROUTE, CHALLENGE_ROUTE, METHOD

from tabwarden_observability.attributes import ANNOTATIONS
from tabwarden_observability.metric_table import CDP_DURATION, HTTP_DURATION, PHASE_DURATION
from tabwarden_observability.metrics import Metrics
from tabwarden_observability.readings import walk
from tabwarden_observability.records import FinishedRequest

_METHOD: Final = METHOD.decode()
_SCHEME: Final = "http"
HTTP: Final = (_METHOD, _SCHEME)
_CHALLENGE: Final = CHALLENGE_ROUTE.decode()
_AGENT: Final = AGENT_ROUTE.decode()
_CDP: Final = "cdp."
# The domains that are used, so that a name made from data is no new value of an attribute.
_DOMAINS: Final = frozenset({"page", "runtime", "input", "target"})
_REPLY: Final = ANNOTATIONS["reply_bytes"].name
_NS: Final = 1_000_000_000


class RequestHistograms:
    """Give it to `Tracing.observe`. Called by one thread."""

    def __init__(self, metrics: Metrics) -> None:
        self._requests = metrics.histogram(HTTP_DURATION)
        self._phases = metrics.histogram(PHASE_DURATION)
        self._cdp = metrics.histogram(CDP_DURATION)

    def __call__(self, request: FinishedRequest, /) -> None:
        """Record one request, its phases and what the browser did in them."""
        for span, _ in walk(request.phases):
            seconds = span.duration_ns / _NS
            if span.is_phase:
                self._phases.record(seconds, (span.name,))
                if span.name == Phase.CHALLENGE.value:
                    self._requests.record(seconds, (_METHOD, _CHALLENGE, 200, _SCHEME, None))
                elif span.name == Phase.DECRYPTION.value:
                    # What an agent waits for: its own part, between challenge and call, is not the broker's.
                    seconds = (request.duration_ns - span.offset_ns) / _NS
                    status, error = _answer(request)
                    self._requests.record(seconds, (_METHOD, _AGENT, status, _SCHEME, error))
            elif span.name.startswith(_CDP):
                domain = span.name.removeprefix(_CDP)
                self._cdp.record(seconds, (domain if domain in _DOMAINS else "other",))


def _answer(request: FinishedRequest) -> tuple[int | None, str | None]:
    """The status on the wire, which is 200 whatever a sealed reply says; None when nobody was there."""
    if _REPLY in request.attributes:
        return 200, None
    if request.outcome is TraceOutcome.DISCONNECTED:
        return None, TraceOutcome.DISCONNECTED.value
    return 403, None
