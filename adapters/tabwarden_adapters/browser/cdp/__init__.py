"""The Chrome DevTools Protocol: a connection and typed bindings. Private to the browser room."""

from tabwarden_adapters.browser.cdp.command import Command, Event, Record
from tabwarden_adapters.browser.cdp.connection import Connection, Session
from tabwarden_adapters.browser.cdp.errors import (
    CdpError,
    CommandFailed,
    EndReason,
    EventsLost,
    ReplyTooLarge,
    ReplyUnreadable,
    SessionEnded,
    TooManyCommands,
)
from tabwarden_adapters.browser.cdp.transport import Oversized, PipeTransport, Transport, pipe_pair

__all__ = [
    "CdpError",
    "Command",
    "CommandFailed",
    "Connection",
    "EndReason",
    "Event",
    "EventsLost",
    "Oversized",
    "PipeTransport",
    "Record",
    "ReplyTooLarge",
    "ReplyUnreadable",
    "Session",
    "SessionEnded",
    "TooManyCommands",
    "Transport",
    "pipe_pair",
]
