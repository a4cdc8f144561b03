"""The standard `OTEL_*` environment, as far as this package reads it itself.

The OpenTelemetry SDK reads the rest: `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, the sampler, intervals
and the other `OTEL_EXPORTER_OTLP_*` (OpenTelemetry specification, "Environment Variable Specification").
Unlike the specification, nothing is exported unless an exporter or an endpoint was named: a fresh install
connects to nothing.
"""

import os
from typing import Literal

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from tabwarden.errors import ConfigurationError

Signal = Literal["TRACES", "METRICS", "LOGS"]
Exporter = Literal["otlp", "console", "prometheus"]


def variable(name: str) -> str:
    """Its value without white space around it; "" when it is not set."""
    return os.environ.get(name, "").strip()


def disabled() -> bool:
    """Whether the SDK is switched off as a whole."""
    return variable("OTEL_SDK_DISABLED").lower() == "true"


def exporters_named(signal: Signal) -> list[Exporter]:
    """What `OTEL_<signal>_EXPORTER` names, or an endpoint implies. Raises `ConfigurationError`."""
    named = variable(f"OTEL_{signal}_EXPORTER").lower()
    if not named:
        endpoints = (f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
        named = "otlp" if any(variable(name) for name in endpoints) else "none"
    found: list[Exporter] = []
    for name in dict.fromkeys(part.strip() for part in named.split(",")):
        if name == "otlp":
            require_http(signal)
            found.append("otlp")
        elif name == "console":
            found.append("console")
        elif name == "prometheus" and signal == "METRICS":
            found.append("prometheus")
        elif name != "none":
            known = "otlp, console, prometheus or none" if signal == "METRICS" else "otlp, console or none"
            raise ConfigurationError(f"OTEL_{signal}_EXPORTER must be {known}")
    return found


def require_http(signal: Signal) -> None:
    """Raises `ConfigurationError` when the environment asks for another protocol of OTLP."""
    protocol = variable(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or variable("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol not in ("", "http/protobuf"):
        raise ConfigurationError("OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf")


def own_resource() -> Resource:
    """The SDK's, named `tabwarden` where the environment gives no name."""
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "tabwarden"}))
    return resource
