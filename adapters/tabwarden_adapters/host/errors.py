"""What the control server may answer instead of a result: a closed set, each with its status and fixed text.

The body is `{"error": {"code": CODE, "message": TEXT}}`. No text of a peer, a page or an exception is in it.
"""

from enum import StrEnum

import msgspec


class ErrorCode(StrEnum):
    """`code` of a reply that is not 200."""

    MALFORMED = "malformed-http"
    TOO_SLOW = "too-slow"
    HEADERS = "headers"
    BROWSER = "browser"
    HOST = "host"
    UNAUTHORIZED = "unauthorized"
    ROUTE = "unknown-route"
    METHOD = "method"
    LENGTH = "length-required"
    TOO_LARGE = "too-large"
    EXPECTATION = "expectation"
    VERSION = "http-version"
    JSON = "invalid-json"
    FIELDS = "invalid-fields"
    ORIGIN = "invalid-origin"
    BUSY = "busy"
    REVOKED = "revoked"
    FAILURE = "failure"
    CLOSING = "closing"
    DEADLINE = "deadline"


ERRORS: dict[ErrorCode, tuple[int, str]] = {
    ErrorCode.MALFORMED: (400, "not one plain HTTP/1.1 request"),
    ErrorCode.JSON: (400, "the body is not strict JSON"),
    ErrorCode.FIELDS: (400, "a field is missing, too long or of another type"),
    ErrorCode.ORIGIN: (400, "origin is not an origin"),
    ErrorCode.UNAUTHORIZED: (401, "send Authorization: Bearer with the token of host.json"),
    ErrorCode.BROWSER: (403, "requests of web pages are refused"),
    ErrorCode.HOST: (403, "Host must be this server's own address"),
    ErrorCode.REVOKED: (403, "the host has withdrawn its consent"),
    ErrorCode.ROUTE: (404, "no such endpoint"),
    ErrorCode.METHOD: (405, "the endpoint has another method"),
    ErrorCode.TOO_SLOW: (408, "the request did not arrive in time"),
    ErrorCode.LENGTH: (411, "send Content-Length"),
    ErrorCode.TOO_LARGE: (413, "the body is over its limit"),
    ErrorCode.EXPECTATION: (417, "send the body without asking first"),
    ErrorCode.BUSY: (429, "too many questions are waiting for the person"),
    ErrorCode.HEADERS: (431, "too many or too long headers"),
    ErrorCode.FAILURE: (500, "the host failed; take it for a no"),
    ErrorCode.CLOSING: (503, "the host is closing"),
    ErrorCode.DEADLINE: (504, "the host did not answer in time; take it for a no"),
    ErrorCode.VERSION: (505, "HTTP/1.1 only"),
}


class ControlError(Exception):
    """A request that is not answered by a result."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.value)
        self.code = code


def error_reply(code: ErrorCode) -> tuple[int, bytes]:
    """Status and JSON body."""
    status, message = ERRORS[code]
    return status, msgspec.json.encode({"error": {"code": code.value, "message": message}})
