"""What a device remembers: whose policies it takes, and the highest that it has seen."""

import copy
import fcntl
from pathlib import Path

import pytest
from tabwarden.authority.principals import InstanceIdentity, PrincipalRegistry
from tabwarden.errors import ConfigurationError
from tabwarden.limits import Limits
from tabwarden.model import Caller
from tabwarden_adapters.policy.enrolment import enrol
from tabwarden_adapters.policy.signing import write_public_keys
from tabwarden_adapters.policy.wire_keys import keys_to_wire

from tests.policy.signed_support import (
    CLICKER,
    DAY,
    HELPER,
    KEYS,
    NOW,
    OTHER_KEYS,
    Device,
    policy,
    rule,
    signed,
)


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(tmp_path)


async def test_keys_are_rotated_by_a_policy_signed_with_the_old_ones(device: Device) -> None:
    device.publish(OTHER_KEYS)
    assert "is trusted" in device.policy.load().message
    device.publish(nextKeys=keys_to_wire(OTHER_KEYS.public))
    assert device.policy.load().kind == "taken"
    assert device.start().load().kind == "taken"  # still signed with the old ones
    device.publish(OTHER_KEYS, version=6)
    assert device.policy.load().kind == "taken"
    device.publish(version=7)
    assert "is trusted" in device.start().load().message
    device.publish(OTHER_KEYS, version=7)
    assert device.policy.load().kind == "taken"


async def test_a_rotation_is_withdrawn_by_the_next_policy_without_it(device: Device) -> None:
    device.publish(nextKeys=keys_to_wire(OTHER_KEYS.public))
    device.policy.load()
    device.publish(version=6)
    device.policy.load()
    device.publish(OTHER_KEYS, version=7)
    assert "is trusted" in device.policy.load().message


async def test_next_keys_that_are_the_same_keys_are_a_mistake(device: Device) -> None:
    device.publish(nextKeys=keys_to_wire(KEYS.public))
    assert "nextKeys: are the keys that sign this policy already" in device.policy.load().message


async def test_a_policy_of_tomorrow_is_not_taken_today(device: Device) -> None:
    device.clock.wall = NOW - 30 * DAY
    device.state.path.unlink()
    enrol(device.state, KEYS.public, device.clock.wall)
    device.publish()
    assert "issued: 2027-01-01T00:00:00Z is still to come" in device.start().load().message


async def test_a_device_that_is_not_enrolled_fails_closed_and_says_what_to_do(tmp_path: Path) -> None:
    device = Device(tmp_path, enrolled=False)
    device.publish()
    with pytest.raises(ConfigurationError, match=r"not enrolled.*tabwarden policy enrol"):
        device.policy.load()
    assert await rule(device, HELPER, "read") == "policy.none"


async def test_a_state_that_disappears_while_running_lets_nothing_new_in(device: Device) -> None:
    device.publish()
    device.policy.load()
    device.state.path.unlink()
    device.publish(version=6)
    report = await device.policy.reload()
    assert report.kind == "refused"
    assert "not enrolled, or its state was removed" in report.message
    assert device.policy.policy_version == 5


async def test_enrolling_twice_is_refused_and_anew_can_keep_a_floor(device: Device) -> None:
    with pytest.raises(ConfigurationError, match="enrolled already"):
        enrol(device.state, OTHER_KEYS.public, NOW)
    device.state.path.unlink()
    enrol(device.state, KEYS.public, NOW, at_least_version=6)
    device.publish()
    assert "version: 5 is lower than 6" in device.policy.load().message
    device.publish(version=6)
    assert device.policy.load().kind == "taken"
    assert device.state.load().generations == {"helper": 2, "clicker": 1}
    with pytest.raises(ConfigurationError, match="whole number from 1"):
        enrol(device.state, KEYS.public, NOW, at_least_version=0)


async def test_a_state_that_cannot_be_written_takes_no_policy(device: Device) -> None:
    device.publish()
    device.policy.load()
    device.publish(version=6)
    device.folder.chmod(0o755)
    assert "chmod 700 it" in (await device.policy.reload()).message
    assert device.policy.policy_version == 5
    device.clock.wall += 2 * DAY
    await device.policy.look()
    assert device.reports[-1].kind == "refused"
    device.folder.chmod(0o700)
    assert (await device.policy.reload()).version == 6


def test_no_key_shows_in_any_text() -> None:
    assert "ed25519" not in repr(KEYS.public)
    assert b"private" not in write_public_keys(KEYS.public)
    assert repr(KEYS).startswith("<")
    assert signed() != signed()  # ML-DSA-87 is randomised; both must open all the same


async def test_a_lower_version_is_refused_however_it_arrives(device: Device) -> None:
    device.publish(version=7)
    device.policy.load()
    device.publish(version=6)
    for report in (await device.policy.reload(), device.start().load(), await device.policy.reload()):
        assert report.kind == "refused"
        assert "version: 6 is lower than 7, which this device has seen" in report.message
    assert await rule(device, HELPER, "read") == "policy.none"
    device.publish(version=7)
    assert device.policy.load().kind == "taken"


async def test_the_same_version_with_other_contents_is_refused(device: Device) -> None:
    device.publish()
    device.policy.load()
    device.publish(agents__allowSensitiveRead=True)
    assert "seen 5 with other contents" in (await device.policy.reload()).message
    assert not device.policy.sensitive_read_allowed(HELPER)


async def test_a_lower_generation_is_refused_also_after_the_grant_was_gone(device: Device) -> None:
    device.publish()
    device.policy.load()
    device.publish(version=6, grants=[])
    assert device.policy.load().kind == "taken"
    grants = copy.deepcopy(policy()["grants"])
    grants[0]["generation"] = 1
    device.publish(version=7, grants=grants)
    restarted = device.start().load()
    assert restarted.kind == "refused"
    assert "grants[0].generation: 1 of helper is lower than 2, which this device has" in restarted.message
    grants[0]["generation"] = 3
    device.publish(version=7, grants=grants)
    assert (await device.policy.reload()).kind == "taken"
    assert await rule(device, Caller("helper", 3), "read") == "grant:helper"


async def test_the_latest_time_seen_survives_a_restart(device: Device) -> None:
    device.publish()
    await device.policy.look()
    device.clock.wall = NOW + 10 * DAY
    await device.policy.look()
    device.clock.wall = NOW
    device.start().load()
    assert await rule(device, CLICKER, "read") == "grant:clicker.expired"
    assert device.state.load().wall_ms == NOW + 10 * DAY
    # A broker that was started just now has only its own clock to judge by.
    registry = PrincipalRegistry(
        InstanceIdentity("127.0.0.1:1", bytes(32), bytes(2592)), "individual", Limits(), bytes(32)
    )
    registry.reconcile(device.policy.grants(), device.clock.wall)
    registry.issue(bytes(32), "helper", 2, None, device.clock.wall)
    with pytest.raises(ConfigurationError, match="no approved grant"):
        registry.issue(bytes(32), "clicker", 1, None, device.clock.wall)


async def test_one_process_at_a_time_changes_the_state(device: Device) -> None:
    lock = device.folder / ".state.json.lock"
    with device.state.changing(), lock.open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with lock.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
