"""The action through a running broker, from an agent's call to a gateway's socket."""

import pytest
import trio
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tabwarden import AgentClient, Limits, start_agent_control
from tabwarden.errors import ActionError, CallFailed, ClientError, Code
from tabwarden.model import AuditOutcome
from tabwarden_adapters.browser import captured_text
from tabwarden_observability import Tracing, setup_tracing

from tests.ai.server import CHUNKED, Peer, Server, answer, event
from tests.ai.support import KEY, MODEL, Looker, Operation, fails, gateway, open_looker, sent
from tests.browser.host_contract.fake_host import ADDRESS, READ, FakeHost, open_host
from tests.support.fakes import AllowOnly, MemoryAudit, Reasons

PROMPT = "CANARY of the prompt"
WORDS = "CANARY of the answer"
STARTED: list[Tracing] = []


@pytest.fixture(autouse=True)
async def tracing_ends():
    """Its threads would silence loggers for the tests that come after."""
    yield
    while STARTED:
        await STARTED.pop().shutdown()


class Broker:
    """A broker with a host of pages and a gateway."""

    def __init__(self, nursery: trio.Nursery, server: Server, looker: Looker | None = None) -> None:
        self.nursery = nursery
        self.server = server
        self.looker = looker or open_looker()
        self.host: FakeHost = open_host()
        self.audit = MemoryAudit()
        self.reasons = Reasons()
        self.exported = InMemorySpanExporter()
        self.tracing = setup_tracing(exporters=[self.exported])
        STARTED.append(self.tracing)

    async def call(self, **arguments: object) -> str:
        async with AgentClient(self.control.descriptor) as client:
            result = await client.call("ai", {"prompt": PROMPT, **arguments})
        assert result["untrusted"] is True
        return str(result["text"])

    async def start(self, limits: Limits | None = None) -> "Broker":
        tracer = self.tracing.provider.get_tracer("tabwarden.ai")
        asked = gateway(self.server, inspect=self.looker, page=captured_text, tracer=tracer)
        self.control = await start_agent_control(
            self.nursery,
            authorize=AllowOnly("ai"),
            actions=self.host.adapters(ai=asked, inspect=self.looker),
            audit=self.audit,
            on_error=self.reasons,
            tracer=self.tracing.tracer,
            limits=limits or Limits(),
        )
        return self

    async def fails(self) -> CallFailed:
        with pytest.raises(CallFailed) as caught:
            await self.call()
        await self.server.all_gone()
        return caught.value

    async def spans(self):
        await self.control.close()
        await self.tracing.shutdown()
        return self.exported.get_finished_spans()


async def test_a_question_and_its_answer(nursery, caplog):
    caplog.set_level("DEBUG")
    server = await Server().listen(nursery)
    server.streams(event(WORDS), answer("!"))
    broker = await Broker(nursery, server).start()
    assert await broker.call() == WORDS + "!"
    user = sent(server)["messages"][1]["content"]
    assert '{"origin": "https://allowed.test", "title": "", "cut": false}\nwhat shows\n' in user
    assert user.endswith(PROMPT)
    assert ADDRESS not in user
    ways = [way for way, _ in broker.looker.seen]
    assert ways == ["to-model", "from-page", "to-model", "from-model", "from-model"]
    (event_,) = broker.audit.terminal()
    assert (event_.outcome, event_.committed) == (AuditOutcome.COMPLETED, True)
    assert broker.reasons.told == []

    spans = await broker.spans()
    (chat,) = [span for span in spans if span.name == "chat"]
    assert chat.kind is SpanKind.CLIENT
    assert dict(chat.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.type": "text",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": MODEL,
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
    }
    (around,) = [span for span in spans if span.name == "ai.exchange"]
    assert chat.parent.span_id == around.context.span_id
    assert chat.context.trace_id == around.context.trace_id
    everything = "".join(span.to_json() for span in spans) + repr(broker.audit.events) + caplog.text
    for secret in ("CANARY", KEY, "what shows", "allowed.test", str(server.port)):
        assert secret not in everything


async def test_a_secret_in_a_prompt_does_not_leave(nursery):
    server = await Server().listen(nursery)
    broker = await Broker(nursery, server, open_looker(PROMPT)).start()
    error = await broker.fails()
    assert (error.code, error.effect) == (Code.CONTENT_DENIED, "not_started")
    assert server.peers == []
    await broker.control.close()


async def test_a_secret_on_a_page_does_not_leave(nursery):
    server = await Server().listen(nursery)
    broker = await Broker(nursery, server, open_looker("what shows")).start()
    assert (await broker.fails()).code == Code.CONTENT_DENIED
    assert server.peers == []
    await broker.control.close()


async def test_a_secret_across_pieces_of_an_answer_does_not_arrive(nursery):
    server = await Server().listen(nursery)
    server.streams(event("It is hun"), event("ter"), answer("2"))
    broker = await Broker(nursery, server, open_looker("hunter2")).start()
    assert (await broker.fails()).code == Code.CONTENT_DENIED
    (chat,) = [span for span in await broker.spans() if span.name == "chat"]
    assert chat.status.status_code is StatusCode.ERROR
    assert chat.attributes["error.type"] == "content-denied"
    assert (chat.status.description, chat.events) == (None, ())


async def test_a_gateway_that_fails_tells_the_audit_why_and_the_agent_nothing(nursery):
    server = await Server().listen(nursery)
    server.sends(b"HTTP/1.1 429 CANARY\r\ncontent-length: 6\r\n\r\nCANARY")
    broker = await Broker(nursery, server).start()
    error = await broker.fails()
    assert (error.code, error.effect) == (Code.FAILURE, "unknown")
    assert broker.audit.terminal()[-1].rule == "ai.gateway-busy"
    assert "CANARY" not in repr(error) + repr(broker.audit.events)
    assert broker.reasons.told == []
    await broker.control.close()


def endless(server: Server) -> trio.Event:
    begun = trio.Event()

    async def play(peer: Peer) -> None:
        await peer.send(CHUNKED)
        await peer.chunk(event("word " * 250))
        begun.set()
        await trio.sleep_forever()

    server.play = play
    return begun


async def test_the_deadline_cuts_the_stream(nursery):
    server = await Server().listen(nursery)
    endless(server)
    broker = await Broker(nursery, server).start(Limits(action_deadline_s=0.5))
    assert (await broker.fails()).code == Code.DEADLINE
    assert broker.audit.terminal()[-1].code is Code.DEADLINE
    (chat,) = [span for span in await broker.spans() if span.name == "chat"]
    assert chat.attributes["error.type"] == "cancelled"


async def test_a_revocation_cuts_the_stream(nursery):
    server = await Server().listen(nursery)
    begun = endless(server)
    broker = await Broker(nursery, server).start()

    async def call() -> None:
        with pytest.raises(ClientError):
            await broker.call()

    async with trio.open_nursery() as inner:
        inner.start_soon(call)
        await begun.wait()
        await broker.control.revoke()
    await server.all_gone()
    assert broker.audit.terminal()[-1].code is Code.REVOKED


async def test_a_changed_policy_ends_the_call(nursery):
    server = await Server().listen(nursery)
    begun = endless(server)
    broker = await Broker(nursery, server).start()
    ended: list[str] = []

    async def call() -> None:
        ended.append((await broker.fails()).code)

    async with trio.open_nursery() as inner:
        inner.start_soon(call)
        await begun.wait()
        broker.host.policy_changes()
        await broker.control.policy_changed()
    assert ended == [Code.STALE]
    await broker.control.close()


@pytest.mark.parametrize("happening", ["moves", "tab_goes", "policy_changes"])
async def test_a_tab_that_is_another_one_ends_the_call(nursery, happening):
    server = await Server().listen(nursery)
    broker = Broker(nursery, server)

    async def play(peer: Peer) -> None:
        await peer.send(CHUNKED)
        await peer.chunk(event("a"))
        getattr(broker.host, happening)()
        await peer.chunk(answer("b"))
        await trio.sleep_forever()

    server.play = play
    await broker.start()
    assert (await broker.fails()).code == Code.STALE
    await broker.control.close()


# ---- the page, as a browser reads it ------------------------------------------------------------------


async def read(host: FakeHost, operation: Operation):
    context = host.get_context(None)
    operation.captured = context  # type: ignore[attr-defined]
    operation.allowed = lambda href: host.destination_allowed(operation.caller, href)  # type: ignore[attr-defined]
    return await captured_text(context, operation)  # type: ignore[arg-type]


async def test_the_captured_text():
    host = open_host()
    assert (await read(host, Operation())).cut is False
    host.instead["run"] = {**READ, "text": "a" * 10_000 + "b" * 4_096, "next": 14_096}
    page = await read(host, Operation())
    assert (page.origin, page.title, page.cut) == ("https://allowed.test", "", True)
    assert (page.text, page.following) == ("a" * 10_000, "b" * 4_096)
    assert "aaa" not in repr(page)
    host.instead["run"] = {**READ, "frames": ["https://frame.test"]}
    assert (await read(host, Operation())).cut is True


async def test_no_text_of_a_page_that_is_not_there_or_not_allowed():
    for code, change in {
        Code.STALE: lambda host, operation: setattr(operation, "here", False),
        Code.REVOKED: lambda host, operation: setattr(operation, "ended", Code.REVOKED),
        Code.DESTINATION_DENIED: lambda host, operation: host.allowed_hosts.clear(),
    }.items():
        host, operation = open_host(), Operation()
        host.meanwhile["run"] = lambda: change(host, operation)  # noqa: B023 - run within the loop
        with pytest.raises(ActionError) as caught:
            await read(host, operation)
        assert caught.value.code is code
        host.meanwhile.clear()
        host.passed.clear()
        with pytest.raises(ActionError):
            await read(host, operation)
        assert host.passed == []


# ---- what spans may say -------------------------------------------------------------------------------


async def test_a_model_that_looks_like_no_name_is_not_told(nursery):
    server = await Server().listen(nursery)
    server.streams(answer("a"))
    exported = InMemorySpanExporter()
    tracing = setup_tracing(exporters=[exported])
    tracer = tracing.provider.get_tracer("tabwarden.ai")
    asked = gateway(server, model="m <CANARY>", tracer=tracer)
    await asked("q", object(), Operation())
    server.sends(b"")
    server.closes = True
    await fails(asked)
    await tracing.shutdown()
    spans = exported.get_finished_spans()
    assert [span.name for span in spans] == ["chat", "chat"]
    assert all("gen_ai.request.model" not in span.attributes for span in spans)
    assert [span.attributes.get("error.type") for span in spans] == [None, "failure"]
    assert "CANARY" not in "".join(span.to_json() for span in spans)
