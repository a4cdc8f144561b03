"""The metrics of one broker: which figure of which part becomes which row of the table."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Final, Generic, TypeVar

from tabwarden.errors import Code, Refusal
from tabwarden.model import TraceOutcome
from tabwarden.service.statistics import Statistics

from tabwarden_observability import metric_table as table
from tabwarden_observability.endings import outcome_of
from tabwarden_observability.loop_watch import watching_loop
from tabwarden_observability.metric_table import Metric, Values
from tabwarden_observability.metrics import Metrics
from tabwarden_observability.request_histograms import HTTP, RequestHistograms
from tabwarden_observability.setup import Tracing

_FRESH_S: Final = 0.25  # one export reads some twenty rows from the same figures
_OK: Final = "ok"
_NO_ACTION: Final = "(none)"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AuditFigures:
    """Of an audit log, since it was opened. `lag`: records that are not on stable storage yet."""

    records: int
    syncs: int
    sync_s: float
    lag: int
    trouble: bool


@contextmanager
def broker_metrics(
    metrics: Metrics,
    *,
    tracing: Tracing,
    statistics: Callable[[], Statistics],
    audit: Callable[[], AuditFigures],
    sessions: Callable[[], int],
) -> Iterator[None]:
    """Observe a broker, and the event loop while the block runs. Does nothing when nobody asks for metrics.

    The three are called from the exporting thread, also after the block, and must not wait.
    """
    if not metrics.wanted:
        yield
        return
    _observe_control(metrics, Shared(statistics))
    _observe_audit(metrics, Shared(audit))
    metrics.observe(table.SESSIONS, lambda: {(): sessions()})
    metrics.observe(table.SPANS_DROPPED, lambda: {(): tracing.dropped})
    tracing.observe(RequestHistograms(metrics))
    with watching_loop(metrics):
        yield


class Shared(Generic[T]):
    """One reading for all rows of an export."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._held: tuple[float, T] | None = None

    def __call__(self) -> T:
        now, held = monotonic(), self._held
        if held is None or now - held[0] > _FRESH_S:
            held = self._held = (now, self._read())
        return held[1]


def _observe_control(metrics: Metrics, read: Callable[[], Statistics]) -> None:
    def single(metric: Metric, figure: Callable[[Statistics], float], values: Values = ()) -> None:
        metrics.observe(metric, lambda: {values: figure(read())})

    single(table.HTTP_ACTIVE, lambda now: now.calls_in_flight, HTTP)
    single(table.CHALLENGES, lambda now: now.outstanding_challenges)
    single(table.READY, lambda now: now.ready_challenges)
    single(table.BATCHES, lambda now: now.signatures)
    single(table.BATCHED, lambda now: now.challenges_signed)
    single(table.NONCES, lambda now: now.nonce_cache_fill)
    single(table.PRINCIPALS, lambda now: now.principals)
    single(table.CONNECTIONS, lambda now: now.connections)
    metrics.observe(table.CALLS, lambda: _calls(read().outcomes))
    metrics.observe(
        table.REFUSALS, lambda: {(reason.value,): count for reason, count in read().refusals.items()}
    )
    metrics.observe(table.LIMITED, lambda: _limited(read()))


def _observe_audit(metrics: Metrics, read: Callable[[], AuditFigures]) -> None:
    metrics.observe(table.AUDIT_RECORDS, lambda: {(): read().records})
    metrics.observe(table.AUDIT_SYNCS, lambda: {(): read().syncs})
    metrics.observe(table.AUDIT_SYNC_TIME, lambda: {(): read().sync_s})
    metrics.observe(table.AUDIT_LAG, lambda: {(): read().lag})
    metrics.observe(table.AUDIT_TROUBLE, lambda: {(): int(read().trouble)})


def _calls(outcomes: Mapping[tuple[str, str], int]) -> dict[Values, float]:
    calls: dict[Values, float] = {}
    for (action, code), count in outcomes.items():
        outcome = TraceOutcome.OK if code == _OK else outcome_of(Code(code))
        calls[action or _NO_ACTION, outcome.value, code] = count
    return calls


def _limited(now: Statistics) -> dict[Values, float]:
    calls = sum(count for (_, code), count in now.outcomes.items() if code == Code.RATE_LIMITED)
    return {
        ("calls",): calls,
        ("challenges",): now.refusals.get(Refusal.CHALLENGE_BUDGET, 0),
        ("outstanding",): now.refusals.get(Refusal.CHALLENGES_OUTSTANDING, 0),
    }
