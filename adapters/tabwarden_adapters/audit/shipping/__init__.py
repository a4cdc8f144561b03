"""Ships the records of a log to a syslog server or an OpenTelemetry collector, at least once and in order."""

from tabwarden_adapters.audit.shipping.address import SyslogAddress, parse_address
from tabwarden_adapters.audit.shipping.backoff import Backoff
from tabwarden_adapters.audit.shipping.cursor_file import CursorFile, open_cursor
from tabwarden_adapters.audit.shipping.otlp import OtlpDestination
from tabwarden_adapters.audit.shipping.port import Delivery, DeliveryFailed, Destination
from tabwarden_adapters.audit.shipping.shipper import Shipper
from tabwarden_adapters.audit.shipping.streams import StreamLimits, SyslogDestination
from tabwarden_adapters.audit.shipping.syslog import SD_ID, syslog_framing

__all__ = [
    "SD_ID",
    "Backoff",
    "CursorFile",
    "Delivery",
    "DeliveryFailed",
    "Destination",
    "OtlpDestination",
    "Shipper",
    "StreamLimits",
    "SyslogAddress",
    "SyslogDestination",
    "open_cursor",
    "parse_address",
    "syslog_framing",
]
