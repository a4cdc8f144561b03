"""What is sent, what comes back, and what goes nowhere."""

import json
import logging
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.ai import GatewayLimits, ModelGateway, faults, settings_of
from tabwarden_adapters.ai.asking import SentPage, request_body
from tabwarden_adapters.ai.events import EventReader
from tabwarden_adapters.ai.exchange import system_trust
from tabwarden_adapters.ai.settings import gateway_settings
from tabwarden_adapters.credentials import KeyFileProtector
from tabwarden_adapters.policy.document import AiGateway

from tests.ai.server import Peer, Server, answer, certificate, event
from tests.ai.support import (
    KEY,
    MODEL,
    Looker,
    Masker,
    OneKey,
    Operation,
    Page,
    fails,
    gateway,
    open_looker,
    sent,
)
from tests.browser.host_contract.fake_host import open_host

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "ai.md"


async def reads(captured: object, operation: Operation) -> Page:
    await trio.lowlevel.checkpoint()
    return Page()


async def test_an_answer_in_pieces(nursery):
    server = await Server().listen(nursery)
    server.streams(event("Hel"), event("lo \u00e9\U0001f600"), event(None), answer("!", "?"))
    key, operation = OneKey(), Operation()
    assert await gateway(server, key=key)("a question", object(), operation) == "Hello \u00e9\U0001f600!?"
    assert key.asked == [f"http://127.0.0.1:{server.port}"]
    start, _, body = server.requests[0].partition(b"\r\n\r\n")
    head = start.decode().split("\r\n")
    assert head[0] == "POST /v1/chat/completions HTTP/1.1"
    assert sorted(line.lower() for line in head[1:]) == sorted(
        [
            f"host: 127.0.0.1:{server.port}",
            "accept: text/event-stream",
            "accept-encoding: identity",
            "connection: close",
            "content-type: application/json",
            "user-agent: tabwarden",
            f"authorization: bearer {KEY}".lower(),
            f"content-length: {len(body)}",
        ]
    )
    assert {name: value for name, value in sent(server).items() if name != "messages"} == {
        "model": MODEL,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    await server.all_gone()


async def test_every_call_has_a_connection_of_its_own(nursery):
    server = await Server().listen(nursery)
    server.streams(answer("a"))
    asked = gateway(server)
    for _ in range(3):
        await asked("q", object(), Operation())
    assert len(server.peers) == 3
    await server.all_gone()


async def test_without_a_key_none_is_sent(nursery):
    server = await Server().listen(nursery)
    server.streams(answer("a"))
    await gateway(server, key=None)("q", object(), Operation())
    assert b"authorization" not in server.requests[0].lower()


async def test_the_whole_endpoint_as_address(nursery):
    server = await Server().listen(nursery)
    server.streams(answer("a"))
    url = f"http://127.0.0.1:{server.port}/openai/chat/completions?api-version=1"
    await gateway(server, url=url)("q", object(), Operation())
    assert server.requests[0].startswith(b"POST /openai/chat/completions?api-version=1 HTTP/1.1\r\n")


async def test_a_long_answer_comes_out_whole(nursery):
    words = [f"word {number}, " for number in range(1_500)]
    server = await Server().listen(nursery)
    server.streams(answer(*words))
    looker = open_looker()
    assert await gateway(server, inspect=looker)("q", object(), Operation()) == "".join(words)
    assert 10 < len(looker.seen) <= len("".join(words)) // 1_024 + 1
    assert looker.seen[-1] == ("from-model", "".join(words))


ODD = [
    answer("Hi").replace(b"\n", b"\r\n"),
    answer("Hi").replace(b"\n", b"\r"),
    b"\xef\xbb\xbf" + answer("Hi"),
    b": hello\n\nevent: message\nid: 7\nretry: 10\n" + answer("Hi").replace(b"data: ", b"data:"),
    event("Hi", finish="length"),
    event("Hi") + b"data: [DONE]\n\n" + b"data: what comes later does not matter\n\n",
    b'data: {"choices":\ndata: [{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n',
    b'data: {"choices":[],"prompt_filter_results":[]}\n\n' + answer("Hi"),
    b'data: {"choices":[{"index":1,"delta":{"content":"other"}}]}\n\n' + answer("Hi"),
    b'data: {"choices":[{"delta":{"reasoning_content":"hm"}}],"timings":{"ms":0.5}}\n\n' + answer("Hi"),
    b'data: {"choices":[{"delta":{"refusal":"Hi"},"finish_reason":"stop"}]}\n\n',
]


@pytest.mark.parametrize("number", range(len(ODD)))
async def test_what_gateways_send_as_well(nursery, number):
    server = await Server().listen(nursery)
    server.streams(ODD[number])
    assert await gateway(server)("q", object(), Operation()) == "Hi"


def test_an_end_of_line_may_be_cut_in_two():
    stream = ODD[6].replace(b"\n", b"\r\n")
    (whole,) = EventReader(GatewayLimits()).feed(stream)
    for cut in range(len(stream)):
        reader = EventReader(GatewayLimits())
        assert [*reader.feed(stream[:cut]), *reader.feed(stream[cut:])] == [whole]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_events_are_the_same_however_they_are_cut(data):
    stream = data.draw(st.sampled_from(ODD[:5]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    whole = list(EventReader(GatewayLimits()).feed(stream))
    reader = EventReader(GatewayLimits())
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [one for piece in pieces for one in reader.feed(piece)] == whole


# ---- the page -----------------------------------------------------------------------------------------


async def test_the_page_goes_along_as_untrusted(nursery):
    server = await Server().listen(nursery)
    server.streams(answer("a"))
    looker = open_looker()
    await gateway(server, inspect=looker, page=reads)("a question", object(), Operation())
    system, user = (message["content"] for message in sent(server)["messages"])
    mark = re.findall("[0-9a-f]{32}", system)[0]
    facts = {"origin": "https://page.test", "title": "Title", "cut": False}
    assert user.split("\n") == [
        f"BEGIN UNTRUSTED PAGE {mark}",
        json.dumps(facts),
        "what shows",
        f"END UNTRUSTED PAGE {mark}",
        f"QUESTION {mark}",
        "a question",
    ]
    assert [one for one in looker.seen if one[0] != "from-model"] == [
        ("from-page", "Title"),
        ("from-page", "what shows"),
        ("to-model", "Title"),
        ("to-model", "what shows"),
    ]


async def test_each_exchange_has_a_mark_of_its_own(nursery):
    server = await Server().listen(nursery)
    server.streams(answer("a"))
    asked = gateway(server)
    marks = set()
    for _ in range(3):
        await asked("q", object(), Operation())
        marks.add(sent(server)["messages"][1]["content"])
    assert len(marks) == 3


def test_the_document_shows_the_format():
    settings = gateway_settings("https://models.example.org/v1", "house-model")
    page = SentPage("https://example.org", "Prices", "Apples 3\nPears 4", False)
    body = json.loads(request_body(settings, "What do pears cost?", page, lambda: "0f" * 16))
    shown = re.findall(r"^```text\n(.*?)\n```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert shown[:2] == [message["content"] for message in body["messages"]]


@pytest.mark.parametrize("denied", ["from-page", "to-model"])
async def test_a_page_must_pass_both_as_read_and_as_sent(nursery, denied):
    server = await Server().listen(nursery)
    ways = {"from-page", "to-model", "from-model"} - {denied}
    error = await fails(gateway(server, inspect=Looker(*ways), page=reads))
    assert error.code is Code.CONTENT_DENIED
    assert server.peers == []


async def test_a_secret_across_the_end_of_what_is_sent(nursery):
    async def cut(captured: object, operation: Operation) -> Page:
        return Page(text="my password is hun", following="ter2 and more", cut=True)

    server = await Server().listen(nursery)
    error = await fails(gateway(server, inspect=open_looker("hunter2"), page=cut))
    assert error.code is Code.CONTENT_DENIED
    assert server.peers == []


async def test_what_an_inspector_masks_is_not_sent_and_not_answered(nursery):
    async def page(captured: object, operation: Operation) -> Page:
        return Page(title="Order 4711", text="Order 4711 of today", following=" 4711")

    masker = Masker("from-page", "to-model", "from-model")
    masker.masks = ("4711",)
    server = await Server().listen(nursery)
    server.streams(answer("It is 47", "11, a", "nd no other"))
    answered = await gateway(server, inspect=masker, page=page)("q", object(), Operation())
    assert answered == "It is [x], and no other"
    assert b"4711" not in server.requests[0]
    assert "Order [x] of today" in sent(server)["messages"][1]["content"]


@pytest.mark.parametrize("page", [Page(text="a" * 10_001), Page(title="a" * 257)])
async def test_a_page_of_more_than_may_be_sent(nursery, page):
    async def reader(captured: object, operation: Operation) -> Page:
        return page

    server = await Server().listen(nursery)
    error = await fails(gateway(server, page=reader))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.page")
    assert server.peers == []


@pytest.mark.parametrize("verdict", [7, b"clean", True])
async def test_an_inspector_that_answers_something_else(nursery, verdict):
    class Odd(Looker):
        async def inspect(self, text: str, **_: object):
            return verdict

    server = await Server().listen(nursery)
    error = await fails(gateway(server, inspect=Odd(), page=reads))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.inspector")
    assert server.peers == []


# ---- the call's rights --------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["the call", "the tab"])
async def test_the_end_of_the_call_cuts_the_stream(nursery, what):
    server = await Server().listen(nursery)
    operation = Operation()

    async def play(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + event("a"))
        if what == "the call":
            operation.ended = Code.REVOKED
        operation.here = what == "the call"
        await peer.send(event("b"))
        await trio.sleep_forever()

    server.play = play
    error = await fails(gateway(server), operation)
    assert error.code is (Code.REVOKED if what == "the call" else Code.STALE)
    await server.all_gone()


async def test_nothing_is_read_or_sent_for_a_call_that_is_over(nursery):
    async def read_after(captured: object, operation: Operation) -> Page:
        raise AssertionError

    server = await Server().listen(nursery)
    operation, key = Operation(), OneKey()
    asked = gateway(server, key=key, page=read_after)
    operation.here = False
    assert (await fails(asked, operation)).code is Code.STALE
    operation.ended = Code.REVOKED
    assert (await fails(asked, operation)).code is Code.REVOKED
    assert (server.peers, key.asked) == ([], [])


# ---- the environment, TLS, logs -----------------------------------------------------------------------


async def test_nothing_is_taken_from_the_environment(nursery, monkeypatch, tmp_path):
    proxy = await Server().listen(nursery)
    server = await Server().listen(nursery)
    server.streams(answer("a"))
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login CANARY password CANARY\n")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NETRC", str(netrc))
    await gateway(server, key=None)("q", object(), Operation())
    assert proxy.peers == []
    assert b"authorization" not in server.requests[0].lower()


async def test_a_certificate_that_signed_itself_is_refused(nursery, tmp_path, monkeypatch):
    context, file = certificate(tmp_path)
    server = await Server().listen(nursery, context)
    server.streams(answer("a"))
    error = await fails(gateway(server))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.gateway-tls")
    assert server.requests == []
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "secrets"))
    trust = system_trust()
    trust.load_verify_locations(file)
    assert await gateway(server, trust=trust)("q", object(), Operation()) == "a"
    assert not (tmp_path / "secrets").exists()
    await server.all_gone()


async def test_a_certificate_of_another_name_is_refused(nursery, tmp_path):
    context, file = certificate(tmp_path, "127.0.0.2")
    server = await Server().listen(nursery, context)
    trust = system_trust()
    trust.load_verify_locations(file)
    error = await fails(gateway(server, trust=trust))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.gateway-tls")
    assert server.requests == []


async def test_a_gateway_that_speaks_no_tls(nursery):
    async def plain(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 CANARY\r\n\r\n")
        await stream.aclose()

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, plain, [listener])
    port = listener.socket.getsockname()[1]
    error = await fails(gateway(Server(), url=f"https://127.0.0.1:{port}/v1"))
    assert (error.code, error.rule) == (Code.FAILURE, "ai.gateway-tls")


async def test_the_library_logs_nothing_of_ours_and_all_of_others(nursery, caplog):
    caplog.set_level(logging.DEBUG)
    server = await Server().listen(nursery)
    server.streams(answer("CANARY"))
    asked = gateway(server)
    await asked("CANARY", object(), Operation())
    assert "CANARY" not in caplog.text
    assert str(server.port) not in caplog.text
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.post(server.url)
    assert str(server.port) in caplog.text


async def test_the_key_shows_nowhere(nursery):
    key = await OneKey()("https://a.test")
    asked = gateway(Server(), url="https://a.test")
    assert KEY not in repr(key) + str(key) + repr(asked) + repr(vars(asked))
    with pytest.raises(AttributeError):
        key.secret = ""  # type: ignore[misc]


async def test_a_gateway_that_is_not_configured(nursery):
    class Part:
        enabled, url, model, max_characters = False, "", "", 20_000

    asked = ModelGateway(lambda: settings_of(Part()), inspect=open_looker(), key=OneKey())
    for change in ({}, {"enabled": True, "url": "http://elsewhere.test", "model": "m"}):
        for name, value in change.items():
            setattr(Part, name, value)
        with pytest.raises(ActionError) as caught:
            await asked("q", object(), Operation())
        assert (caught.value.code, caught.value.rule) == (Code.NOT_AVAILABLE, "ai.not-configured")


def test_the_documents_example_makes_the_action(tmp_path):
    (example,) = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, "docs/ai.md", "exec"), names)  # noqa: S102 - our own document
    host = open_host()
    callbacks = {name: getattr(host, name) for name in ("get_context", "get_sessions", "context_current")}
    browser = SimpleNamespace(callbacks={**callbacks, "navigate": host.navigate})
    assert "ai" in names["my_actions"](browser, open_looker(), KeyFileProtector(tmp_path))


def test_the_document_names_every_rule_and_a_policy_that_is_one():
    text = DOCUMENT.read_text()
    rules = {value for name, value in vars(faults).items() if name.isupper()}
    assert len(rules) > 15
    assert {rule for rule in rules if f"`{rule}`" not in text} == set()
    (policy,) = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    part = msgspec.convert(tomllib.loads(policy)["ai"], AiGateway)
    assert settings_of(part) == gateway_settings("https://models.example.org/v1", "house-model")
