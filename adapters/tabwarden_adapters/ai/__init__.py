"""The AI room: the action `ai`, through one gateway with an OpenAI-compatible API."""

from tabwarden_adapters.ai.gateway import ModelGateway, create_model_gateway
from tabwarden_adapters.ai.key import ApiKey, KeyFile, remove_key
from tabwarden_adapters.ai.limits import GatewayLimits
from tabwarden_adapters.ai.ports import KeySource, PageReader, PageText
from tabwarden_adapters.ai.settings import GatewaySettings, gateway_settings, origin_of, settings_of

__all__ = [
    "ApiKey",
    "GatewayLimits",
    "GatewaySettings",
    "KeyFile",
    "KeySource",
    "ModelGateway",
    "PageReader",
    "PageText",
    "create_model_gateway",
    "gateway_settings",
    "origin_of",
    "remove_key",
    "settings_of",
]
