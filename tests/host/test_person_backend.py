"""The host's answers: modes, a person, and a browser's tabs."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from tabwarden_adapters.host import (
    OPAQUE,
    AllTargets,
    Answer,
    ApprovalKind,
    ApprovalRequest,
    HandoffRequest,
    HostPolicy,
    HostProblem,
    HostTabs,
    OpenTabRequest,
    PersonBackend,
    PrivateTargets,
    Questions,
    Reply,
    SiteMode,
    SiteModes,
)

from tests.host.support import private_home, serving, until

SHOP, DOCS, OTHER = "https://shop.test", "https://docs.test", "https://other.test"


class FakeTabs:
    """Implements `HostTabs`; knows nothing and opens nothing until it is told otherwise."""

    def __init__(self) -> None:
        self.known: Collection[str] | None = None
        self.opens = False
        self.opened: list[tuple[str, bool]] = []

    async def excluded(self) -> Collection[str]:
        if self.known is None:
            raise RuntimeError("not known")
        return self.known

    async def open(self, url: str, *, background: bool) -> bool:
        self.opened.append((url, background))
        return self.opens


class Desk:
    def __init__(self) -> None:
        self.questions = Questions()
        self.tabs = FakeTabs()
        self.permitted = {SHOP, DOCS}
        sites = SiteModes(allow=["docs.test"], permitted=lambda origin: origin in self.permitted)
        tabs: HostTabs = self.tabs
        self.backend = PersonBackend(sites, self.questions, tabs, sensitive_hosts={"b.test", "a.test"})

    @asynccontextmanager
    async def replying(self, reply: Reply | None) -> AsyncIterator[None]:
        """A person who says `reply` to all that is asked; None: nobody may be asked at all."""

        async def person() -> None:
            while True:
                for question in self.questions.pending():
                    assert reply is not None
                    self.questions.answer(question, reply)
                await self.questions.changed(self.questions.revision)

        with self.questions.attending():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(person)
                yield
                nursery.cancel_scope.cancel()

    async def approve(self, origin: str, kind: ApprovalKind = ApprovalKind.SITE) -> Answer:
        return await self.backend.approve(ApprovalRequest(kind, origin, "words"))


@pytest.mark.parametrize(
    ("reply", "answer"),
    [(Reply.YES, Answer.YES), (Reply.NO, Answer.NO), (Reply.CONFIRM, Answer.CONFIRM)],
)
@pytest.mark.parametrize("kind", list(ApprovalKind))
async def test_what_the_person_says_is_the_answer(reply: Reply, answer: Answer, kind: ApprovalKind) -> None:
    desk = Desk()
    async with desk.replying(reply):
        assert await desk.approve(SHOP, kind) is answer
        assert await desk.backend.site_mode(SHOP) is SiteMode.ASK  # the engine remembers, not we


async def test_a_site_that_is_off_is_never_asked_about() -> None:
    desk = Desk()
    async with desk.replying(None):
        for kind in ApprovalKind:
            assert await desk.approve(OTHER, kind) is Answer.NO
            assert await desk.approve(OPAQUE, kind) is Answer.NO
    assert desk.questions.counts.asked == 0


async def test_a_yes_does_not_outlive_the_policy_that_it_was_asked_under() -> None:
    desk = Desk()
    answers = []
    with desk.questions.attending():
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                answers.append(await desk.approve(SHOP))

            nursery.start_soon(ask)
            await until(desk.questions.pending)
            desk.permitted.clear()
            desk.questions.answer(desk.questions.pending()[0], Reply.YES)
    assert answers == [Answer.NO]
    desk.permitted.add(SHOP)
    assert await desk.backend.open_tab(OpenTabRequest(f"{SHOP}/")) is False


@pytest.mark.parametrize(("reply", "done"), [(Reply.DONE, True), (Reply.NO, False)])
async def test_a_handoff_is_asked_for_any_site(reply: Reply, done: bool) -> None:
    desk = Desk()
    async with desk.replying(reply):
        assert await desk.backend.handoff(HandoffRequest("log in", OTHER)) is done


async def test_tabs_are_opened_where_it_is_allowed_or_was_agreed_to() -> None:
    desk = Desk()
    desk.tabs.opens = True

    async def opens(origin: str) -> bool:
        return await desk.backend.open_tab(OpenTabRequest(f"{origin}/x", background=True))

    assert [await opens(origin) for origin in (DOCS, SHOP, OTHER)] == [True, False, False]
    async with desk.replying(Reply.YES):
        await desk.approve(SHOP, ApprovalKind.RISK)
        assert await opens(SHOP) is False  # that was about something else
        await desk.approve(SHOP, ApprovalKind.NAVIGATE)
    assert await opens(SHOP) is True
    async with desk.replying(Reply.NO):
        await desk.approve(SHOP, ApprovalKind.SITE)
    assert await opens(SHOP) is False
    assert desk.tabs.opened == [(f"{DOCS}/x", True), (f"{SHOP}/x", True)]
    desk.tabs.opens = False
    assert await opens(DOCS) is False


async def test_targets_that_are_not_known_exclude_all_of_them(tmp_path: Path) -> None:
    desk = Desk()
    policy = HostPolicy(private_home(tmp_path), answer_s=10)
    async with serving(tmp_path, desk.backend):
        assert isinstance(await policy.excluded_targets(), AllTargets)
        assert policy.problem is HostProblem.STATUS
        desk.tabs.known = ["A"]
        excluded = await policy.excluded_targets()
        assert "A" in excluded
        assert "B" not in excluded
        assert await policy.allowed_sensitive_hosts() == {"a.test", "b.test"}
        assert await policy.site_mode(DOCS) is SiteMode.ALLOWED


def test_only_pages_of_the_default_context_are_public() -> None:
    private = PrivateTargets("ordinary")
    for target_id, kind, context in (
        ("public", "page", "ordinary"),
        ("worker", "service_worker", "ordinary"),
        ("incognito", "page", "other"),
        ("incognito-worker", "shared_worker", "other"),
        ("unknown", "page", None),
        ("address-bar", "browser_ui", "ordinary"),
        ("new-kind", "something", "ordinary"),
    ):
        private.seen(target_id, kind, context)
    hidden = ["address-bar", "incognito", "incognito-worker", "new-kind", "unknown"]
    assert private.ids() == hidden
    private.seen("incognito", "page", "ordinary")  # once private, always so
    assert private.ids() == hidden
    for target_id in (*hidden, "never-seen"):
        private.gone(target_id)
    assert private.ids() == []
