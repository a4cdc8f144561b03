"""What may be asked for, and that nothing leaves this machine."""

import socket
from dataclasses import replace
from typing import Any

import pytest
from tabwarden.errors import (
    CallFailed,
    ChallengeLimited,
    ClientDeadline,
    ClientError,
    ConfigurationError,
    ProtocolViolation,
    Refused,
    Unreachable,
)
from tabwarden.model import ConnectionDescriptor
from tabwarden_adapters.load import Kind, LoadPlan, drive, require_loopback
from tabwarden_adapters.load.outcomes import ending_of
from tabwarden_adapters.load.plan import spread

from tests.credentials.test_store import DESCRIPTOR

GOOD: dict[str, Any] = {"agents": 2, "seconds": 1.0, "rate": 1.0}


def elsewhere(address: str) -> ConnectionDescriptor:
    """What cannot be built by the ordinary way."""
    made = replace(DESCRIPTOR)
    object.__setattr__(made, "address", address)
    return made


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"agents": 0}, "--agents"),
        ({"agents": 1001}, "--agents"),
        ({"seconds": 0}, "--seconds"),
        ({"seconds": float("nan")}, "--seconds"),
        ({"seconds": 3601}, "--seconds"),
        ({"rate": 0}, "--rate"),
        ({"rate": 1001}, "--rate"),
        ({"limit": 0}, "--limit"),
        ({"patience_s": 16.0}, "patience"),
        ({"agents": 1000, "rate": 1.0, "seconds": 1001}, "1001000 calls"),
    ],
)
def test_bounds_are_named(wrong: dict[str, Any], says: str) -> None:
    LoadPlan(**GOOD)
    with pytest.raises(ConfigurationError, match=says):
        LoadPlan(**{**GOOD, **wrong})


def test_agents_are_spread_over_time_and_over_credentials() -> None:
    plan = LoadPlan(agents=4, seconds=10, rate=2)
    starts = sorted(plan.start_ns(agent, number) for agent in range(4) for number in range(2))
    assert starts == [number * 125_000_000 for number in range(8)]
    assert plan.planned_calls == 80
    closed = LoadPlan(agents=4, seconds=10)
    assert (closed.planned_calls, closed.start_ns(3, 9)) == (None, 0)
    two = [DESCRIPTOR, replace(DESCRIPTOR, principal_id="other")]
    assert [one.principal_id for one in spread(5, two)] == ["agent", "other", "agent", "other", "agent"]


@pytest.mark.parametrize(
    "address",
    [
        "192.0.2.1:80",
        "127.0.0.2:80",
        "localhost:80",
        "[::1]:80",
        "127.0.0.1.example.org:80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:80@192.0.2.1:81",
        "0.0.0.0:80",
        "",
    ],
)
def test_only_loopback(address: str) -> None:
    require_loopback([DESCRIPTOR])
    with pytest.raises(ConfigurationError, match=r"127\.0\.0\.1 only"):
        require_loopback([DESCRIPTOR, elsewhere(address)])


async def test_nothing_leaves_when_one_of_many_is_elsewhere() -> None:
    with socket.create_server(("127.0.0.2", 0)) as other, socket.create_server(("127.0.0.1", 0)) as ours:
        descriptors = [
            replace(DESCRIPTOR, address=f"127.0.0.1:{ours.getsockname()[1]}"),
            elsewhere(f"127.0.0.2:{other.getsockname()[1]}"),
        ]
        with pytest.raises(ConfigurationError, match="another address"):
            await drive(LoadPlan(agents=2, seconds=5), descriptors)
        for listener in (other, ours):
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()


async def test_there_is_a_credential() -> None:
    with pytest.raises(ConfigurationError, match="no credential"):
        await drive(LoadPlan(agents=1, seconds=1), [])


@pytest.mark.parametrize(
    ("error", "asked", "kind", "code", "taken"),
    [
        (None, True, Kind.ACCEPTED, "ok", True),
        (CallFailed(429, "rate-limited", 5), True, Kind.LIMITED, "rate-limited", False),
        (ChallengeLimited(3), False, Kind.LIMITED, "challenge-limited", False),
        (CallFailed(403, "policy-denied"), True, Kind.REFUSED, "policy-denied", True),
        (CallFailed(504, "deadline"), True, Kind.FAILED, "deadline", True),
        (CallFailed(409, "browser-management-busy"), True, Kind.FAILED, "browser-management-busy", True),
        (CallFailed(503, "shutting-down"), True, Kind.FAILED, "shutting-down", None),
        (CallFailed(500, "a code of tomorrow"), True, Kind.FAILED, "a code of tomorrow", True),
        (Refused(""), False, Kind.REFUSED, "refused", False),
        (Refused(""), True, Kind.REFUSED, "refused", None),
        (Unreachable(""), False, Kind.TRANSPORT, "unreachable", False),
        (Unreachable(""), True, Kind.TRANSPORT, "unreachable", None),
        (ClientDeadline(""), True, Kind.TRANSPORT, "client-deadline", None),
        (ProtocolViolation(""), True, Kind.TRANSPORT, "protocol-violation", None),
        (ClientError(""), False, Kind.TRANSPORT, "client-error", False),
    ],
)
def test_how_a_call_ended(
    error: ClientError | None, asked: bool, kind: Kind, code: str, taken: bool | None
) -> None:
    assert ending_of(error, asked=asked) == (kind, code, taken)
