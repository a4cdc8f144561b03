"""What the commands print: tables for a person at a terminal, JSON for everything else.

Results go to stdout. A failure is one line on stderr with its typed code, and exit status 1.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text
from tabwarden.errors import (
    ActionError,
    CallFailed,
    ChallengeLimited,
    ClientDeadline,
    ConfigurationError,
    DescriptorError,
    ProtocolViolation,
    Refused,
    TabwardenError,
    Unreachable,
)

from tabwarden_adapters.administration import AdministrationFailed
from tabwarden_adapters.cli.plain import plain, plain_json

_CODES: tuple[tuple[type[TabwardenError], str], ...] = (
    (Refused, "refused"),
    (ChallengeLimited, "challenge-limited"),
    (ClientDeadline, "client-deadline"),
    (Unreachable, "unreachable"),
    (ProtocolViolation, "protocol-violation"),
    (DescriptorError, "descriptor"),
    (ConfigurationError, "configuration"),
)

# What a person may do about a sealed failure; the code alone goes to programs.
_ADVICE = {
    "policy-denied": "the broker's policy does not allow this action",
    "content-denied": "the text holds what must not pass, or could not be looked through: see docs/dlp.md",
    "user-denied": "a person said no",
    "approval-timeout": "a person was asked and did not answer in time",
    "no-approver": "a person must agree, and this broker has nobody to ask: see `tabwarden serve --approver`",
    "destination-denied": "the broker's policy does not allow this address",
    "unknown-action": "see `tabwarden actions` for what exists",
    "invalid-arguments": "see `tabwarden actions` for the arguments of each action",
    "not-available": "this broker has no adapter for the action",
    "unknown-session": "the tab is closed or never was; see `tabwarden sessions`",
    "stale": "the page changed meanwhile; look again before trying again",
    "stale-ref": "that control is gone or was another page's; inspect again for a new ref",
    "rate-limited": "too many calls in this minute",
    "deadline": "it took longer than the broker allows",
    "audit-unavailable": "the audit log cannot be written, so nothing is done; see `tabwarden doctor`",
    "navigation-failed": "the page could not be loaded",
}


def to_terminal() -> bool:
    """True when a person reads stdout."""
    return sys.stdout.isatty()


def emit(value: object, render: Callable[[Console], None] | None = None, *, as_json: bool = False) -> None:
    """Print a result: by `render` on a terminal, as one line of JSON otherwise or with `--json`."""
    if render is not None and to_terminal() and not as_json:
        render(Console())
    else:
        sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=not to_terminal())) + "\n")
        sys.stdout.flush()


def fail(code: str, message: str, **details: object) -> int:
    """Print one failure and give the exit status."""
    if sys.stderr.isatty():
        Console(stderr=True).print(
            Text.assemble(("tabwarden: ", "bold"), (code, "bold red"), f": {plain(message)}")
        )
    else:
        sys.stderr.write(json.dumps({"error": {"code": code, "message": message, **details}}) + "\n")
    return 1


def failure_of(error: TabwardenError) -> int:
    """Print what went wrong, in the words of its type."""
    if isinstance(error, CallFailed):
        message = _ADVICE.get(error.code, "the call did not succeed")
        if error.retry_after_ms is not None:
            message += f"; wait {error.retry_after_ms} ms"
        details = {} if error.content_class is None else {"contentClass": error.content_class}
        if details:
            message += f" ({error.content_class})"
        return fail(error.code, message, status=error.status, effect=error.effect, **details)
    if isinstance(error, ActionError):
        return fail(error.code.value, _ADVICE.get(error.code.value, "the action cannot be done"))
    if isinstance(error, AdministrationFailed):
        return fail(error.code, str(error))
    for kind, code in _CODES:
        if isinstance(error, kind):
            return fail(code, str(error))
    return fail("failure", str(error))


class Exit:
    """The exit status of a command, decided inside `typed_failures`."""

    def __init__(self) -> None:
        self.status = 0


@contextmanager
def typed_failures() -> Iterator[Exit]:
    """Turn every expected error of the block into one line and status 1; a group of them into its first."""
    exit_ = Exit()
    try:
        yield exit_
    except TabwardenError as error:
        exit_.status = failure_of(error)
    except BaseExceptionGroup as group:
        expected, other = group.split(TabwardenError)
        if other is not None or expected is None:
            raise
        leaf: BaseException = expected
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        if not isinstance(leaf, TabwardenError):
            raise
        exit_.status = failure_of(leaf)
