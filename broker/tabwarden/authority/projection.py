"""Only what the action table declares may leave: everything else in an adapter's value is dropped."""

from typing import Any

import msgspec

from tabwarden.actions import ActionSpec


class NotProjectable(Exception):
    """The adapter returned something that is not a result of its action. Carries no text of it."""


def project(spec: ActionSpec, value: object) -> Any:
    """`value` as plain JSON values with the fields of `spec.result` and no others.

    Raises `NotProjectable` for a missing field, a wrong type, text that has no UTF-8, or a value that cannot
    be walked.
    """
    try:
        projected = msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(value), spec.result))
        # Text with a lone surrogate passes the type check; the encoder finds it.
        msgspec.json.encode(projected)
    except BaseException:
        # Whatever a hostile object raises while it is walked, SystemExit too, neither it nor its text may
        # go on. Nothing here awaits, so no cancellation is lost.
        raise NotProjectable from None
    return projected


def encode(body: object) -> bytes:
    """JSON of an already projected value."""
    return msgspec.json.encode(body)
