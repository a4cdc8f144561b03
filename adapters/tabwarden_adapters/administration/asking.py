"""The command's end of the socket. Blocking: a command has nothing else to do."""

from pathlib import Path
from typing import Any

from tabwarden.errors import MalformedError, TabwardenError

from tabwarden_adapters.administration.messages import MAX_REPLY_BYTES, Request, read_reply, write
from tabwarden_adapters.administration.place import connected

PATIENCE_S = 60.0  # a policy with 20,000 grants takes a few seconds on a slow machine
_CHUNK = 64 * 1024


class AdministrationFailed(TabwardenError):
    """The broker did not do it. `code` is for programs; the text says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def ask(path: Path, request: Request) -> Any:
    """What the broker at `path` answers, in plain JSON values.

    Raises `ConfigurationError` when there is none, `AdministrationFailed` when it says no or says nothing.
    """
    data = b""
    with connected(path) as stream:
        stream.settimeout(PATIENCE_S)
        try:
            stream.sendall(write(request))
            while (chunk := stream.recv(_CHUNK)) and len(data) <= MAX_REPLY_BYTES:
                data += chunk
        except OSError:
            raise AdministrationFailed("no-answer", f"the broker at {path} did not answer in time") from None
    if not data:
        raise AdministrationFailed("no-answer", f"the broker at {path} ended before it answered: look again")
    try:
        reply = read_reply(data)
    except MalformedError:
        raise AdministrationFailed(
            "no-answer", f"what answered at {path} is no broker of this version"
        ) from None
    if reply.error is not None:
        plain = "".join(one if one.isprintable() else " " for one in reply.error.message)
        raise AdministrationFailed(reply.error.code, plain)
    return reply.ok
