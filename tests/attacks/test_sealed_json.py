"""Attack 59: what is sealed is strict JSON and an exact envelope."""

import pytest

from tests.attacks.serving import serve
from tests.attacks.toolkit import envelope, peer_of

GOOD = envelope()

BAD = {
    "duplicate key": b'{"type":"agent-request","action":"sessions","action":"sessions","args":{}}',
    "duplicate key below": b'{"type":"agent-request","action":"sessions","args":{"a":1,"a":1}}',
    "duplicate key by escape": GOOD[:-1] + b',"\\u0061ction":"read"}',
    "NaN": b'{"type":"agent-request","action":"sessions","args":{"a":NaN}}',
    "Infinity": b'{"type":"agent-request","action":"sessions","args":{"a":-Infinity}}',
    "depth": b'{"type":"agent-request","action":"sessions","args":{"a":' + b"[" * 15 + b"]" * 15 + b"}}",
    "depth bomb": b"[" * 60_000,
    "depth bomb of objects": b'{"a":' * 20_000,
    "lone surrogate": b'{"type":"agent-request","action":"sessions","args":{"a":"\\ud800"}}',
    "lone surrogate in a key": b'{"type":"agent-request","action":"sessions","args":{"\\udfff":1}}',
    "surrogate in UTF-8": b'{"type":"agent-request","action":"sessions","args":{"a":"\xed\xa0\x80"}}',
    "overlong UTF-8": b'{"type":"agent-request","action":"sessions","args":{"a":"\xc0\xaf"}}',
    "UTF-16": GOOD.decode().encode("utf-16"),
    "BOM": b"\xef\xbb\xbf" + GOOD,
    "trailing bytes": GOOD + b"x",
    "trailing NUL": GOOD + b"\0",
    "two values": GOOD + GOOD,
    "leading form feed": b"\f" + GOOD,
    "integer over 2^53": b'{"type":"agent-request","action":"sessions","args":{"a":9007199254740993}}',
    "huge integer": b'{"type":"agent-request","action":"sessions","args":{"a":' + b"9" * 5000 + b"}}",
    "huge real": b'{"type":"agent-request","action":"sessions","args":{"a":1e999}}',
    "comment": b'{"type":"agent-request",/**/"action":"sessions","args":{}}',
    "trailing comma": b'{"type":"agent-request","action":"sessions","args":{},}',
    "control character": b'{"type":"agent-request","action":"sessions","args":{"a":"\x01"}}',
    "empty": b"",
    "null": b"null",
    "list": b"[" + GOOD + b"]",
    "string": b'"agent-request"',
    "no type": b'{"action":"sessions","args":{}}',
    "another type": b'{"type":"agent-response","action":"sessions","args":{}}',
    "type that is no string": b'{"type":["agent-request"],"action":"sessions","args":{}}',
    "no action": b'{"type":"agent-request","args":{}}',
    "no args": b'{"type":"agent-request","action":"sessions"}',
    "args that are no object": b'{"type":"agent-request","action":"sessions","args":[]}',
    "unknown field": b'{"type":"agent-request","action":"sessions","args":{},"role":"admin"}',
    "action that is no string": b'{"type":"agent-request","action":1,"args":{}}',
    "long action": b'{"type":"agent-request","action":"%s","args":{}}' % (b"a" * 65),
    "short idempotency key": envelope(idempotencyKey="short"),
    "idempotency key with a space": envelope(idempotencyKey="12345678 "),
    "idempotency key with a line end": envelope(idempotencyKey="12345678\n"),
    "traceparent": envelope(traceparent="00-zz"),
    "outcome without a key": b'{"type":"agent-outcome"}',
    "outcome with more": b'{"type":"agent-outcome","idempotencyKey":"12345678","args":{}}',
}


@pytest.mark.parametrize("kind", BAD)
async def test_attack_59_what_is_not_strict_json_or_no_envelope(transport, kind):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        status, body = await peer.call(broker, BAD[kind])
        assert (status, body) == (400, {"code": "bad-request", "effect": "not_started"})
        [event] = broker.audit.agent_events
        assert (event.outcome, event.code, event.action) == ("denied", "bad-request", None)
        assert broker.runtime.authorize.asked == []
        assert await peer.call(broker) == (200, [])


ARGUMENTS = {
    "unknown action": (envelope("no:such"), "unknown-action"),
    "unknown argument": (envelope(args={"a": 1}), "invalid-arguments"),
    "missing argument": (envelope("navigate"), "invalid-arguments"),
    "wrong type": (envelope("navigate", args={"url": 1}), "invalid-arguments"),
    "too long": (envelope("navigate", args={"url": "a" * 8193}), "invalid-arguments"),
    "bool for a number": (envelope("scroll", args={"x": True}), "invalid-arguments"),
    "out of range": (envelope("scroll", args={"x": 100_001}), "invalid-arguments"),
    "session id": (envelope("reload", args={"sessionId": "../../etc"}), "invalid-arguments"),
    "session id and a line end": (
        envelope("reload", args={"sessionId": "00000000-0000-0000-0000-000000000000\n"}),
        "invalid-arguments",
    ),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
async def test_attack_59_arguments_that_the_table_does_not_know(transport, kind):
    plaintext, code = ARGUMENTS[kind]
    async with serve(transport, allow=("sessions", "navigate", "scroll", "reload")) as broker:
        peer = peer_of(broker)
        assert await peer.call(broker, plaintext) == (400, {"code": code, "effect": "not_started"})
        assert [event.code for event in broker.audit.agent_events] == [code]
        assert broker.runtime.authorize.asked == []


async def test_attack_59_the_largest_plaintext_that_fits(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        plain = GOOD[:-1] + b" " * (126_976 - 4 - len(GOOD)) + b"}"
        assert await peer.call(broker, plain) == (200, [])


async def test_white_space_around_json_is_json(transport):
    async with serve(transport) as broker:
        assert await peer_of(broker).call(broker, b" \t\r\n" + GOOD + b"\n ") == (200, [])
