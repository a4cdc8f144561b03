"""Publishing, restarting, rotating and setting clocks in any order: what was taken away stays away.

The model keeps nothing but what may not go down. It is asked after every step whether each thing that the
policy allows may be allowed.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tabwarden.authority.principals import InstanceIdentity, PrincipalRegistry
from tabwarden.limits import Limits
from tabwarden.model import Caller
from tabwarden_adapters.policy.decisions import may_act
from tabwarden_adapters.policy.signing import SigningKeys
from tabwarden_adapters.policy.times import write_time
from tabwarden_adapters.policy.wire_keys import keys_to_wire

from tests.policy.signed_support import DAY, KEYS, NOW, OTHER_KEYS, Device, policy

IDS = ("a", "b")
SCOPES = ("read", "click")
HOUR, YEAR = 3_600_000, 365 * DAY
STEPS = [sign * step for step in (HOUR, DAY, 10 * YEAR) for sign in (1, -1)]
scopes = st.lists(st.sampled_from(SCOPES), unique=True)
grants = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(IDS),
            "name": st.just("n"),
            "scopes": scopes,
            "generation": st.integers(1, 4),
            "enabled": st.booleans(),
            "expires": st.sampled_from([HOUR, DAY, 3 * DAY]),
        }
    ),
    max_size=2,
    unique_by=lambda grant: grant["id"],
)


class Devices(RuleBasedStateMachine):
    """One device, and the policies that come to it."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.device = Device(self.folder)
        self.latest = NOW
        self.version = 0
        self.generations: dict[str, int] = {}
        self.taken: dict[str, Any] = policy(version=1, agents__enabled=False)
        self.keys: tuple[SigningKeys, ...] = (KEYS,)
        self.registry = PrincipalRegistry(
            InstanceIdentity("127.0.0.1:1", bytes(32), bytes(2592)), "individual", Limits(), bytes(32)
        )

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @rule(
        version=st.integers(1, 12),
        some=grants,
        agents=scopes,
        lasts=st.sampled_from([HOUR, 2 * DAY, 20 * YEAR]),
        other_keys=st.booleans(),
        rotates=st.booleans(),
    )
    def publish(
        self,
        version: int,
        some: list[dict[str, Any]],
        agents: list[str],
        lasts: int,
        other_keys: bool,
        rotates: bool,
    ) -> None:
        now = self.device.clock.wall
        document = policy(
            version=version,
            issued=write_time(max(now, 0)),
            expires=write_time(now + lasts),
            agents__scopes=agents,
            grants=[{**grant, "expires": write_time(now + grant["expires"])} for grant in some],
        )
        signing = OTHER_KEYS if other_keys else KEYS
        following = KEYS if other_keys else OTHER_KEYS
        if rotates:
            document["nextKeys"] = keys_to_wire(following.public)
        self.device.file.write_bytes(signing.sign(json.dumps(document).encode()))
        self.latest = max(self.latest, now)
        report = self.device.policy._publish(*self.device.policy._take())
        if report.kind == "taken":
            assert signing in self.keys
            assert version > self.version or document == self.taken
            assert now + lasts > self.latest
            for grant in some:
                assert grant["generation"] >= self.generations.get(grant["id"], 0)
                self.generations[grant["id"]] = grant["generation"]
            self.version, self.taken = version, document
            self.keys = (signing, following) if rotates else (signing,)

    @rule(step=st.sampled_from(STEPS))
    def step_the_clock(self, step: int) -> None:
        self.device.clock.wall = max(self.device.clock.wall + step, NOW - 20 * YEAR)
        self.latest = max(self.latest, self.device.clock.wall)

    @rule()
    def restart(self) -> None:
        """What was seen since the time was last saved is lost with the process: it is saved by the watch."""
        self.device.policy._now()
        self.device.policy._save_time()
        self.device.start().load()

    @rule(grant_id=st.sampled_from(IDS), generation=st.integers(1, 4))
    def issue_as_a_broker_would(self, grant_id: str, generation: int) -> None:
        now = self.device.policy._now()
        self.registry.reconcile(self.device.policy.grants(), now)
        approved = {
            (grant.principal_id, grant.generation)
            for grant in self.device.policy.grants()
            if grant.enabled and (grant.expires_at_ms or 0) > now
        }
        try:
            self.registry.issue(bytes(32), grant_id, generation, None, now)
        except ValueError:
            assert (grant_id, generation) not in approved
        else:
            assert (grant_id, generation) in approved
            assert generation == self.generations[grant_id]

    @invariant()
    def nothing_is_allowed_that_was_taken_away(self) -> None:
        if not hasattr(self, "device"):
            return
        now = self.device.policy._now()
        assert now >= self.latest
        listed = {grant["id"]: grant for grant in self.taken["grants"]}
        for grant_id in IDS:
            for generation in range(1, 5):
                for scope in SCOPES:
                    verdict = may_act(
                        self.device.policy._policy, Caller(grant_id, generation), scope, (), now
                    )
                    if not verdict.allowed:
                        continue
                    grant = listed[grant_id]
                    assert grant["enabled"]
                    assert scope in grant["scopes"]
                    assert scope in self.taken["agents"]["scopes"]
                    assert generation == grant["generation"] == self.generations[grant_id]
                    assert write_time(now) < min(grant["expires"], self.taken["expires"])
                    assert self.device.policy.policy_version == self.version


Devices.TestCase.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)
TestDevices = Devices.TestCase
