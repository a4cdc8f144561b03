"""One CDP connection on trio: calls, sessions (flat mode) and events, in the order Chromium sent them.

Two tasks: one reads, one writes. The reader never waits for anybody: observers are plain functions,
subscriptions are bounded, and a subscriber that falls behind loses its subscription, not its order.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import msgspec
import trio

from tabwarden_adapters.browser.cdp import wire
from tabwarden_adapters.browser.cdp.command import Command, Event
from tabwarden_adapters.browser.cdp.errors import (
    CdpError,
    CommandFailed,
    EndReason,
    ReplyTooLarge,
    ReplyUnreadable,
    SessionEnded,
    TooManyCommands,
)
from tabwarden_adapters.browser.cdp.generated import inspector, target
from tabwarden_adapters.browser.cdp.subscription import Subscription
from tabwarden_adapters.browser.cdp.transport import Oversized, Transport

T = TypeVar("T")
E = TypeVar("E", bound=Event)
Handler = Callable[[Any], None]
Done = Callable[[object], None]  # gets the decoded result, or the CdpError

# Chromium takes a command in a fraction of a millisecond: this many waiting means that it is stuck.
MAX_QUEUED_COMMANDS = 1024
# Events a subscriber may be behind: a busy page sends tens in one burst.
SUBSCRIPTION_CAPACITY = 256


class _Pending:
    """A command that was sent: who wants its answer, and how."""

    __slots__ = ("done", "method", "session")

    def __init__(self, session: "Session", method: str, done: Done) -> None:
        self.session = session
        self.method = method
        self.done = done


class Session:
    """Calls and events of one target; the connection's `root` is the browser itself.

    After its end every call raises `SessionEnded` at once. A crashed target's calls do so until a person
    reloads it.
    """

    def __init__(self, connection: "Connection", session_id: str | None) -> None:
        self.id = session_id
        self._connection = connection
        self._handlers: dict[str, list[tuple[type[Event], Handler]]] = {}
        self._subscriptions: list[Subscription[Any]] = []
        self._over: EndReason | None = None
        self._crashed = False
        self._end = trio.Event()
        self.on_end: Callable[[], None] = lambda: None  # called once, at the end for good
        # Gets the method of an event that was too large to be taken. The rules of `on` hold.
        self.on_lost: Callable[[str], None] = lambda method: None
        # Gets the id of a paused request (Fetch.requestPaused) that was too large to be taken, after that.
        self.on_lost_request: Callable[[str], None] = lambda request_id: None

    @property
    def ended(self) -> EndReason | None:
        """Why a call would fail at once, or None while the target answers."""
        return self._over or (EndReason.CRASHED if self._crashed else None)

    @property
    def ended_for_good(self) -> bool:
        """True when detached or lost, not when only crashed."""
        return self._over is not None

    async def wait_ended(self) -> None:
        """Return when the session is over for good: detached, or the connection lost."""
        await self._end.wait()

    async def call(self, command: Command[T]) -> T:
        """Send a command and wait for its answer. A cancelled call's late answer is dropped.

        Raises `CommandFailed`, `SessionEnded`, `ReplyUnreadable` or `TooManyCommands`.
        """
        arrived = trio.Event()
        answer: list[object] = []

        def done(result: object) -> None:
            answer.append(result)
            arrived.set()

        number = self._connection.submit(self, command, done)
        try:
            await arrived.wait()
        finally:
            self._connection.forget(number)
        return _value(command, answer[0])

    def ask(self, command: Command[T], handler: Callable[[T | CdpError], None]) -> None:
        """Send a command; `handler` gets its answer before the reader takes the next message.

        Never blocks or raises. For what must be in order with events; the rules of `on` hold.
        """

        def done(result: object) -> None:
            value: T | CdpError
            try:
                value = _value(command, result)
            except CdpError as error:
                value = error
            handler(value)

        try:
            self._connection.submit(self, command, done)
        except CdpError as error:
            handler(error)

    def post(self, command: Command[Any]) -> None:
        """Send a command in order, without waiting; its answer is dropped. Never blocks or raises.

        For clean-up and for answers to events. When it cannot be sent, the target is gone or stuck.
        """
        with suppress(CdpError):
            self._connection.submit(self, command, lambda _: None)

    def on(self, event: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call `handler` for each `event`, before the reader takes the next message. Returns the undoing.

        So what a handler notes is never behind the answer to a call. It must not block. An exception
        from it ends this session: whoever relies on the handler's notes must not go on with old ones.
        """
        entry = (event, handler)
        handlers = self._handlers.setdefault(event.METHOD, [])
        handlers.append(entry)
        return lambda: handlers.remove(entry) if entry in handlers else None

    @contextmanager
    def subscribe(self, *events: type[E], capacity: int = SUBSCRIPTION_CAPACITY) -> Iterator[Subscription[E]]:
        """Queue these events for one task while the block runs."""
        subscription = Subscription[E](capacity)
        undo = [self.on(event, subscription.put) for event in events]
        self._subscriptions.append(subscription)
        if self._over:
            subscription.end()
        try:
            yield subscription
        finally:
            for remove in undo:
                remove()
            self._subscriptions.remove(subscription)
            subscription.close()

    def deliver(self, method: str, params: object) -> None:
        """For the connection: hand an event to those who asked for it."""
        if method == inspector.TargetCrashed.METHOD:
            self._crashed = True
            self._connection.fail_pending(self, EndReason.CRASHED)
        elif method == inspector.TargetReloadedAfterCrash.METHOD:
            self._crashed = False
        decoded: dict[type[Event], Event] = {}
        for kind, handler in list(self._handlers.get(method, ())):
            if kind not in decoded:
                decoded[kind] = kind.from_json(params)
            handler(decoded[kind])

    def finish(self, reason: EndReason) -> None:
        """For the connection: the end, for good."""
        if self._over is None:
            self._over = reason
            self._connection.fail_pending(self, reason)
            for subscription in self._subscriptions:
                subscription.end()
            self._end.set()
            self.on_end()


def _value(command: Command[T], answer: object) -> T:
    if isinstance(answer, CdpError):
        raise answer
    try:
        return command.parse(answer)
    except msgspec.ValidationError:
        raise ReplyUnreadable(command.method) from None


class Connection:
    """The connection; `await nursery.start(connection.run)` brings it to life in the caller's nursery."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._pending: dict[int, _Pending] = {}
        self._sessions: dict[str, Session] = {}
        self._next = 0
        self._sender, self._outgoing = trio.open_memory_channel[bytes](MAX_QUEUED_COMMANDS)
        self._scope = trio.CancelScope()
        self._finished = trio.Event()
        self.root = Session(self, None)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read and write until either side ends. Never raises: every session tells why it ended."""
        reason = EndReason.LOST
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    task_status.started()
                    reason = await self._read()
                    nursery.cancel_scope.cancel()
        finally:
            self._sender.close()
            for session in [*self._sessions.values(), self.root]:
                session.finish(reason)
            self._sessions.clear()
            with trio.move_on_after(1, shield=True):
                await self._transport.aclose()
            self._finished.set()

    async def aclose(self) -> None:
        """End both tasks and wait until they have ended. Every pending call raises `SessionEnded`."""
        self._scope.cancel()
        await self._finished.wait()

    def session(self, session_id: str) -> Session | None:
        """The session of an attached target, known since its `Target.attachedToTarget`."""
        return self._sessions.get(session_id)

    def submit(self, session: Session, command: Command[Any], done: Done) -> int:
        """For sessions: number a command and queue it. Raises `SessionEnded` or `TooManyCommands`."""
        if session.ended is not None:
            raise SessionEnded(session.ended)
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": command.method, "params": command.to_json()}
        if session.id is not None:
            message["sessionId"] = session.id
        try:
            self._sender.send_nowait(wire.encode(message))
        except trio.WouldBlock:
            raise TooManyCommands from None
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            raise SessionEnded(EndReason.LOST) from None
        self._pending[self._next] = _Pending(session, command.method, done)
        return self._next

    def forget(self, number: int) -> None:
        """For sessions: nobody waits for this answer any more."""
        self._pending.pop(number, None)

    def fail_pending(self, session: Session, reason: EndReason) -> None:
        """For sessions: end all their calls at once."""
        for number, pending in list(self._pending.items()):
            if pending.session is session:
                self._settle(number, SessionEnded(reason))

    async def _write(self) -> None:
        try:
            async for message in self._outgoing:
                await self._transport.send(message)
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            self._scope.cancel()

    async def _read(self) -> EndReason:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            while (message := await self._transport.receive()) is not None:
                if isinstance(message, Oversized):
                    self._refuse(message)
                    continue
                try:
                    self._route(wire.decode(message))
                except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
                    return EndReason.VIOLATION
                del message  # of megabytes, perhaps, and the next one may be long in coming
        return EndReason.LOST

    def _refuse(self, message: Oversized) -> None:
        answer = re.match(rb'\{"id":(\d+),', message)
        if answer:
            self._settle(int(answer[1]), ReplyTooLarge())
            return
        # What a page makes so large: a dialog's text, an address, a request. That, unanswered, stays paused.
        event = re.match(rb'\{"method":"([A-Za-z.]+)"', message)
        # Behind everything that a page has a say in, and a quote of a page's own would be escaped.
        of = re.search(rb'"sessionId":"([0-9A-Za-z-]+)"\}$', message.tail)
        session = self._sessions.get(of[1].decode()) if of else self.root
        if event and session is not None:
            try:
                session.on_lost(event[1].decode())
                paused = re.match(
                    rb'\{"method":"Fetch.requestPaused","params":\{"requestId":"([^"]+)"', message
                )
                if paused:
                    session.on_lost_request(paused[1].decode())
            except Exception:  # as for events
                self._finish(session)

    def _route(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answer(message)
            return
        method, params, session_id = message["method"], message.get("params", {}), message.get("sessionId")
        if method == target.AttachedToTarget.METHOD:
            self._sessions.setdefault(params["sessionId"], Session(self, params["sessionId"]))
        session = self.root if session_id is None else self._sessions.get(session_id)
        if session is not None:
            try:
                session.deliver(method, params)
            except Exception:  # a handler's fault, or an event that is not what the protocol says
                self._finish(session)
        if method == target.DetachedFromTarget.METHOD:
            detached = self._sessions.pop(params["sessionId"], None)
            if detached is not None:
                detached.finish(EndReason.DETACHED)

    def _finish(self, session: Session) -> None:
        if session is self.root:
            self._scope.cancel()
        elif session.id is not None:
            self._sessions.pop(session.id, None)
        session.finish(EndReason.VIOLATION)

    def _answer(self, message: dict[str, Any]) -> None:
        number = message["id"]
        if number in self._pending and "error" in message:
            method = self._pending[number].method
            self._settle(number, CommandFailed(method, int(message["error"]["code"])))
        else:
            self._settle(number, message.get("result"))

    def _settle(self, number: int, answer: object) -> None:
        pending = self._pending.pop(number, None)
        if pending is None:
            return  # whoever asked was cancelled
        try:
            pending.done(answer)
        except Exception:  # as for events: its owner's notes are not to be trusted any more
            self._finish(pending.session)
