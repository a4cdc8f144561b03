"""The broker's end of the socket: one request a connection, from processes of this user only."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trio
from tabwarden.errors import ActionError, HostReason, MalformedError, TabwardenError
from tabwarden.ports import ErrorObserver

from tabwarden_adapters.administration.messages import (
    MAX_REQUEST_BYTES,
    Administrator,
    Fault,
    Reply,
    read_request,
    write,
)
from tabwarden_adapters.administration.place import listening, same_user

CONNECTIONS = 16  # commands of one person, some of which wait for a policy to be read
REQUEST_S = 5.0  # a command sends its line at once
REPLY_S = 30.0
_RETRY_S = 0.05


@asynccontextmanager
async def administration(
    path: Path, administrator: Administrator, on_error: ErrorObserver | None = None
) -> AsyncIterator[None]:
    """Answer at `path` while the block runs. A fault in one request ends that request only; `on_error` is
    told of it.

    Raises `ConfigurationError` when the socket cannot be there.
    """
    with listening(path) as listener:
        listener.setblocking(False)
        async with trio.open_nursery() as nursery:
            socket = trio.socket.from_stdlib_socket(listener)
            nursery.start_soon(_accept, socket, administrator, on_error, nursery)
            yield
            nursery.cancel_scope.cancel()


async def _accept(
    listener: trio.socket.SocketType,
    administrator: Administrator,
    on_error: ErrorObserver | None,
    nursery: trio.Nursery,
) -> None:
    room = trio.CapacityLimiter(CONNECTIONS)
    while True:
        try:
            accepted, _ = await listener.accept()
        except OSError:  # out of descriptors, or a peer that has left again
            await trio.sleep(_RETRY_S)
            continue
        if room.available_tokens < 1:
            accepted.close()
            continue
        room.acquire_on_behalf_of_nowait(accepted)
        nursery.start_soon(_serve, accepted, administrator, on_error, room)


async def _serve(
    accepted: trio.socket.SocketType,
    administrator: Administrator,
    on_error: ErrorObserver | None,
    room: trio.CapacityLimiter,
) -> None:
    try:
        with accepted:
            if same_user(accepted):
                await _answer(trio.SocketStream(accepted), administrator, on_error)
    except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
        pass  # the command was interrupted
    finally:
        room.release_on_behalf_of(accepted)


async def _answer(
    stream: trio.SocketStream, administrator: Administrator, on_error: ErrorObserver | None
) -> None:
    line = b""
    with trio.move_on_after(REQUEST_S) as patience:
        while not line.endswith(b"\n"):
            data = await stream.receive_some(MAX_REQUEST_BYTES)
            line += data
            if not data or len(line) > MAX_REQUEST_BYTES:
                return
    if patience.cancelled_caught:
        return
    reply = write(await _reply(line, administrator, on_error))
    with trio.move_on_after(REPLY_S):
        await stream.send_all(reply)
        await stream.send_eof()


async def _reply(line: bytes, administrator: Administrator, on_error: ErrorObserver | None) -> Reply:
    try:
        return Reply(ok=await administrator(read_request(line)))
    except MalformedError as error:
        return Reply(error=Fault("bad-request", str(error)))
    except ActionError as error:
        return Reply(error=Fault(error.code.value, "it cannot be done"))
    except TabwardenError as error:
        return Reply(error=Fault("configuration", str(error)))
    except Exception:
        # Ours. Its text stays here: it may hold anything.
        if on_error is not None:
            with suppress(Exception):
                on_error(HostReason.INTERNAL_FAULT)
        return Reply(error=Fault("failure", "the broker could not do it: see its own output"))
