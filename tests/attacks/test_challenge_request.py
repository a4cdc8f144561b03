"""Attacks 1 to 12 and 16, 2, 3: M1 replayed, changed, moved or malformed."""

import os
from dataclasses import replace

import pytest
from tabwarden.authority.principals import Grant
from tabwarden.errors import Refusal
from tabwarden.protocol.codec import base64url
from tabwarden.protocol.proof import (
    AGENT_ROUTE,
    CHALLENGE_ROUTE,
    GENERATION_HEADER,
    L_AGENT_REQUEST_MAC,
    NONCE_HEADER,
    PRINCIPAL_HEADER,
    PROOF_HEADER,
    TIMESTAMP_HEADER,
    challenge_body,
)

from tests.attacks.serving import serve
from tests.attacks.toolkit import Peer, answer, assert_refused, connect, flip, peer_of
from tests.support.fakes import ManualClock


async def test_attack_01_exact_replay_of_m1(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        raw = peer.m1().raw(peer.host)
        async with connect(broker.control.address) as wire:
            assert (await wire.ask(raw)).status == 200
        await assert_refused(broker, raw, Refusal.NONCE)
        await assert_refused(broker, raw, Refusal.NONCE)
        assert await peer.call(broker) == (200, [])


async def test_attack_02_m1_to_a_restarted_broker(transport):
    async with serve(transport) as before:
        peer = peer_of(before)
        captured = peer.m1()
    async with serve(transport) as broker:
        # The attacker mends the Host header, which is no secret: only the keys are new.
        await assert_refused(broker, captured.raw(broker.control.address), Refusal.PROOF)


async def test_attack_03_m1_to_another_instance_that_knows_the_same_token(transport):
    async with serve(transport) as first, serve(transport) as second:
        # The same token over all else of the second: only the instance and public keys differ.
        token, clock = second.descriptor.token, second.runtime.clock
        stranger = Peer(replace(first.descriptor, token=token), clock)
        await assert_refused(second, stranger.m1().raw(second.control.address), Refusal.PROOF)
        # Nor does it help to put the second's instance into the MAC while the keys are the first's.
        request = stranger.m1(instance=second.descriptor.instance)
        await assert_refused(second, request.raw(second.control.address), Refusal.PROOF)
        # Or the second's keys over the first's instance.
        request = peer_of(second).m1(instance=first.descriptor.instance)
        await assert_refused(second, request.raw(second.control.address), Refusal.PROOF)


async def test_attack_04_timestamp_changed(transport):
    async with serve(transport, clock=ManualClock()) as broker:
        peer = peer_of(broker)
        changed = str(peer.clock.boottime_ms() + 1).encode()
        request = peer.m1().with_header(TIMESTAMP_HEADER, changed)
        await assert_refused(broker, request.raw(peer.host), Refusal.PROOF)


async def test_attack_05_generation_changed(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        request = peer.m1().with_header(GENERATION_HEADER, b"1")
        await assert_refused(broker, request.raw(peer.host), Refusal.PROOF)


async def test_attack_05_generation_changed_to_another_living_one_of_the_same_id(transport):
    async with serve(transport, identity_mode="individual") as broker:
        await broker.control.reconcile_principals([Grant("one", 1)])
        descriptor = await broker.control.issue_principal("one", 1)
        peer = Peer(descriptor, broker.runtime.clock)
        # MACed by the holder itself for a generation that it does not have.
        await assert_refused(broker, peer.m1(generation=2).raw(peer.host), Refusal.PROOF)


async def test_attack_06_nonce_changed(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        request = peer.m1().with_header(NONCE_HEADER, base64url(os.urandom(32)).encode())
        await assert_refused(broker, request.raw(peer.host), Refusal.PROOF)


async def test_attack_06_the_same_nonce_in_another_spelling(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        request = peer.m1(nonce=bytes(32))
        spelling = base64url(bytes(32)).encode()
        # The last character has two bits that carry nothing.
        for other in (spelling[:-1] + b"B", spelling[:-1] + b"D", spelling + b"="):
            changed = request.with_header(NONCE_HEADER, other)
            await assert_refused(broker, changed.raw(peer.host), Refusal.PROOF)


@pytest.mark.parametrize("at", [0, 23, 47])
async def test_attack_07_mac_changed(transport, at):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        request = peer.m1()
        changed = base64url(flip(request.mac, at)).encode()
        await assert_refused(broker, request.with_header(PROOF_HEADER, changed).raw(peer.host), Refusal.PROOF)


async def test_attack_08_id_changed(transport):
    async with serve(transport, identity_mode="individual") as broker:
        await broker.control.reconcile_principals([Grant("one", 1), Grant("two", 1)])
        one = Peer(await broker.control.issue_principal("one", 1), broker.runtime.clock)
        await broker.control.issue_principal("two", 1)
        for name in (b"two", b"three", b"legacy"):
            request = one.m1().with_header(PRINCIPAL_HEADER, name)
            await assert_refused(broker, request.raw(one.host), Refusal.PROOF)


async def test_attack_09_body_changed(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        request = peer.m1()
        changed = replace(request, body=flip(request.body, -1))
        await assert_refused(broker, changed.raw(peer.host), Refusal.PROOF)


async def test_attack_09_body_that_names_another_target_with_a_good_mac(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        for body in (
            challenge_body(route=CHALLENGE_ROUTE),
            challenge_body(method=b"GET"),
            challenge_body() + b"\0",
            b"",
        ):
            request = peer.m1(body=body)
            await assert_refused(broker, request.raw(peer.host), Refusal.WIRE, keeps=True)
            assert len(broker.runtime.registry.find("legacy", 0, 0).account.challenges) == 0


async def test_attack_10_mac_made_for_another_route_or_method(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        for request in (
            peer.m1(route=AGENT_ROUTE, sent_route=CHALLENGE_ROUTE),
            peer.m1(method=b"PUT"),
            # An M3 proof where M1 is expected, with either half of it.
            peer.m1(label=L_AGENT_REQUEST_MAC),
            peer.m1(key=peer.keys.request),
            peer.m1(label=L_AGENT_REQUEST_MAC, key=peer.keys.request),
            # An M1 proof where M3 is expected.
            peer.m3_of(challenge_body(), key=peer.keys.challenge),
            replace(peer.m1(), route=AGENT_ROUTE),
        ):
            await assert_refused(broker, request.raw(peer.host), Refusal.PROOF)


async def test_attack_10_another_method_on_the_wire(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        for method in (b"PUT", b"OPTIONS", b"PATCH", b"DELETE"):
            request = replace(peer.m1(method=method), method=method)
            await assert_refused(broker, request.raw(peer.host), Refusal.HTTP)
        for target in (b"/", b"/v1/other", b"/v1/challenge/", b"/v1/challenge?a=b", b"/v1//challenge"):
            await assert_refused(broker, peer.m1().raw(peer.host, route=target), Refusal.ROUTE)


@pytest.mark.parametrize("off", [31_000, -31_000, 30_001, -30_001, 10**15])
async def test_attack_11_timestamp_31_s_old_or_ahead(transport, off):
    async with serve(transport, clock=ManualClock(boottime=10**9)) as broker:
        peer = peer_of(broker)
        timestamp = peer.clock.boottime_ms() + off
        if timestamp >= 0:
            await assert_refused(broker, peer.m1(timestamp=timestamp).raw(peer.host), Refusal.TIMESTAMP)


@pytest.mark.parametrize("off", [30_000, -30_000])
async def test_attack_11_a_timestamp_just_inside_the_window_is_served(transport, off):
    async with serve(transport, clock=ManualClock(boottime=10**9)) as broker:
        peer = peer_of(broker)
        request = peer.m1(timestamp=peer.clock.boottime_ms() + off)
        async with connect(broker.control.address) as wire:
            assert (await wire.ask(request.raw(peer.host))).status == 200
        # As long as its date is fresh, its nonce is remembered: the window's two ends included.
        broker.runtime.clock.advance(30_000 + off)
        await assert_refused(broker, request.raw(peer.host), Refusal.NONCE, keeps=True)
        broker.runtime.clock.advance(1)
        await assert_refused(broker, request.raw(peer.host), Refusal.TIMESTAMP, keeps=True)


_GOOD_MAC = base64url(bytes(48)).encode()


@pytest.mark.parametrize(
    "mac",
    [
        b"",
        _GOOD_MAC[:-1],
        _GOOD_MAC[:-2],
        _GOOD_MAC + b"A",
        _GOOD_MAC + b"=",
        _GOOD_MAC * 8,
        _GOOD_MAC[:-1] + b"+",
        _GOOD_MAC[:-1] + b"\xe9",
        _GOOD_MAC[:-1] + b"!",
        b"00" * 48,
    ],
    ids=repr,
)
async def test_attack_12_mac_truncated_empty_over_long_or_not_base64(transport, mac):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        request = peer.m1().with_header(PROOF_HEADER, mac)
        await assert_refused(broker, request.raw(peer.host), Refusal.PROOF)


async def test_attack_12_a_truncation_of_the_right_mac(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        request = peer.m1()
        for length in (0, 16, 32, 47):
            shorter = request.with_header(PROOF_HEADER, base64url(request.mac[:length]).encode())
            await assert_refused(broker, shorter.raw(peer.host), Refusal.PROOF)


async def test_attack_12_proof_headers_doubled_missing_or_more(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        request = peer.m1()
        for name, value in request.proof:
            await assert_refused(broker, request.raw(peer.host, b"%s: %s" % (name, value)), Refusal.PROOF)
            fewer = replace(request, proof=tuple(field for field in request.proof if field[0] != name))
            await assert_refused(broker, fewer.raw(peer.host), Refusal.PROOF)
        await assert_refused(broker, request.raw(peer.host, b"tabwarden-other: 1"), Refusal.PROOF)
        for name in (GENERATION_HEADER, TIMESTAMP_HEADER):
            for value in (
                b"-1",
                b"+1",
                b"01",
                b"1.0",
                b"0x1",
                b"",
                b"9" * 21,
                b"1_0",
                b"18446744073709551616",
            ):
                changed = request.with_header(name, value)
                await assert_refused(broker, changed.raw(peer.host), Refusal.PROOF)


async def test_attack_16_m1_replayed_after_the_wall_clock_stepped_back(transport):
    clock = ManualClock()
    async with serve(transport, clock=clock) as broker:
        peer = peer_of(broker)
        raw = peer.m1().raw(peer.host)
        async with connect(broker.control.address) as wire:
            assert (await wire.ask(raw)).status == 200
        clock.advance(61_000)
        clock.wall -= 61_000
        # The honest clock went on: the proof is old, whatever the wall says.
        await assert_refused(broker, raw, Refusal.TIMESTAMP)
        assert await peer.call(broker) == (200, [])


async def test_refusals_do_not_depend_on_the_reason(transport):
    async with serve(transport) as broker:
        peer = peer_of(broker)
        first = peer.m1()
        answers = {
            await answer(broker, first.with_header(PROOF_HEADER, b"x").raw(peer.host)),
            await answer(broker, first.raw("127.0.0.1:1")),
            await answer(broker, first.raw(peer.host, b"origin: https://evil.test")),
            await answer(broker, peer.m1(timestamp=1).raw(peer.host)),
            await answer(broker, peer.m3_of(b"short").raw(peer.host)),
            await answer(broker, peer.m3_of(bytes(16 + 1568 + 32 + 1040)).raw(peer.host)),
        }
        assert answers == {broker.refusal}
