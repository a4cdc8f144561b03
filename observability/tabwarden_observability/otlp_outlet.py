"""The outlet to an OTLP collector: encoded from raw requests, sent by the SDK's own client."""

from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider

from tabwarden_observability.otlp_encoder import SpanEncoder
from tabwarden_observability.outlets import ShutDownOnce
from tabwarden_observability.record_ring import Item
from tabwarden_observability.records import RawRequest


class OtlpOutlet:
    """Sends what `exporter` would send, to where and as it would, with its tries and its time-outs.

    A request to a collector costs a ms of processor however much is in it, so batches are few and large.
    """

    interval_s = 1.0
    batch_spans = 4096  # 0.8 MB
    requests_a_nap = 16  # less than a ms, and each nap leaves the processor's caches to others

    def __init__(self, exporter: OTLPSpanExporter, provider: TracerProvider) -> None:
        self._client: Final[Any] = exporter._client
        self._encoder = SpanEncoder(provider.resource, provider.sampler)
        self._shut_down = ShutDownOnce([exporter])
        self._spans = 0

    @staticmethod
    def fits(exporter: OTLPSpanExporter) -> bool:
        """False when this release of the SDK has no client that takes bytes where we look for it."""
        return hasattr(getattr(exporter, "_client", None), "export")

    def add(self, item: Item, /) -> int:
        """See `Outlet`."""
        encoder = self._encoder
        added = encoder.add(item) if isinstance(item, RawRequest) else encoder.add_span(item)
        self._spans += added
        return added

    def deliver(self) -> int:
        """See `Outlet`."""
        spans, self._spans = self._spans, 0
        try:
            body = self._encoder.take()
            # The client itself would go on sending after its exporter was shut down.
            taken = not self._shut_down.done and self._client.export(body).success is True
        except Exception:
            taken = False
        return spans if taken else 0

    def abort(self) -> None:
        """See `Outlet`."""
        self._shut_down()

    def close(self) -> None:
        """See `Outlet`."""
        self._shut_down()
