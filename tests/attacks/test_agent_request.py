"""Attacks 29 to 43, 46, 53 and 56: M3 replayed, late, changed by outsiders and by a token holder."""

from dataclasses import replace

import pytest
import trio
from tabwarden.authority.principals import Grant
from tabwarden.errors import Refusal
from tabwarden.limits import Limits
from tabwarden.protocol.primitives import X25519Key, sha384
from tabwarden.protocol.proof import AGENT_ROUTE, CHALLENGE_ROUTE, L_CHALLENGE_REQUEST

from tests.attacks.serving import serve
from tests.attacks.toolkit import Peer, answer, assert_refused, connect, flip, peer_of
from tests.support.fakes import ManualClock

_KEM_AT, _X_AT, _SEAL_AT = 16, 16 + 1568, 16 + 1568 + 32
CHANGES = {
    32: ("challenge id", 0),
    33: ("KEM ciphertext", _KEM_AT + 700),
    34: ("X25519 key", _X_AT + 3),
    35: ("body", _SEAL_AT + 40),
    36: ("tag", -1),
}


async def test_attack_29_replay_of_m3(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker))
        raw = action.request.raw(peer.host)
        async with connect(peer.host) as wire:
            assert action.open((await wire.ask(raw)).body)["status"] == 200
        await assert_refused(broker, raw, Refusal.NONCE)
        # Not even with a new proof: its challenge is gone.
        again = peer.m3_of(action.request.body)
        await assert_refused(broker, again.raw(peer.host), Refusal.UNKNOWN_CHALLENGE, keeps=True)
        assert len(broker.audit.terminal()) == 1


@pytest.mark.parametrize("late_ms", [10_000, 10_001, 25_000])
async def test_attack_30_m3_after_expiry_with_the_wall_clock_moved_back(transport, late_ms):
    clock = ManualClock()
    async with serve(transport, clock=clock) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        clock.advance(late_ms)
        clock.wall -= 3_600_000
        action = peer.m3(opened)
        await assert_refused(broker, action.request.raw(peer.host), Refusal.CHALLENGE_EXPIRED, keeps=True)
        assert broker.audit.agent_events == []


async def test_attack_30_a_challenge_is_good_to_the_end_of_its_time(transport):
    clock = ManualClock()
    async with serve(transport, clock=clock) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        clock.advance(9_999)
        action = peer.m3(opened)
        async with connect(peer.host) as wire:
            assert action.open((await wire.ask(action.request.raw(peer.host))).body)["status"] == 200


async def test_attack_30_m3_whose_own_timestamp_is_stale(transport):
    async with serve(transport, clock=ManualClock(boottime=10**9)) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        for off in (-30_001, 30_001):
            action = peer.m3(opened, timestamp=peer.clock.boottime_ms() + off)
            await assert_refused(broker, action.request.raw(peer.host), Refusal.TIMESTAMP)
        # The challenge was not burnt by either.
        action = peer.m3(opened)
        async with connect(peer.host) as wire:
            assert (await wire.ask(action.request.raw(peer.host))).status == 200


async def test_attack_31_wall_clock_back_one_day_in_mid_flight(transport):
    clock = ManualClock()

    async def step_back(arguments: object, context: object) -> list[object]:
        clock.wall -= 86_400_000
        return []

    async with serve(transport, clock=clock, actions={"sessions": step_back}) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        clock.wall -= 86_400_000
        action = peer.m3(opened)
        async with connect(peer.host) as wire:
            assert action.open((await wire.ask(action.request.raw(peer.host))).body)["status"] == 200
        assert await peer.call(broker) == (200, [])


async def test_attack_31_a_wall_clock_set_back_revives_no_expired_capability(transport):
    clock = ManualClock()
    async with serve(transport, clock=clock, identity_mode="individual") as broker:
        await broker.control.reconcile_principals([Grant("one", 1)])
        peer = Peer(await broker.control.issue_principal("one", 1, clock.wall + 1000), clock)
        assert (await peer.call(broker))[0] == 200
        clock.advance(1000)
        await assert_refused(broker, peer.m1().raw(peer.host), Refusal.PROOF)
        clock.wall -= 10_000
        await assert_refused(broker, peer.m1().raw(peer.host), Refusal.PROOF)


@pytest.mark.parametrize("number", CHANGES)
async def test_attack_32_to_36_an_outsider_flips_a_part_of_m3(transport, number):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        action = peer.m3(opened)
        for bit in (0, 7):
            body = flip(action.request.body, CHANGES[number][1], bit)
            changed = replace(action.request, body=body)
            await assert_refused(broker, changed.raw(peer.host), Refusal.PROOF)
        # Before decapsulation, and nothing burnt: the honest one still goes through.
        async with connect(peer.host) as wire:
            reply = await wire.ask(action.request.raw(peer.host))
        assert action.open(reply.body)["status"] == 200


@pytest.mark.parametrize("number", CHANGES)
async def test_attack_37_to_41_the_same_changes_with_a_good_mac(transport, number):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        action = peer.m3(opened)
        changed = peer.m3_of(flip(action.request.body, CHANGES[number][1]))
        reason = Refusal.UNKNOWN_CHALLENGE if number == 32 else Refusal.SEAL
        await assert_refused(broker, changed.raw(peer.host), reason, keeps=True)
        assert broker.audit.agent_events == []
        assert broker.control.statistics().calls_in_flight == 0
        if number != 32:
            # One try is all that a challenge has.
            await assert_refused(
                broker, peer.m3(opened).request.raw(peer.host), Refusal.UNKNOWN_CHALLENGE, keeps=True
            )
        assert await peer.call(broker) == (200, [])


@pytest.mark.parametrize(
    "changed",
    [
        {"psk": bytes(48)},
        {"sealed_for": {"route": CHALLENGE_ROUTE}},
        {"sealed_for": {"method": b"PUT"}},
        {"sealed_for": {"instance": bytes(32)}},
        {"sealed_for": {"challenge_id": bytes(16)}},
        {"sealed_for": {"principal_id": "other"}},
        {"sealed_for": {"generation": 1}},
        {"sealed_for": {"transcript": bytes(48)}},
        {"padded": bytes(1024)[:-4] + b"\0\0\0\1"},  # padding that is not zeros
        {"padded": (1021).to_bytes(4) + bytes(1020)},  # a length beyond the end
        {"padded": (5).to_bytes(4) + b"{}" + bytes(4096 - 6)},  # a larger size than needed
    ],
    ids=lambda changed: str(next(iter(changed.items())))[:50],
)
async def test_attack_40_a_seal_made_for_something_else(transport, changed):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        action = peer.m3(await peer.challenge(broker), **changed)
        await assert_refused(broker, action.request.raw(peer.host), Refusal.SEAL, keeps=True)
        assert broker.audit.agent_events == []


async def test_attack_40_m3_of_another_length_or_for_another_transcript(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        whole = peer.m3(opened).request.body
        for body in (b"", whole[:15], whole[:-1], whole + b"\0", whole[: 16 + 1568 + 32]):
            await assert_refused(broker, peer.m3_of(body).raw(peer.host), Refusal.WIRE, keeps=True)
        # Each ingredient of TH in turn is another one's.
        other = await peer.challenge(broker)
        for wrong in (
            replace(opened, m1=replace(opened.m1, mac_input=other.m1.mac_input)),
            replace(opened, m1=replace(opened.m1, mac=other.m1.mac)),
            replace(opened, m2=flip(opened.m2, -1)),
        ):
            fresh = await peer.challenge(broker)
            mixed = replace(
                fresh,
                m1=wrong.m1 if wrong.m1 is not opened.m1 else fresh.m1,
                m2=fresh.m2 if wrong.m2 is opened.m2 else flip(fresh.m2, -1),
            )
            action = peer.m3(mixed)
            await assert_refused(broker, action.request.raw(peer.host), Refusal.SEAL, keeps=True)


async def test_attack_40_a_proof_of_another_kind_route_or_key(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        body = peer.m3(await peer.challenge(broker)).request.body
        for request in (
            peer.m3_of(body, label=L_CHALLENGE_REQUEST),
            peer.m3_of(body, key=peer.keys.challenge),
            peer.m3_of(body, route=CHALLENGE_ROUTE, sent_route=AGENT_ROUTE),
            peer.m3_of(body, method=b"PUT"),
            peer.m3_of(body, instance=sha384(b"")[:32]),
        ):
            await assert_refused(broker, request.raw(peer.host), Refusal.PROOF)
        async with connect(peer.host) as wire:
            assert (await wire.ask(peer.m3_of(body).raw(peer.host))).status == 200


async def test_attack_42_an_outsider_tries_to_burn_a_challenge_100_times(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        action = peer.m3(opened)
        stranger = Peer(replace(peer.descriptor, token=bytes(32)), peer.clock)
        for at in range(100):
            # It saw the challenge go by, and has every public part of it.
            forged = stranger.m3(opened) if at % 2 else action
            body = flip(forged.request.body, at * 37 + 1)
            raw = replace(forged.request, body=body).raw(peer.host)
            assert await answer(broker, raw) == broker.refusal
        assert broker.refused(Refusal.PROOF) == 100
        async with connect(peer.host) as wire:
            reply = await wire.ask(action.request.raw(peer.host))
        assert action.open(reply.body)["status"] == 200


async def test_attack_43_another_principals_challenge_id(transport):
    async with serve(transport, identity_mode="individual") as broker:
        await broker.control.reconcile_principals([Grant("one", 1), Grant("two", 1)])
        one = Peer(await broker.control.issue_principal("one", 1), broker.runtime.clock)
        two = Peer(await broker.control.issue_principal("two", 1), broker.runtime.clock)
        opened = await one.challenge(broker)
        stolen = two.m3(opened)
        await assert_refused(broker, stolen.request.raw(two.host), Refusal.UNKNOWN_CHALLENGE, keeps=True)
        mine = two.m3(await two.challenge(broker), challenge_id=opened.challenge.leaf.challenge_id)
        await assert_refused(broker, mine.request.raw(two.host), Refusal.UNKNOWN_CHALLENGE, keeps=True)
        # The owner's was not burnt.
        action = one.m3(opened)
        async with connect(one.host) as wire:
            reply = await wire.ask(action.request.raw(one.host))
        assert action.open(reply.body)["status"] == 200


async def test_attack_46_old_generation(transport):
    async with serve(transport, identity_mode="individual") as broker:
        await broker.control.reconcile_principals([Grant("one", 1)])
        old = Peer(await broker.control.issue_principal("one", 1), broker.runtime.clock)
        opened = await old.challenge(broker)
        await broker.control.reconcile_principals([Grant("one", 2)])
        await assert_refused(broker, old.m1().raw(old.host), Refusal.PROOF)
        new = Peer(await broker.control.issue_principal("one", 2), broker.runtime.clock)
        await assert_refused(broker, old.m1().raw(old.host), Refusal.PROOF)
        await assert_refused(broker, old.m3(opened).request.raw(old.host), Refusal.PROOF)
        # A challenge of the old generation opens nothing for the new one.
        moved = new.m3(opened)
        await assert_refused(broker, moved.request.raw(new.host), Refusal.UNKNOWN_CHALLENGE, keeps=True)
        assert (await new.call(broker))[0] == 200


async def test_attack_46_the_same_generation_issued_again(transport):
    async with serve(transport, identity_mode="individual") as broker:
        await broker.control.reconcile_principals([Grant("one", 1)])
        old = Peer(await broker.control.issue_principal("one", 1), broker.runtime.clock)
        opened = await old.challenge(broker)
        new = Peer(await broker.control.issue_principal("one", 1), broker.runtime.clock)
        await assert_refused(broker, old.m1().raw(old.host), Refusal.PROOF)
        await assert_refused(broker, old.m3(opened).request.raw(old.host), Refusal.PROOF)
        moved = new.m3(opened)
        await assert_refused(broker, moved.request.raw(new.host), Refusal.UNKNOWN_CHALLENGE, keeps=True)


# RFC 7748 section 7 and https://cr.yp.to/ecdh.html: the points of small order.
_P = 2**255 - 19
LOW_ORDER = [
    value.to_bytes(32, "little")
    for value in (
        0,
        1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
        _P - 1,
        _P,
        _P + 1,
        2**255,  # 0 with the unused top bit set
        2**255 + 1,
    )
]


@pytest.mark.parametrize("point", LOW_ORDER, ids=lambda point: point[:4].hex() + point[-1:].hex())
async def test_attack_53_low_order_x25519_public_key(transport, point):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        # Sealed for the all-zero secret that the point would give.
        action = peer.m3(await peer.challenge(broker), x_public=point)
        await assert_refused(broker, action.request.raw(peer.host), Refusal.SEAL, keeps=True)
        assert broker.audit.agent_events == []
        assert X25519Key().public not in LOW_ORDER


async def test_attack_56_two_concurrent_m3_with_one_challenge_id(transport):
    started, release = trio.Event(), trio.Event()

    async def wait(arguments: object, context: object) -> list[object]:
        started.set()
        await release.wait()
        return []

    async with serve(transport, actions={"sessions": wait}) as broker:
        peer = peer_of(broker)
        opened = await peer.challenge(broker)
        first, second = peer.m3(opened), peer.m3(opened)
        async with connect(peer.host) as one, connect(peer.host) as other:
            await one.send(first.request.raw(peer.host))
            await other.send(second.request.raw(peer.host))
            # Whichever came second is refused while the first one runs.
            await started.wait()
            release.set()
            replies = [await one.receive(), await other.receive()]
        assert sorted(reply.status for reply in replies) == [200, 403]
        assert broker.refused(Refusal.UNKNOWN_CHALLENGE) == 1
        assert len(broker.audit.terminal()) == 1


async def test_attack_56_many_concurrent_m3_over_many_challenges(transport):
    limits = Limits(requests_per_minute=600, batch_size=8)
    async with serve(transport, limits=limits) as broker:
        peer = peer_of(broker)
        statuses: list[int] = []

        async def send(raw: bytes) -> None:
            async with connect(peer.host) as wire:
                statuses.append((await wire.ask(raw)).status)

        for _ in range(4):
            opened = await peer.challenge(broker)
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(send, peer.m3(opened).request.raw(peer.host))
        assert statuses.count(200) == 4
        assert statuses.count(403) == 16
        assert len(broker.audit.terminal()) == 4
