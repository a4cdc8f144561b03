"""The action `ai`: one question to the one model that an administrator chose, looked through both ways."""

import ssl
from collections.abc import Callable
from contextlib import suppress

import trio
from opentelemetry.trace import Span, Tracer
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden.ports import Inspector

from tabwarden_adapters.ai.asking import SentPage, request_body
from tabwarden_adapters.ai.chunks import DONE, read_chunk
from tabwarden_adapters.ai.events import EventReader
from tabwarden_adapters.ai.exchange import Exchange, system_trust
from tabwarden_adapters.ai.faults import NOT_CONFIGURED, PAGE, TOO_LONG, TRUNCATED, failed
from tabwarden_adapters.ai.holding import HeldText
from tabwarden_adapters.ai.limits import MAX_CHARACTERS, PAGE_CHARACTERS, TITLE_CHARACTERS, GatewayLimits
from tabwarden_adapters.ai.looking import FROM_MODEL, FROM_PAGE, TO_MODEL, Look
from tabwarden_adapters.ai.ports import KeySource, Operation, PageReader, still
from tabwarden_adapters.ai.quiet import unlogged
from tabwarden_adapters.ai.settings import GatewaySettings, gateway_settings
from tabwarden_adapters.ai.spans import ExchangeSpans, count_tokens


class ModelGateway:
    """Implements `AiGateway` of a browser's host contract: the prompt that it gets has been inspected, and
    the whole of its answer will be once more.

    `settings` is asked at each call, so that a changed policy holds from the next one on; None: there is no
    gateway. `key` gives the key for the gateway's origin; None: it wants none. `page` reads what goes along
    of the captured page; None: nothing does. `trust` is instead of the system's trust store. `tracer` makes
    OpenTelemetry spans.
    """

    def __init__(
        self,
        settings: Callable[[], GatewaySettings | None],
        *,
        inspect: Inspector,
        key: KeySource | None,
        page: PageReader | None = None,
        limits: GatewayLimits | None = None,
        trust: ssl.SSLContext | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._settings = settings
        self._inspector = inspect
        self._key = key
        self._page = page
        self._limits = limits or GatewayLimits()
        self._trust = trust
        self._spans = ExchangeSpans(tracer)

    async def __call__(self, prompt: str, captured: object, operation: Operation, /) -> str:
        """The model's answer. Raises `ActionError`: `not-available` without a gateway or its key,
        `content-denied` for what the inspector finds, `result-too-large`, `deadline` when the gateway says
        nothing for too long, `stale`, and `failure` for all that is the gateway's fault.

        When it raises or is cancelled, the connection is closed before that goes on.
        """
        still(operation)
        settings = self._configured()
        page = await self._read_page(captured, operation)
        key = None if self._key is None else await self._key(settings.endpoint.origin)
        still(operation)
        trust = await self._trusted(settings)
        still(operation)
        exchange = Exchange(settings.endpoint, trust, self._limits)
        body = request_body(settings, prompt, page)
        with (
            operation.trace.child("ai.exchange"),
            self._spans.exchange(operation.trace, settings) as span,
            unlogged(),
        ):
            try:
                await exchange.open(body, key)
                still(operation)
                text = await self._answer(exchange, settings.max_characters, operation, span)
            finally:
                await exchange.aclose()
        # Closing was shielded: what ended the call meanwhile is heard now.
        await trio.lowlevel.checkpoint_if_cancelled()
        still(operation)
        return text

    def _configured(self) -> GatewaySettings:
        settings = None
        with suppress(ConfigurationError):  # a policy may say what its own checks let through and we do not
            settings = self._settings()
        if settings is None:
            raise ActionError(Code.NOT_AVAILABLE, rule=NOT_CONFIGURED)
        return settings

    async def _trusted(self, settings: GatewaySettings) -> ssl.SSLContext:
        if settings.endpoint.scheme == b"http":
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and is not used
        if self._trust is None:
            self._trust = await trio.to_thread.run_sync(system_trust, abandon_on_cancel=True)
        return self._trust

    async def _read_page(self, captured: object, operation: Operation) -> SentPage | None:
        """What goes along. It must pass as what an agent reads, too: the answer may repeat every word."""
        if self._page is None:
            return None
        page = await self._page(captured, operation)
        still(operation)
        if len(page.text) > PAGE_CHARACTERS or len(page.title) > TITLE_CHARACTERS:
            raise failed(PAGE)
        title, text = page.title, page.text
        for direction in (FROM_PAGE, TO_MODEL):
            look = Look(self._inspector, direction, operation)
            title = await look(title, 0, len(title))
            text = await look(text + page.following, 0, len(text))
        return SentPage(page.origin, title, text, page.cut)

    async def _answer(self, exchange: Exchange, max_characters: int, operation: Operation, span: Span) -> str:
        held = HeldText(Look(self._inspector, FROM_MODEL, operation))
        reader = EventReader(self._limits)
        released: list[str] = []
        characters = 0
        finished = False
        while True:
            piece = await exchange.receive()
            # A gateway can send pieces faster than they are worked on, and others must get their turn.
            await trio.lowlevel.checkpoint()
            still(operation)
            if not piece:
                break
            for data in reader.feed(piece):
                if data == DONE:
                    released.append(await held.finish())
                    still(operation)
                    return "".join(released)
                chunk = read_chunk(data)
                count_tokens(span, chunk.input_tokens, chunk.output_tokens)
                characters += len(chunk.text)
                if characters > max_characters:
                    raise ActionError(Code.RESULT_TOO_LARGE, rule=TOO_LONG, committed=True)
                released.append(await held.add(chunk.text))
                finished = finished or chunk.finished
        if not finished:
            raise failed(TRUNCATED)
        released.append(await held.finish())
        still(operation)
        return "".join(released)


def create_model_gateway(
    url: str,
    model: str,
    *,
    inspect: Inspector,
    key: KeySource | None,
    max_characters: int = MAX_CHARACTERS,
    page: PageReader | None = None,
    limits: GatewayLimits | None = None,
    trust: ssl.SSLContext | None = None,
    tracer: Tracer | None = None,
) -> ModelGateway:
    """One whose settings never change. Raises `ConfigurationError` as `gateway_settings` does."""
    settings = gateway_settings(url, model, max_characters)
    return ModelGateway(
        lambda: settings, inspect=inspect, key=key, page=page, limits=limits, trust=trust, tracer=tracer
    )
