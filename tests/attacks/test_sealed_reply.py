"""Attacks 47 to 51: M4 changed, moved, reflected, in plaintext, or with a status that is none."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tabwarden.client import AgentClient
from tabwarden.errors import CallFailed, ClientError, ProtocolViolation, Refusal, Refused
from tabwarden.protocol.proof import AGENT_ROUTE

from tests.attacks.fake_broker import Wrong, fake_broker, http_ok
from tests.attacks.middle import between
from tests.attacks.serving import serve
from tests.attacks.toolkit import assert_refused, envelope, flip, peer_of
from tests.support.fakes import ManualClock


@pytest.mark.parametrize("at", [0, 3, 4, 500, -17, -16, -1])
async def test_attack_47_m4_flipped(transport, at):
    async with serve(transport) as broker, between(broker.descriptor) as (client, middle):
        middle.rewrite["M4"] = lambda m4: flip(m4, at)
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")
        # Not tried again: nobody knows what became of the call.
        assert len(middle.seen["M3"]) == 1
        assert len(broker.audit.terminal()) == 1


@pytest.mark.parametrize(
    "change", [lambda m4: b"", lambda m4: m4[:-1], lambda m4: m4 + b"\0", lambda m4: m4 * 2]
)
async def test_attack_47_m4_of_another_length(change):
    async with serve() as broker, between(broker.descriptor) as (client, middle):
        middle.rewrite["M4"] = change
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")


async def test_attack_48_an_earlier_m4(transport):
    async with serve(transport) as broker, between(broker.descriptor) as (client, middle):
        assert await client.call("sessions") == []
        middle.rewrite["M4"] = lambda _: middle.seen["M4"][0]
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")


async def test_attack_49_the_request_reflected(transport):
    async with serve(transport) as broker, between(broker.descriptor) as (client, middle):
        head = 16 + 1568 + 32
        for reflect in (
            lambda _: middle.seen["M3"][-1],
            lambda _: middle.seen["M3"][-1][head:],
            lambda _: middle.seen["M2"][-1],
        ):
            middle.rewrite["M4"] = reflect
            with pytest.raises(ProtocolViolation):
                await client.call("sessions")


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong(associated=lambda associated: flip(associated, -1)),
        Wrong(associated=lambda associated: flip(associated, -60)),
        Wrong(response_keys=lambda keys: replace(keys, response_key=keys.request_key)),
        Wrong(response_keys=lambda keys: replace(keys, response_iv=keys.request_iv)),
    ],
    ids=["another request", "another transcript", "the request's key", "the request's IV"],
)
async def test_attack_49_a_reply_sealed_for_another_request_or_by_another_key(wrong):
    clock = ManualClock()
    async with fake_broker(clock, wrong) as fake, AgentClient(fake.descriptor, clock=clock) as client:
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")
        assert fake.requests == 1


async def test_attack_50_m4_in_plaintext(transport):
    plain = b'{"type":"agent-response","status":200,"body":[]}'
    async with serve(transport) as broker, between(broker.descriptor) as (client, middle):
        for body in (plain, plain.ljust(1040), len(plain).to_bytes(4) + plain.ljust(1036, b"\0")):
            middle.rewrite["M4"] = lambda _, body=body: body
            with pytest.raises(ProtocolViolation):
                await client.call("sessions")


async def test_attack_50_an_action_envelope_in_plaintext_is_refused_by_the_broker(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        for body in (envelope(), envelope().ljust(1024), len(envelope()).to_bytes(4) + envelope()):
            await assert_refused(broker, peer.m3_of(body).raw(peer.host), Refusal.WIRE, keeps=True)
        assert broker.audit.agent_events == []


STATUSES = {
    "true": b"true",
    "false": b"false",
    "string": b'"200"',
    "float": b"200.0",
    "exponent": b"2e2",
    "null": b"null",
    "list": b"[200]",
    "99": b"99",
    "0": b"0",
    "-200": b"-200",
    "100": b"100",
    "199": b"199",
    "201": b"201",
    "204": b"204",
    "302": b"302",
    "399": b"399",
    "600": b"600",
    "1000": b"1000",
    "2**63": b"9223372036854775808",
}


async def _sealed(plaintext: bytes, error: type[ClientError] = ProtocolViolation) -> Any:
    """What the client makes of this sealed text."""
    clock = ManualClock()
    wrong = Wrong(plaintext=lambda _: plaintext)
    async with fake_broker(clock, wrong) as fake, AgentClient(fake.descriptor, clock=clock) as client:
        with pytest.raises(error) as raised:
            await client.call("sessions")
        assert fake.requests == 1
    return raised.value


@pytest.mark.parametrize("status", STATUSES)
async def test_attack_51_a_status_that_is_none(status):
    for body in (b"[]", b'{"code":"failure"}'):
        await _sealed(b'{"type":"agent-response","status":%s,"body":%s}' % (STATUSES[status], body))


@pytest.mark.parametrize(
    "plaintext",
    [
        b'{"type":"agent-response","body":[]}',
        b'{"status":200,"body":[]}',
        b'{"type":"agent-request","status":200,"body":[]}',
        b'{"type":"agent-response","status":200,"status":200,"body":[]}',
        b'{"type":"agent-response","status":500,"body":[],"status":200}',
        b'{"type":"agent-response","status":200,"body":NaN}',
        b'{"type":"agent-response","status":200,"body":"\\ud800"}',
        b'{"type":"agent-response","status":200,"body":[]} x',
        b'\xef\xbb\xbf{"type":"agent-response","status":200,"body":[]}',
        b'{"type":"agent-response","status":200,"body":' + b"[" * 17 + b"]" * 17 + b"}",
        b'[{"type":"agent-response","status":200,"body":[]}]',
        b"200",
        b"",
        b'{"type":"agent-response","status":403}',
        b'{"type":"agent-response","status":403,"body":{}}',
        b'{"type":"agent-response","status":403,"body":{"code":403}}',
        b'{"type":"agent-response","status":403,"body":"denied"}',
    ],
    ids=lambda text: text[:60].decode("latin-1"),
)
async def test_attack_51_a_sealed_reply_of_another_form(plaintext):
    await _sealed(plaintext)


@pytest.mark.parametrize("status", [400, 403, 404, 429, 500, 503, 504, 599])
async def test_attack_51_a_sealed_failure_is_a_failure_whatever_its_body_says(status):
    body = b'{"code":"x","retryAfterMs":true,"effect":"done","contentClass":"secret 1234"}'
    failed = await _sealed(b'{"type":"agent-response","status":%d,"body":%s}' % (status, body), CallFailed)
    believed = (failed.status, failed.code, failed.retry_after_ms, failed.effect, failed.content_class)
    assert believed == (status, "x", None, "unknown", None)


async def test_attack_51_an_http_status_beside_a_good_seal_is_not_believed():
    for status, error in (
        (b"500 Oops", ProtocolViolation),
        (b"201 Made", ProtocolViolation),
        (b"403 No", Refused),
    ):

        def head(route: bytes, honest: bytes, status: bytes = status) -> bytes:
            return honest.replace(b"200 OK", status) if route == AGENT_ROUTE else honest

        clock = ManualClock()
        async with fake_broker(clock, Wrong(head=head)) as fake:
            async with AgentClient(fake.descriptor, clock=clock) as client:
                with pytest.raises(error):
                    await client.call("sessions")
            assert fake.requests == 1


async def test_attack_50_a_reply_over_the_cap_is_not_read():
    clock = ManualClock()
    huge = Wrong(
        m4=lambda _: bytes(131_073),
        head=lambda route, head: head if route != AGENT_ROUTE else http_ok(131_073),
    )
    async with fake_broker(clock, huge) as fake, AgentClient(fake.descriptor, clock=clock) as client:
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")


def _chunked(route: bytes, head: bytes) -> bytes:
    size = int(head.split(b"content-length: ")[1].split(b"\r\n")[0]) - len(b"\r\n0\r\n\r\n")
    return (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n" % size
        if route == AGENT_ROUTE
        else head
    )


def _fields(count: int) -> Callable[[bytes, bytes], bytes]:
    return lambda route, head: head.replace(b"\r\n\r\n", b"\r\n" + b"a: b\r\n" * count + b"\r\n")


FORMS = {
    "chunked": Wrong(head=_chunked, m4=lambda m4: m4 + b"\r\n0\r\n\r\n"),
    "33 fields": Wrong(head=_fields(32)),
}


@pytest.mark.parametrize("form", FORMS)
async def test_attack_50_a_good_seal_in_http_that_the_broker_does_not_speak(form):
    clock = ManualClock()
    async with fake_broker(clock, FORMS[form]) as fake, AgentClient(fake.descriptor, clock=clock) as client:
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")


async def test_32_fields_of_a_reply_are_read():
    clock = ManualClock()
    wrong = Wrong(head=_fields(31))
    async with fake_broker(clock, wrong) as fake, AgentClient(fake.descriptor, clock=clock) as client:
        assert await client.call("sessions") == "believed"
