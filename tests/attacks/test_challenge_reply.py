"""Attacks 17 to 25: M2 as a man in the middle can change it. The client aborts and sends no M3."""

import pytest
from tabwarden.authority.principals import Grant
from tabwarden.errors import ClientError, ProtocolViolation, Refused
from tabwarden.protocol.challenge import LEAF_BYTES, ReceivedChallenge

from tests.attacks.middle import between
from tests.attacks.serving import serve
from tests.attacks.toolkit import flip, peer_of

_PATH_AT = LEAF_BYTES + 4


def _parts(m2: bytes) -> dict[str, int]:
    """Where each part of this M2 begins."""
    path = len(m2) - len(m2[_PATH_AT:])
    challenge = ReceivedChallenge.parse(m2)
    signature = m2.index(challenge.ed_signature)
    return {
        "instance": 0,
        "challenge id": 32,
        "server nonce": 48,
        "ml-kem key": 80,
        "x25519 key": 80 + 1568,
        "not-after": LEAF_BYTES - 1,
        "index": LEAF_BYTES + 1,
        "count": LEAF_BYTES + 3,
        "path": path,
        "path's last": signature - 1,
        "ed25519": signature,
        "ed25519's last": signature + 63,
        "ml-dsa": signature + 64,
        "ml-dsa's last": signature + 64 + 4626,
        "binding": signature + 64 + 4627 + 140,
        "binding's end": len(m2) - 49,
        "binding mac": len(m2) - 48,
        "binding mac's last": len(m2) - 1,
    }


PARTS = [
    "instance",
    "challenge id",
    "server nonce",
    "ml-kem key",
    "x25519 key",
    "not-after",
    "index",
    "count",
    "path",
    "path's last",
    "ed25519",
    "ed25519's last",
    "ml-dsa",
    "ml-dsa's last",
    "binding",
    "binding's end",
    "binding mac",
    "binding mac's last",
]


@pytest.mark.parametrize("part", PARTS)
async def test_attack_17_to_19_a_bit_flipped_in_m2(transport, part):
    async with serve(transport) as broker, between(broker.descriptor) as (client, middle):
        for bit in (0, 6):
            middle.rewrite["M2"] = lambda m2, bit=bit: flip(m2, _parts(m2)[part], bit)
            with pytest.raises(ProtocolViolation):
                await client.call("sessions")
        assert middle.seen["M3"] == []
        assert broker.audit.agent_events == []
        # And nothing that it learnt from the bad ones stays: the next good one is served.
        middle.rewrite.clear()
        assert await client.call("sessions") == []


@pytest.mark.parametrize("part", PARTS)
async def test_attack_17_to_19_a_bit_flipped_under_a_root_that_was_verified_before(part):
    async with serve() as broker, between(broker.descriptor) as (client, middle):
        assert await client.call("sessions") == []
        middle.rewrite["M2"] = lambda m2: flip(m2, _parts(m2)[part])
        # Signatures over a known root are not looked at again, but they are part of the transcript.
        expected = Refused if part.startswith(("ed25519", "ml-dsa")) else ProtocolViolation
        with pytest.raises(expected):
            await client.call("sessions")
        assert len(broker.audit.terminal()) == 1


@pytest.mark.parametrize("cut", [0, 1, 3, LEAF_BYTES, LEAF_BYTES + 4, 4000, 6500, -1, -48])
async def test_attack_17_m2_of_another_length(cut):
    async with serve() as broker, between(broker.descriptor) as (client, middle):
        middle.rewrite["M2"] = lambda m2: m2[:cut]
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")
        middle.rewrite["M2"] = lambda m2: m2 + b"\0"
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")
        assert middle.seen["M3"] == []


@pytest.mark.parametrize(("start", "length"), [(0, 64), (64, 4627), (0, 64 + 4627)])
@pytest.mark.parametrize("filler", [b"", b"\0", b"\xff"])
async def test_attack_20_and_21_either_signature_stripped(start, length, filler):
    async with serve() as broker, between(broker.descriptor) as (client, middle):

        def strip(m2: bytes) -> bytes:
            at = _parts(m2)["ed25519"] + start
            return m2[:at] + filler * length + m2[at + length :]

        middle.rewrite["M2"] = strip
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")
        assert middle.seen["M3"] == []


async def test_attack_22_and_23_signatures_of_another_root_under_this_one():
    async with serve() as broker, serve() as other, between(broker.descriptor) as (client, middle):
        foreign = (await peer_of(other).challenge(other)).m2
        at = _parts(foreign)["ed25519"]

        for start, end in ((0, 64), (64, 4691), (0, 4691)):

            def swap(m2: bytes, start: int = start, end: int = end) -> bytes:
                here = _parts(m2)["ed25519"]
                return m2[: here + start] + foreign[at + start : at + end] + m2[here + end :]

            middle.rewrite["M2"] = swap
            with pytest.raises(ProtocolViolation):
                await client.call("sessions")
        assert middle.seen["M3"] == []


async def test_attack_25_an_old_challenge(transport):
    async with serve(transport) as broker, between(broker.descriptor) as (client, middle):
        assert await client.call("sessions") == []
        middle.rewrite["M2"] = lambda _: middle.seen["M2"][0]
        with pytest.raises(ProtocolViolation):
            await client.call("sessions")
        # Without its binding, the honest one's put in place.
        size = 7 * 4 + 100
        middle.rewrite["M2"] = lambda m2: middle.seen["M2"][0][:-size] + m2[-size:]
        with pytest.raises(ClientError):
            await client.call("sessions")
        assert len(broker.audit.terminal()) == 1


async def test_attack_25_another_principals_challenge(transport):
    async with serve(transport, identity_mode="individual") as broker:
        await broker.control.reconcile_principals([Grant("one", 1), Grant("two", 1)])
        one = await broker.control.issue_principal("one", 1)
        two = await broker.control.issue_principal("two", 1)
        async with between(one) as (client, middle), between(two) as (other, others):
            assert await other.call("sessions") == []
            middle.rewrite["M2"] = lambda _: others.seen["M2"][0]
            with pytest.raises(ProtocolViolation):
                await client.call("sessions")
            assert middle.seen["M3"] == []


async def test_attack_25_a_leaf_with_the_path_or_binding_of_another(transport):
    async with serve(transport) as broker, between(broker.descriptor) as (client, middle):
        assert await client.call("sessions") == []
        old = middle.seen["M2"][0]
        for splice in (
            lambda m2: old[:LEAF_BYTES] + m2[LEAF_BYTES:],
            lambda m2: old[:_PATH_AT] + m2[_PATH_AT:],
            lambda m2: (
                m2[:LEAF_BYTES] + old[LEAF_BYTES : _parts(old)["ed25519"]] + m2[_parts(m2)["ed25519"] :]
            ),
            lambda m2: old[: _parts(old)["ed25519"]] + m2[_parts(m2)["ed25519"] :],
        ):
            middle.rewrite["M2"] = splice
            with pytest.raises(ProtocolViolation):
                await client.call("sessions")
        assert len(middle.seen["M3"]) == 1


@pytest.mark.parametrize("stage", ["M1", "M3"])
async def test_what_the_middle_changes_on_the_way_in_is_refused(transport, stage):
    async with serve(transport) as broker, between(broker.descriptor) as (client, middle):
        for at in (0, 20, -1):
            middle.rewrite[stage] = lambda body, at=at: flip(body, at)
            with pytest.raises(Refused):
                await client.call("sessions")
        assert broker.audit.agent_events == []
        middle.rewrite.clear()
        assert await client.call("sessions") == []
