"""`OTEL_METRICS_EXPORTER=prometheus`: the figures at http://localhost:9464/metrics, or where
`OTEL_EXPORTER_PROMETHEUS_HOST` and `OTEL_EXPORTER_PROMETHEUS_PORT` say (OpenTelemetry specification,
"Environment Variable Specification")."""

from ipaddress import ip_address
from typing import Final

from opentelemetry.sdk.metrics.export import MetricReader
from tabwarden.errors import ConfigurationError

from tabwarden_observability.environment import variable
from tabwarden_observability.histograms import OwnHistograms
from tabwarden_observability.scrape_server import ScrapeServer

_HOST: Final = "OTEL_EXPORTER_PROMETHEUS_HOST"
_PORT: Final = "OTEL_EXPORTER_PROMETHEUS_PORT"
_DEFAULT_PORT: Final = 9464
_MAX_PORT: Final = 65535


def prometheus_endpoint(histograms: OwnHistograms) -> tuple[MetricReader, ScrapeServer]:
    """A reader, and the server of what it reads: it listens, but does not answer before it is started.

    Raises `ConfigurationError`.
    """
    try:
        from tabwarden_observability.prometheus_reader import ScrapedReader
    except ImportError:
        raise ConfigurationError(
            "OTEL_METRICS_EXPORTER=prometheus needs another package: pip install 'tabwarden[prometheus]'"
        ) from None
    address, port = _loopback_address(), _port()
    reader = ScrapedReader(histograms)
    try:
        server = ScrapeServer(address, port, reader.text)
    except OSError as error:
        raise ConfigurationError(
            f"cannot serve metrics at {address}, port {port} ({error.strerror}): "
            f"set {_PORT} to a port that is free"
        ) from None
    return reader, server


def _loopback_address() -> str:
    host = variable(_HOST)
    if host in ("", "localhost"):
        return "127.0.0.1"
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        # Names are not resolved: what one stands for may change, and asking may take long.
        raise ConfigurationError(
            f"{_HOST} must be localhost or a loopback address: metrics are served without a login. "
            "To have them elsewhere, let a Prometheus or OpenTelemetry Collector of this machine scrape them"
        )
    return str(address)


def _port() -> int:
    text = variable(_PORT)
    if not text:
        return _DEFAULT_PORT
    if not (
        text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_PORT)) and int(text) <= _MAX_PORT
    ):
        raise ConfigurationError(f"{_PORT} must be a port number")
    return int(text)
