"""Attacks 22 to 28, 54 and 55: challenges that the broker's own keys signed, wrong in one field each."""

import os
from dataclasses import replace

import pytest
from tabwarden.client import AgentClient
from tabwarden.errors import (
    ChallengeLimited,
    ClientError,
    DescriptorError,
    ProtocolViolation,
    Refused,
    Unreachable,
)
from tabwarden.protocol.challenge import L_BATCH, L_BINDING
from tabwarden.protocol.codec import label
from tabwarden.protocol.primitives import Ed25519Signer, X25519Key, hmac_sha384
from tabwarden.protocol.proof import AGENT_ROUTE, CHALLENGE_ROUTE, instance_id

from tests.attacks.fake_broker import FakeBroker, Squatter, Wrong, fake_broker, http_ok, listening
from tests.attacks.serving import serve
from tests.attacks.test_agent_request import LOW_ORDER
from tests.attacks.toolkit import PROVIDER, flip
from tests.support.fakes import ManualClock

UNREDUCED = b"\xff" * 1536 + bytes(32)  # every coefficient is 4095


async def _aborts(fake: FakeBroker, clock: ManualClock, error: type[ClientError] = ProtocolViolation) -> None:
    async with AgentClient(fake.descriptor, clock=clock) as client:
        with pytest.raises(error):
            await client.call("sessions")
    assert fake.requests == 0
    assert fake.opened == []


async def test_the_fake_broker_is_believed_when_nothing_is_wrong():
    clock = ManualClock()
    for leaves in (1, 2, 3, 7, 8, 256):
        async with fake_broker(clock, leaves=leaves) as fake:
            async with AgentClient(fake.descriptor, clock=clock) as client:
                assert await client.call("sessions", {"a": 1}) == "believed"
            assert fake.opened == [{"type": "agent-request", "action": "sessions", "args": {"a": 1}}]


@pytest.mark.parametrize("forged", ["ed", "pq", "both"])
async def test_attack_22_and_23_one_signature_good_and_the_other_forged(forged):
    wrong = Wrong()
    if forged in ("ed", "both"):
        wrong.ed_signer = Ed25519Signer()
    if forged in ("pq", "both"):
        wrong.pq_signer = PROVIDER.signer()
    clock = ManualClock()
    async with fake_broker(clock, wrong) as fake:
        await _aborts(fake, clock)


@pytest.mark.parametrize("context", [b"", L_BINDING, label("challenge-batch2"), L_BATCH[:-1]])
async def test_attack_24_ml_dsa_signature_made_under_another_context(context):
    clock = ManualClock()
    async with fake_broker(clock, Wrong(pq_context=context)) as fake:
        await _aborts(fake, clock)


def _binding(**changed):
    return Wrong(binding=lambda honest: replace(honest, **changed))


def _leaf(**changed):
    return Wrong(leaf=lambda honest: replace(honest, **changed))


FIELDS = {
    "leaf instance": _leaf(instance=bytes(32)),
    "leaf ml-kem key unreduced": _leaf(kem_public=UNREDUCED),
    "leaf x25519 key of low order": _leaf(x_public=bytes(32)),
    "leaf not-after past": _leaf(not_after=999_999),
    "leaf not-after now": _leaf(not_after=1_000_000),
    "leaf not the one signed": Wrong(sent_leaf=lambda leaf: flip(leaf, 33)),
    "index": Wrong(index=lambda index: index - 1),
    "index beyond": Wrong(index=lambda index: index + 1),
    "count": Wrong(count=lambda count: count + 1),
    "count of none": Wrong(count=lambda count: 0),
    "count too large": Wrong(count=lambda count: 257),
    "path": Wrong(path=lambda path: flip(path, 3)),
    "path too long": Wrong(path=lambda path: path + bytes(48)),
    "path too short": Wrong(path=lambda path: path[:-48]),
    "signed instance": Wrong(signed_instance=lambda instance: flip(instance, 0)),
    "signed count": Wrong(signed_count=lambda count: count + 1),
    "signed root": Wrong(signed_root=lambda root: flip(root, 0)),
    "ed25519": Wrong(ed_signature=lambda signature: flip(signature, 5)),
    "ml-dsa": Wrong(pq_signature=lambda signature: flip(signature, 5)),
    "binding method": _binding(method=b"GET"),
    "binding route": _binding(route=CHALLENGE_ROUTE),
    "binding id": _binding(principal_id="another"),
    "binding generation": _binding(generation=1),
    "binding nonce": _binding(client_nonce=bytes(32)),
    "binding issued early": _binding(issued=1_000_000 - 10_001),
    "binding issued late": _binding(issued=1_000_000 + 10_001),
    "binding lifetime of none": _binding(lifetime=0),
    "binding of another request": Wrong(bound_to=lambda covered, mac: (flip(covered, -1), mac)),
    "binding of another mac": Wrong(bound_to=lambda covered, mac: (covered, flip(mac, 0))),
    "binding by another key": Wrong(binding_key=lambda key: hmac_sha384(key, b"")),
    "binding mac": Wrong(mac=lambda mac: flip(mac, 0)),
}


@pytest.mark.parametrize("field", FIELDS)
async def test_attack_55_a_correctly_signed_challenge_with_each_field_in_turn_wrong(field):
    clock = ManualClock()
    async with fake_broker(clock, FIELDS[field]) as fake:
        await _aborts(fake, clock)


@pytest.mark.parametrize("field", [name for name in FIELDS if name.startswith(("leaf", "binding"))])
async def test_attack_55_the_same_under_a_root_that_was_verified_before(field):
    # A tree of one leaf whose root is remembered would hide a check made only with the signatures.
    clock = ManualClock()
    async with fake_broker(clock) as fake, AgentClient(fake.descriptor, clock=clock) as client:
        assert await client.call("sessions") == "believed"
        client._verified_roots = _Everything()
        fake.wrong = FIELDS[field]
        if field == "leaf not the one signed":
            return  # only the signature tells, and it is not asked here
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")
        assert fake.requests == 1


class _Everything(dict):
    def __contains__(self, key: object) -> bool:
        return True


@pytest.mark.parametrize("changed", ["challenge_id", "server_nonce"])
async def test_attack_55_fields_that_a_client_cannot_judge_are_bound_by_the_transcript(changed):
    # They mean nothing to a client; changed on the way after signing, the root no longer fits.
    clock = ManualClock()
    at = {"challenge_id": 32, "server_nonce": 48}[changed]
    async with fake_broker(clock, Wrong(m2=lambda m2: flip(m2, at))) as fake:
        await _aborts(fake, clock)


async def test_attack_25_a_good_leaf_bound_to_another_nonce():
    clock = ManualClock()
    seen: list[bytes] = []

    def another(honest):
        seen.append(honest.client_nonce)
        return replace(honest, client_nonce=os.urandom(32))

    async with fake_broker(clock, Wrong(binding=another)) as fake:
        await _aborts(fake, clock)
    assert len(seen) == 1


@pytest.mark.parametrize("late_ms", [10_000, 60_000])
async def test_attack_26_challenge_delivered_late(late_ms):
    clock = ManualClock()
    # It says the right thing about when it was issued; it is our own clock that knows better.
    wrong = Wrong(
        before_m2=lambda: clock.advance(late_ms),
        binding=lambda honest: replace(honest, issued=clock.boottime_ms(), lifetime=10**9),
        leaf=lambda honest: replace(honest, not_after=2**60),
    )
    async with fake_broker(clock, wrong) as fake:
        await _aborts(fake, clock)


async def test_attack_26_a_challenge_just_in_time_is_used():
    clock = ManualClock()
    wrong = Wrong(before_m2=lambda: clock.advance(9_999))
    async with fake_broker(clock, wrong) as fake, AgentClient(fake.descriptor, clock=clock) as client:
        assert await client.call("sessions") == "believed"


SQUATS = {
    "200 with nothing": (http_ok(0), ProtocolViolation),
    "200 with junk": (http_ok(7000) + os.urandom(7000), ProtocolViolation),
    "200 with success in the clear": (
        http_ok(46) + b'{"type":"agent-response","status":200,"body":1}'[:46],
        ProtocolViolation,
    ),
    "100 and then 200": (b"HTTP/1.1 100 Continue\r\n\r\n" + http_ok(0), ProtocolViolation),
    "101": (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n", ProtocolViolation),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", ProtocolViolation),
    "302": (
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
        ProtocolViolation,
    ),
    "400": (b"HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n", ProtocolViolation),
    "401": (
        b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic\r\ncontent-length: 0\r\n\r\n",
        ProtocolViolation,
    ),
    "403": (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", Refused),
    "413": (b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n", Refused),
    "429": (b"HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n", ChallengeLimited),
    "429 with nonsense": (
        b"HTTP/1.1 429 Slow\r\nretry-after: -1\r\ncontent-length: 0\r\n\r\n",
        ChallengeLimited,
    ),
    "500": (b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", ProtocolViolation),
    "chunked": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        ProtocolViolation,
    ),
    "without a length": (b"HTTP/1.1 200 OK\r\n\r\nhello", Unreachable),
    "too large": (http_ok(200_000) + bytes(200_000), ProtocolViolation),
    "many fields": (
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 33 + b"content-length: 0\r\n\r\n",
        ProtocolViolation,
    ),
    "endless head": (b"HTTP/1.1 200 OK\r\na: " + b"b" * 200_000, ProtocolViolation),
    "not HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", ProtocolViolation),
    "HTTP/2": (b"\0\0\0\4\0\0\0\0\0", ProtocolViolation),
    "nothing": (b"", Unreachable),
}


@pytest.mark.parametrize("kind", SQUATS)
async def test_attack_27_a_port_squatter_that_answers_everything(kind, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    reply, error = SQUATS[kind]
    squatter = Squatter(reply)
    clock = ManualClock()
    async with listening(squatter.connection) as address:
        fake = FakeBroker(clock)
        fake.at(address)
        async with AgentClient(fake.descriptor, clock=clock) as client:
            with pytest.raises(error) as raised:
                await client.call("navigate", {"url": "https://secret.test/marked"})
            if error is ChallengeLimited:
                assert raised.value.retry_after_s == (7 if kind == "429" else 60)
    # One small request, no second try, and nothing in it that is worth having.
    assert squatter.connections == 1
    assert squatter.received.count(b"POST ") == 1
    assert AGENT_ROUTE not in squatter.received.split(b"\r\n\r\n")[0]
    keys = fake.keys
    for secret in (fake.token, keys.challenge, keys.binding, keys.request, keys.psk):
        for spelling in (secret, secret.hex().encode(), secret[:16]):
            assert spelling not in squatter.received
    assert b"marked" not in squatter.received
    assert b"navigate" not in squatter.received


@pytest.mark.parametrize("which", ["ed_public", "pq_public"])
async def test_attack_28_descriptor_with_a_swapped_public_key(transport, which):
    async with serve(transport) as broker:
        honest = broker.descriptor
        swapped = {"ed_public": Ed25519Signer().public, "pq_public": PROVIDER.signer().public}[which]
        with pytest.raises(DescriptorError):
            AgentClient(replace(honest, **{which: swapped}))
        # The attacker recomputes the instance too: then the capability's keys are others.
        ed, pq = (swapped, honest.pq_public) if which == "ed_public" else (honest.ed_public, swapped)
        consistent = replace(honest, ed_public=ed, pq_public=pq, instance=instance_id(ed, pq, honest.address))
        async with AgentClient(consistent) as client:
            with pytest.raises(Refused):
                await client.call("sessions")
        assert broker.audit.agent_events == []


@pytest.mark.parametrize(
    "change",
    [
        {"protocol": "tabwarden/2"},
        {"instance": bytes(32)},
        {"address": "127.0.0.1:9"},
        {"expires_at_ms": 1_800_000_000_000},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_attack_28_descriptor_with_anything_else_changed(change):
    fake = FakeBroker(ManualClock())
    fake.at("127.0.0.1:4242")
    AgentClient(fake.descriptor, clock=fake.clock)
    with pytest.raises(DescriptorError):
        AgentClient(replace(fake.descriptor, **change), clock=fake.clock)


@pytest.mark.parametrize(
    "address",
    [
        "localhost:80",
        "[::1]:80",
        "127.1:80",
        "0.0.0.0:80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.2:80",
    ],
)
async def test_attack_28_descriptor_that_is_not_a_literal_loopback_address(address):
    fake = FakeBroker(ManualClock())
    fake.at("127.0.0.1:4242")
    with pytest.raises(ValueError, match="address"):
        replace(fake.descriptor, address=address)


@pytest.mark.parametrize(
    "key",
    [UNREDUCED, (3329).to_bytes(2, "little") + bytes(1566), bytes(1533) + b"\x10\x10\xd0" + bytes(32)],
    ids=["all", "first", "last"],
)
async def test_attack_54_ml_kem_public_key_that_is_not_reduced(key):
    clock = ManualClock()
    async with fake_broker(clock, _leaf(kem_public=key)) as fake:
        await _aborts(fake, clock)


@pytest.mark.parametrize("point", LOW_ORDER, ids=lambda point: point[:4].hex() + point[-1:].hex())
async def test_attack_53_low_order_x25519_key_from_a_broker(point):
    clock = ManualClock()
    async with fake_broker(clock, _leaf(x_public=point)) as fake:
        await _aborts(fake, clock)
    assert X25519Key().public != point
