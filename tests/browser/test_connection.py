"""The CDP connection against a transport that the test speaks for."""

import pytest
import trio
from tabwarden_adapters.browser.cdp import (
    CdpError,
    Command,
    CommandFailed,
    Connection,
    EndReason,
    EventsLost,
    Oversized,
    ReplyUnreadable,
    Session,
    SessionEnded,
    TooManyCommands,
)
from tabwarden_adapters.browser.cdp.connection import MAX_QUEUED_COMMANDS
from tabwarden_adapters.browser.cdp.generated import browser, page, runtime, target

from tests.browser.scripted import ScriptedTransport

VERSION = {"protocolVersion": "1.3", "product": "P", "revision": "", "userAgent": "", "jsVersion": ""}
NAVIGATE = page.navigate(url="http://a.test/")


@pytest.fixture
def transport() -> ScriptedTransport:
    return ScriptedTransport()


@pytest.fixture
async def connection(nursery, transport):
    connection = Connection(transport)
    await nursery.start(connection.run)
    yield connection
    await connection.aclose()
    assert transport.closed


async def attached(connection: Connection, transport: ScriptedTransport, session_id: str = "S") -> Session:
    with connection.root.subscribe(target.AttachedToTarget) as events:
        transport.attach(session_id)
        await anext(events)
    session = connection.session(session_id)
    assert session is not None
    return session


async def begin(nursery, session: Session, command: Command) -> "Outcome":
    outcome = Outcome()
    nursery.start_soon(outcome.run, session, command)
    return outcome


class Outcome:
    def __init__(self) -> None:
        self.done = trio.Event()
        self.scope = trio.CancelScope()
        self.value: object = None
        self.error: CdpError | None = None

    async def run(self, session: Session, command: Command) -> None:
        with self.scope:
            try:
                self.value = await session.call(command)
            except CdpError as error:
                self.error = error
        self.done.set()


async def test_answers_find_their_calls_in_any_order(nursery, connection, transport):
    first = await begin(nursery, connection.root, browser.get_version())
    one = await transport.heard()
    second = await begin(nursery, connection.root, browser.get_version())
    two = await transport.heard()
    assert one["id"] != two["id"]
    assert "sessionId" not in one
    transport.say(id=two["id"], result={**VERSION, "product": "two"})
    await second.done.wait()
    assert not first.done.is_set()
    transport.say(id=one["id"], result={**VERSION, "product": "one"})
    await first.done.wait()
    assert (first.value.product, second.value.product) == ("one", "two")


async def test_a_session_names_itself_and_omits_what_is_not_given(nursery, connection, transport):
    session = await attached(connection, transport)
    await begin(nursery, session, page.navigate(url="http://a.test/\ud800"))
    heard = await transport.heard()
    assert heard["sessionId"] == "S"
    assert heard["params"] == {"url": "http://a.test/\ud800"}
    nursery.cancel_scope.cancel()


async def test_an_error_carries_its_code_and_no_text(nursery, connection, transport):
    call = await begin(nursery, connection.root, browser.get_version())
    number = (await transport.heard())["id"]
    transport.say(id=number, error={"code": -32000, "message": "page text"})
    await call.done.wait()
    assert isinstance(call.error, CommandFailed)
    assert call.error.code == -32000
    assert "page text" not in repr(call.error) + str(call.error)


async def test_an_answer_of_another_shape_is_an_error(nursery, connection, transport):
    call = await begin(nursery, connection.root, browser.get_version())
    transport.say(id=(await transport.heard())["id"], result={"product": 7})
    await call.done.wait()
    assert isinstance(call.error, ReplyUnreadable)


async def test_an_oversized_answer_fails_its_call_only(nursery, connection, transport):
    call = await begin(nursery, connection.root, browser.get_version())
    number = (await transport.heard())["id"]
    transport.say_raw(Oversized(b'{"method":"Fetch.requestPaused","params":{"request":{'))
    transport.say_raw(Oversized(b'{"id":%d,"result":{"x":"aaaa' % number))
    await call.done.wait()
    assert isinstance(call.error, ReplyUnreadable)
    again = await begin(nursery, connection.root, browser.get_version())
    transport.say(id=(await transport.heard())["id"], result=VERSION)
    await again.done.wait()
    assert again.error is None


async def test_an_oversized_event_is_told_to_the_session_that_it_was_for(connection, transport):
    told = []
    one, two = [await attached(connection, transport, name) for name in ("S1", "S2")]
    for name, session in (("S1", one), ("S2", two), ("root", connection.root)):
        session.on_lost = lambda method, name=name: told.append((name, method))
    dialog = b'{"method":"Page.javascriptDialogOpening","params":{"url":"'
    transport.say_raw(Oversized(dialog, b'aa"},"sessionId":"S2"}'))
    transport.say_raw(Oversized(dialog, b'\\"sessionId\\":\\"S1\\"}"}}'))  # text of a page
    transport.say_raw(Oversized(dialog, b'"},"sessionId":"S3"}'))
    transport.say_raw(Oversized(b'{"methods":1', b'"},"sessionId":"S2"}'))
    done = trio.Event()
    connection.root.ask(browser.get_version(), lambda _: done.set())
    transport.say(id=(await transport.heard())["id"], result=VERSION)
    await done.wait()
    assert told == [("S2", "Page.javascriptDialogOpening"), ("root", "Page.javascriptDialogOpening")]


async def test_of_an_oversized_paused_request_the_id_is_told(connection, transport):
    told = []
    session = await attached(connection, transport, "S1")
    for name, one in (("S1", session), ("root", connection.root)):
        one.on_lost_request = lambda request_id, name=name: told.append((name, request_id))
    paused = b'{"method":"Fetch.requestPaused","params":{"requestId":"interception-job-7.0","request":{"url":'
    transport.say_raw(Oversized(paused, b'"},"sessionId":"S1"}'))
    transport.say_raw(Oversized(paused, b'"XHR"}}'))
    transport.say_raw(Oversized(paused.replace(b"Paused", b"Other"), b'"},"sessionId":"S1"}'))
    transport.say_raw(Oversized(b'{"method":"Fetch.requestPaused","params":{"requestId":"x', b'"XHR"}}'))
    done = trio.Event()
    connection.root.ask(browser.get_version(), lambda _: done.set())
    transport.say(id=(await transport.heard())["id"], result=VERSION)
    await done.wait()
    assert told == [("S1", "interception-job-7.0"), ("root", "interception-job-7.0")]


async def test_a_listener_that_fails_at_an_oversized_event_ends_its_session_only(connection, transport):
    session = await attached(connection, transport, "S1")
    session.on_lost = lambda method: 1 / 0
    transport.say_raw(Oversized(b'{"method":"Page.frameNavigated","params":{', b'},"sessionId":"S1"}'))
    await session.wait_ended()
    assert session.ended is EndReason.VIOLATION
    assert connection.root.ended is None


async def test_the_late_answer_of_a_cancelled_call_is_dropped(nursery, connection, transport):
    cancelled = await begin(nursery, connection.root, browser.get_version())
    late = (await transport.heard())["id"]
    cancelled.scope.cancel()
    await cancelled.done.wait()
    transport.say(id=late, result=VERSION)
    call = await begin(nursery, connection.root, browser.get_version())
    transport.say(id=(await transport.heard())["id"], result={**VERSION, "product": "next"})
    await call.done.wait()
    assert cancelled.value is None
    assert call.value.product == "next"


async def test_detaching_ends_the_calls_of_that_session_only(nursery, connection, transport):
    gone, stays = await attached(connection, transport, "A"), await attached(connection, transport, "B")
    lost = await begin(nursery, gone, NAVIGATE)
    await transport.heard()
    kept = await begin(nursery, stays, NAVIGATE)
    number = (await transport.heard())["id"]
    transport.detach("A")
    await lost.done.wait()
    await gone.wait_ended()
    assert isinstance(lost.error, SessionEnded)
    assert lost.error.reason is EndReason.DETACHED
    with pytest.raises(SessionEnded):
        await gone.call(NAVIGATE)
    transport.say(id=number, result={"frameId": "F"}, sessionId="B")
    await kept.done.wait()
    assert kept.value.frame_id == "F"


async def test_a_crash_ends_calls_at_once_until_the_target_is_reloaded(nursery, connection, transport):
    session = await attached(connection, transport)
    lost = await begin(nursery, session, NAVIGATE)
    await transport.heard()
    transport.say(method="Inspector.targetCrashed", params={}, sessionId="S")
    await lost.done.wait()
    assert isinstance(lost.error, SessionEnded)
    assert session.ended is EndReason.CRASHED
    assert not session.ended_for_good
    with pytest.raises(SessionEnded):
        await session.call(NAVIGATE)
    transport.say(method="Inspector.targetReloadedAfterCrash", params={}, sessionId="S")
    await attached(connection, transport, "later")
    assert session.ended is None


async def test_the_end_of_the_pipe_ends_everything(nursery, connection, transport):
    session = await attached(connection, transport)
    one = await begin(nursery, session, NAVIGATE)
    two = await begin(nursery, connection.root, browser.get_version())
    await transport.heard()
    await transport.heard()
    with session.subscribe(page.FrameNavigated) as events:
        transport.hang_up()
        assert [event async for event in events] == []
    await one.done.wait()
    await two.done.wait()
    assert [one.error.reason, two.error.reason] == [EndReason.LOST] * 2
    with pytest.raises(SessionEnded):
        await connection.root.call(browser.get_version())


@pytest.mark.parametrize("message", [b"{", b"[]", b'"x"', b'{"params":{}}', b"[" * 100_000, b'{"id":{}}'])
async def test_what_is_not_cdp_ends_the_connection(connection, transport, message):
    transport.say_raw(message)
    await connection.root.wait_ended()
    assert connection.root.ended in (EndReason.VIOLATION, EndReason.LOST)


async def test_lone_surrogates_are_replaced(connection, transport):
    session = await attached(connection, transport)
    with session.subscribe(page.NavigatedWithinDocument) as events:
        transport.say_raw(
            b'{"method":"Page.navigatedWithinDocument","sessionId":"S","params":'
            b'{"frameId":"F","url":"http://a.test/\\ud83d \\ud83d\\ude00","navigationType":"other"}}'
        )
        event = await anext(events)
    assert event.url == "http://a.test/\ufffd \U0001f600"


async def test_a_slow_subscriber_is_told_and_holds_up_nobody(nursery, connection, transport):
    session = await attached(connection, transport)
    with session.subscribe(page.FrameStoppedLoading, capacity=2) as slow:
        for number in range(5):
            transport.say(method="Page.frameStoppedLoading", params={"frameId": str(number)}, sessionId="S")
        call = await begin(nursery, session, NAVIGATE)
        transport.say(id=(await transport.heard())["id"], result={"frameId": "F"}, sessionId="S")
        await call.done.wait()
        assert [(await anext(slow)).frame_id, (await anext(slow)).frame_id] == ["0", "1"]
        with pytest.raises(EventsLost):
            await anext(slow)


async def test_handlers_see_an_event_before_a_later_answer_is_seen(nursery, connection, transport):
    session = await attached(connection, transport)
    noted: list[str] = []
    session.on(page.FrameStoppedLoading, lambda event: noted.append(event.frame_id))
    session.ask(NAVIGATE, lambda answer: noted.append("answer"))
    number = (await transport.heard())["id"]
    call = await begin(nursery, session, NAVIGATE)
    last = (await transport.heard())["id"]
    for frame in ("one", "two"):
        transport.say(method="Page.frameStoppedLoading", params={"frameId": frame}, sessionId="S")
    transport.say(id=number, result={"frameId": "F"}, sessionId="S")
    transport.say(method="Page.frameStoppedLoading", params={"frameId": "three"}, sessionId="S")
    transport.say(id=last, result={"frameId": "F"}, sessionId="S")
    await call.done.wait()
    assert noted == ["one", "two", "answer", "three"]


async def test_a_handler_that_fails_ends_its_session_only(connection, transport):
    session, other = await attached(connection, transport), await attached(connection, transport, "B")

    def broken(event: page.FrameStoppedLoading) -> None:
        raise RuntimeError("a bug")

    session.on(page.FrameStoppedLoading, broken)
    transport.say(method="Page.frameStoppedLoading", params={"frameId": "F"}, sessionId="S")
    await session.wait_ended()
    assert session.ended is EndReason.VIOLATION
    assert other.ended is None
    assert connection.root.ended is None


async def test_an_event_that_cannot_be_read_ends_its_session_only(connection, transport):
    session = await attached(connection, transport)
    session.on(page.FrameStoppedLoading, lambda event: None)
    transport.say(method="Page.frameStoppedLoading", params={"frameId": 7}, sessionId="S")
    await session.wait_ended()
    assert connection.root.ended is None


async def test_unknown_sessions_and_events_are_ignored(nursery, connection, transport):
    transport.say(method="Page.frameStoppedLoading", params={"frameId": "F"}, sessionId="nobody")
    transport.say(method="Nothing.known", params={})
    transport.say(id=999, result={})
    call = await begin(nursery, connection.root, browser.get_version())
    transport.say(id=(await transport.heard())["id"], result=VERSION)
    await call.done.wait()
    assert call.error is None


async def test_commands_are_refused_while_chromium_takes_none(connection, transport):
    transport.stuck = trio.Event()
    for _ in range(MAX_QUEUED_COMMANDS + 1):  # one is with the writer
        connection.root.post(browser.get_version())
    with pytest.raises(TooManyCommands):
        await connection.root.call(browser.get_version())
    connection.root.post(browser.get_version())  # never raises
    transport.stuck.set()


async def test_parameters_are_not_printed():
    command = runtime.call_function_on(
        function_declaration="function f() {}", arguments=[runtime.CallArgument(value="secret")]
    )
    assert "secret" not in repr(command)
    assert command.to_json()["arguments"] == [{"value": "secret"}]
