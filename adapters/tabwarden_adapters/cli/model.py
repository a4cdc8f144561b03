"""The model gateway of a served broker, from a signed policy or from the settings."""

from pathlib import Path

from opentelemetry.trace import Tracer
from tabwarden.errors import ConfigurationError
from tabwarden.ports import Inspector

from tabwarden_adapters.ai import GatewaySettings, ModelGateway, gateway_settings, settings_of
from tabwarden_adapters.browser import captured_text
from tabwarden_adapters.cli.ai_work import key_file
from tabwarden_adapters.cli.model_settings import ModelSettings
from tabwarden_adapters.policy import SignedPolicy


def model_gateway(
    settings: ModelSettings, signed: SignedPolicy | None, inspect: Inspector, tracer: Tracer
) -> ModelGateway | None:
    """None without a gateway in the settings; under a signed policy there may be one at any time.

    Blocking: tries the protector. Raises `ConfigurationError`.
    """
    if signed is not None:
        for name in ("url", "model", "max_characters"):
            if getattr(settings, name):
                raise ConfigurationError(f"ai.{name}: a signed policy says this for itself: leave it out")
    elif not settings.url:
        return None
    key = key_file(Path(settings.credential) if settings.credential else None, settings.protector)
    if signed is None:
        fixed = gateway_settings(settings.url, settings.model, settings.max_characters or 20_000)
        return ModelGateway(lambda: fixed, inspect=inspect, key=key, page=captured_text, tracer=tracer)

    def current() -> GatewaySettings | None:
        document = signed.document
        return None if document is None else settings_of(document.ai)

    return ModelGateway(current, inspect=inspect, key=key, page=captured_text, tracer=tracer)
