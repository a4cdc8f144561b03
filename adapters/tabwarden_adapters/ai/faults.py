"""How an exchange ends that gives no answer: a code for the agent, a rule for the audit, and no text."""

import ssl
from collections.abc import Iterator
from typing import Final

import httpcore
from tabwarden.errors import ActionError, Code

NOT_CONFIGURED: Final = "ai.not-configured"
NO_KEY: Final = "ai.no-key"
KEY_ELSEWHERE: Final = "ai.key-elsewhere"
UNREACHABLE: Final = "ai.gateway-unreachable"
TLS: Final = "ai.gateway-tls"
STALLED: Final = "ai.gateway-stalled"
BROKEN: Final = "ai.gateway-broken"
REDIRECT: Final = "ai.gateway-redirect"
KEY_REFUSED: Final = "ai.gateway-refuses-key"
BUSY: Final = "ai.gateway-busy"
STATUS: Final = "ai.gateway-status"
ANSWER: Final = "ai.gateway-answer"
ENDLESS: Final = "ai.gateway-endless"
TRUNCATED: Final = "ai.gateway-truncated"
TOO_LONG: Final = "ai.answer-too-long"
FILTERED: Final = "ai.gateway-filtered"
INSPECTOR: Final = "ai.inspector"
PAGE: Final = "ai.page"


def failed(rule: str) -> ActionError:
    """`failure`. What has become of the prompt is not known."""
    return ActionError(Code.FAILURE, rule=rule, committed=None)


def fault_of(error: Exception) -> ActionError:
    """What an exception of the HTTP library means. Nothing of it is kept: it may hold the gateway's text."""
    if any(isinstance(cause, ssl.SSLError) for cause in _causes(error)):
        return failed(TLS)
    if isinstance(error, httpcore.TimeoutException):
        return ActionError(Code.DEADLINE, rule=STALLED, committed=None)
    if isinstance(error, httpcore.ConnectError):
        return failed(UNREACHABLE)
    return failed(BROKEN)


def fault_of_status(status: int) -> ActionError:
    """What an HTTP status other than 200 means (RFC 9110, 15)."""
    if 300 <= status < 400:
        return failed(REDIRECT)
    if status in (401, 403):
        return failed(KEY_REFUSED)
    return failed(BUSY if status in (429, 503) else STATUS)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
