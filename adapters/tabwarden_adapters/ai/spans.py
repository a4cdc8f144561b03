"""The span of one exchange, by OpenTelemetry's conventions for generative AI, and without any contents.

Names and values: `gen_ai.*` of the semantic conventions 1.37 and later (still in development there).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio
from opentelemetry.trace import NoOpTracer, Span, SpanKind, StatusCode, Tracer
from tabwarden.errors import ActionError, Code
from tabwarden.ports import RequestTrace
from tabwarden_observability import attached_to
from tabwarden_observability.attributes import CONFIGURED_MODELS

from tabwarden_adapters.ai.settings import GatewaySettings

# `{operation} {model}` is what the conventions would have; a name with data in it is none that we let out.
_NAME: Final = "chat"


class ExchangeSpans:
    """Makes them with a host's tracer (`Tracing.provider.get_tracer(…)`); with None, none are made."""

    def __init__(self, tracer: Tracer | None) -> None:
        self._tracer = tracer or NoOpTracer()

    @contextmanager
    def exchange(self, trace: RequestTrace, settings: GatewaySettings) -> Iterator[Span]:
        """Time one exchange below what `trace` is at. That it failed is kept, by its code, and no text."""
        CONFIGURED_MODELS.add(settings.model)
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.output.type": "text",
            "gen_ai.provider.name": "openai",  # whose API it is; who answers is the gateway's business
            "gen_ai.request.model": settings.model,
        }
        with attached_to(trace):
            span = self._tracer.start_span(_NAME, kind=SpanKind.CLIENT, attributes=attributes)
        try:
            yield span
        except ActionError as error:
            _failed(span, error.code.value)
            raise
        except trio.Cancelled:
            _failed(span, "cancelled")
            raise
        except BaseException:
            _failed(span, Code.FAILURE.value)
            raise
        finally:
            span.end()


def count_tokens(span: Span, input_tokens: int | None, output_tokens: int | None) -> None:
    """Say what the gateway counted."""
    if input_tokens is not None:
        span.set_attribute("gen_ai.usage.input_tokens", input_tokens)
    if output_tokens is not None:
        span.set_attribute("gen_ai.usage.output_tokens", output_tokens)


def _failed(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
