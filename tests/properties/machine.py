"""The machine that Hypothesis drives: every rule is one step, and counted."""

import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial, wraps
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.policy.signed_support import DAY
from tests.properties.bridge import wait_for
from tests.properties.model import GrantPaper, Paper
from tests.properties.papers import FLAWS, HOSTS, IDS, OFFICES, SCOPES, write_paper
from tests.properties.world import COUNTED, STATIONS, Call, Deed, World

HOUR, YEAR = 3_600_000, 365 * DAY
STEPS = tuple(sign * step for step in (HOUR, DAY, 10 * YEAR) for sign in (1, -1))
LASTS = (30 * YEAR, 30 * DAY, 30 * YEAR, 2 * HOUR, 1000)
NOTICED = ("reload", "reload", "look", "not yet")
MEMORY = Path("/dev/shm")  # noqa: S108 - folders of our own in it; syncs cost nothing there

MOSTLY = (True, True, True, True, True, True, False)
SHIFTS = (0, 0, 0, 0, 0, 1, -1)
SCOPE_SETS = tuple(frozenset(some) for count in (3, 3, 2, 1) for some in combinations(SCOPES, count))
HOST_SETS = tuple(frozenset(some) for count in (2, 2, 1, 0) for some in combinations(HOSTS, count))
ACTIONS = tuple((scope, host) for scope in SCOPES for host in (HOSTS if scope == "navigate" else (None,)))
DEEDS = (
    "revoke", "revoke other", "revoke all", "narrow", "narrow hosts", "rotate", "disable", "drop",
    "disable agents", "expire soon", "issue anew", "later", "much later", "earlier", "restart", "widen",
    "same",
)  # fmt: skip
POLICY_DEEDS = DEEDS[DEEDS.index("narrow") : DEEDS.index("issue anew")]
ids = st.sampled_from(IDS)


def one_of_all(*parts: tuple[Any, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    """One element of each, in one draw: what Hypothesis does for a draw costs more than a call."""

    def chosen(number: int) -> tuple[Any, ...]:
        chosen = []
        for part in parts:
            number, place = divmod(number, len(part))
            chosen.append(part[place])
        return tuple(chosen)

    return st.integers(0, prod(map(len, parts)) - 1).map(chosen)


grants = st.tuples(*(one_of_all(SCOPE_SETS, HOST_SETS, SHIFTS, MOSTLY, LASTS) | st.none() for _ in IDS))
Interruption = tuple[int, tuple[str, str | None], str, str, bool]
interruptions = one_of_all((0, 1), ACTIONS, STATIONS, DEEDS, (False, True))
calls = one_of_all((0, 0, 1, 1, 2, 3), SHIFTS, ACTIONS)


def step(work: Callable[..., None]) -> Callable[..., None]:
    """Count the rule when it has been executed to its end."""

    @wraps(work)
    def counted(self: "Rights", **drawn: Any) -> None:
        work(self, **drawn)
        self.steps += 1
        COUNTED["rules"] += 1
        COUNTED[f"rule {work.__name__}"] += 1

    return counted


class Rights(RuleBasedStateMachine):
    """Everything that can change who may do what, in any order, and calls between and during it."""

    def __init__(self, nursery: trio.Nursery, *, whole: bool) -> None:
        super().__init__()
        self.nursery, self.whole = nursery, whole
        self.world: World | None = None
        self.steps = self.restarted = 0

    @initialize()
    def begin(self) -> None:
        place = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(dir=place))
        world = World(self.nursery, self.folder, whole=self.whole)
        full = {
            one: GrantPaper(frozenset(SCOPES), frozenset(), 1, True, world.clock.wall + 30 * YEAR)
            for one in IDS
        }
        world.put(
            *write_paper(
                version=1, issued=world.clock.wall, expires=world.clock.wall + 30 * YEAR, grants=full
            )
        )
        wait_for(world.begin())
        for one in IDS:
            wait_for(world.issue(one, 1, None))
        self.world = world

    def teardown(self) -> None:
        if self.world is not None:
            wait_for(self.world.end())
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @property
    def w(self) -> World:
        assert self.world is not None
        return self.world

    # ---- policies ---------------------------------------------------------------------------------

    @rule(
        some=grants,
        general=one_of_all(SCOPE_SETS, HOST_SETS, MOSTLY, LASTS),
        times=one_of_all((1, 1, 1, 1, 1, 3, 0, -1), (0, 0, 0, 0, 0, HOUR), MOSTLY),
        signing=one_of_all(
            (True, True, True, True, False), (None, None, None, *OFFICES), (None,) * 9 + FLAWS
        ),
        noticed=st.sampled_from(NOTICED),
    )
    @step
    def publish(
        self,
        some: tuple[tuple[frozenset[str], frozenset[str], int, bool, int] | None, ...],
        general: tuple[frozenset[str], frozenset[str], bool, int],
        times: tuple[int, int, bool],
        signing: tuple[bool, str | None, str | None],
        noticed: str,
    ) -> None:
        agents, places, enabled, lasts = general
        bump, ahead, by_latest = times
        by_trusted, following, flaw = signing
        model = self.w.model
        now = _whole_second(model.latest if by_latest else self.w.clock.wall)
        papers = {
            one: GrantPaper(what, where, max(model.highest.get(one, 1) + shift, 1), on, now + ends)
            for one, grant in zip(IDS, some, strict=True)
            if grant is not None
            for what, where, shift, on, ends in [grant]
        }
        by = model.signer if by_trusted else next(one for one in OFFICES if one != model.signer)
        paper, data = write_paper(
            version=max(model.version + bump, 1),
            issued=now + ahead,
            expires=now + ahead + lasts,
            grants=papers,
            scopes=agents,
            hosts=places,
            enabled=enabled,
            signed_by=by,
            following=following,
            flaw=flaw,
        )
        self.w.put(paper, data)
        self._notice_file(noticed)

    @rule(which=st.integers(0, 20), noticed=st.sampled_from(["reload", "look", "not yet"]))
    @step
    def put_an_old_file_back(self, which: int, noticed: str) -> None:
        self.w.put(*self.w.old[-1 - which % len(self.w.old)])
        self.w.old.pop()
        self._notice_file(noticed)

    def _notice_file(self, how: str) -> None:
        if how != "not yet":
            wait_for(self.w.reload() if how == "reload" else self.w.look())

    @rule(how=st.sampled_from((*POLICY_DEEDS, "widen", "widen")), whose=ids)
    @step
    def publish_one_change(self, how: str, whose: str) -> None:
        wait_for(_published(self.w, *_changed(self.w, how, whose)))

    @rule(how=st.sampled_from(["reload", "look"]))
    @step
    def notice_the_file(self, how: str) -> None:
        self._notice_file(how)

    # ---- clocks and restarts ----------------------------------------------------------------------

    @rule(by=st.sampled_from(STEPS))
    @step
    def set_the_clock(self, by: int) -> None:
        self.w.step(by)

    @rule(by=st.sampled_from([1, 900, 61_000, HOUR]))
    @step
    def let_time_pass(self, by: int) -> None:
        self.w.advance(by)
        wait_for(self.w.control.end_expired())

    @precondition(lambda self: self.w.model.revoked or self.restarted + 25 < self.steps)
    @rule()
    @step
    def restart(self) -> None:
        self.restarted = self.steps
        wait_for(self.w.restart())

    # ---- credentials ------------------------------------------------------------------------------

    @rule(what=one_of_all(IDS, SHIFTS, (None, None, None, HOUR, 1000, -1000)))
    @step
    def issue(self, what: tuple[str, int, int | None]) -> None:
        grant_id, shift, lasts = what
        generation = max(self.w.model.highest.get(grant_id, 1) + shift, 1)
        wait_for(self.w.issue(grant_id, generation, lasts))

    @rule(grant_id=ids)
    @step
    def revoke(self, grant_id: str) -> None:
        wait_for(self.w.revoke(grant_id))

    @precondition(lambda self: not self.w.model.revoked and self.restarted + 15 < self.steps)
    @rule()
    @step
    def revoke_all(self) -> None:
        wait_for(self.w.revoke(None))

    # ---- calls ------------------------------------------------------------------------------------

    @rule(what=calls)
    @step
    def call(self, what: tuple[int, int, tuple[str, str | None]]) -> None:
        self._make(*what)

    @rule(grant_id=ids, what=st.sampled_from(ACTIONS))
    @step
    def issue_and_call(self, grant_id: str, what: tuple[str, str | None]) -> None:
        wait_for(self.w.issue(grant_id, self.w.model.highest.get(grant_id, 1), None))
        self._make(0, 0, what)

    @rule(what=interruptions)
    @step
    def call_while_something_happens(self, what: Interruption) -> None:
        self._interrupt(what)

    @rule(what=interruptions, mend=one_of_all(IDS, (None, HOUR)))
    @step
    def mend_and_call_while_something_happens(self, what: Interruption, mend: tuple[str, int | None]) -> None:
        whose, lasts = mend
        wait_for(_published(self.w, *_changed(self.w, "widen", whose)))
        wait_for(self.w.issue(whose, self.w.model.highest.get(whose, 1), lasts))
        self._interrupt(what)

    def _interrupt(self, what: Interruption) -> None:
        which, action, station, deed, stubborn = what
        known = self.w.model.credentials
        # One that is still good, if there is one: else nothing would come to where something happens.
        good = [place for place, one in enumerate(reversed(known)) if self.w.model.lost(one) is None] or [0]
        self._make(good[which % len(good)], 0, action, station=station, deed=deed, stubborn=stubborn)

    @invariant()
    def what_every_late_credential_can_do_is_what_it_may(self) -> None:
        if self.world is not None:
            for which in range(1 if self.whole else 3):
                for action in ACTIONS:
                    self._make(which, 0, action)

    def _make(
        self,
        which: int,
        shift: int,
        what: tuple[str, str | None],
        *,
        station: str | None = None,
        deed: str | None = None,
        stubborn: bool = False,
    ) -> None:
        known = self.w.model.credentials
        credential = known[-1 - which % len(known)]
        call = Call(
            credential, max(credential.generation + shift, 1), *what, station=station, stubborn=stubborn
        )
        if deed is not None:
            call.deed = self._deed(deed, credential.grant_id)
        wait_for(self.w.make(call))

    def _deed(self, name: str, grant_id: str) -> Deed:
        world, model = self.w, self.w.model
        other = next(one for one in IDS if one != grant_id)
        match name:
            case "revoke" | "revoke other" | "revoke all":
                whose = {"revoke": grant_id, "revoke other": other, "revoke all": None}[name]
                return partial(world.revoke, whose)
            case "issue anew":
                return partial(world.issue, grant_id, model.highest.get(grant_id, 1), None)
            case "restart":
                return world.restart
            case "later" | "much later" | "earlier":
                by = {"later": HOUR, "much later": 10 * YEAR, "earlier": -DAY}[name]
                return partial(_at_once, world.step, by)
            case _:
                return partial(_published, world, *_changed(world, name, grant_id))


def _whole_second(now: int) -> int:
    """Papers give times to the second, and none before 1970."""
    return max(now // 1000 * 1000, HOUR)


async def _at_once(work: Callable[[int], None], by: int) -> None:
    work(by)


async def _published(world: World, paper: Paper, data: bytes) -> None:
    world.put(paper, data)
    await world.reload()


def _changed(world: World, how: str, grant_id: str) -> tuple[Paper, bytes]:
    """The next policy: the one in force with one thing changed for this grant."""
    model = world.model
    now = _whole_second(model.latest)
    force = model.force
    papers = dict(force.grants) if force is not None else {}
    scopes, places = (
        (force.scopes, force.hosts) if force is not None else (frozenset(SCOPES), frozenset(HOSTS))
    )
    before = papers.get(grant_id) or GrantPaper(
        frozenset(SCOPES), frozenset(), model.highest.get(grant_id, 1), True, now + DAY
    )
    what, where, generation, on, ends = (
        before.scopes, before.hosts, before.generation, before.enabled, before.expires,
    )  # fmt: skip
    enabled, lasts = force is None or force.enabled, DAY
    if force is not None and force.expires > now + 1000:
        lasts = force.expires - now
    match how:
        case "disable agents":
            enabled = False
        case "narrow":
            what = frozenset()
        case "narrow hosts":
            where = frozenset({"elsewhere.test"})
        case "rotate":
            generation += 1
        case "disable":
            on = False
        case "expire soon":
            ends = now + 1000
        case "widen":
            what, where, on, ends = frozenset(SCOPES), frozenset(), True, now + 30 * YEAR
            scopes, places, enabled, lasts = what, frozenset(HOSTS), True, 30 * YEAR
    papers[grant_id] = GrantPaper(what, where, generation, on, ends)
    if how == "drop":
        del papers[grant_id]
    return write_paper(
        version=model.version + 1,
        issued=now,
        expires=now + lasts,
        grants=papers,
        scopes=scopes,
        hosts=places,
        enabled=enabled,
        signed_by=model.signer,
    )
