"""Compare-and-set against a model, on a real file that is opened anew for each step.

Two agents look and change in any order, the policy gets other versions and locks, a right comes and goes.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.application import application_store

from tests.application.support import COMPANY, Application, opened, visible

HOSTS = ("a.test", "b.test")
AGENTS = st.sampled_from(["one", "two"])
TITLES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), max_size=8)


class Shelves(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.application = opened()
        self.model: dict[str, dict[str, str]] = {}  # id -> what it says, in order
        self.revision = 0
        self.version = 1
        self.locked = False
        self.seen: dict[str, tuple[int, int, list[str]]] = {"one": (0, 1, []), "two": (0, 1, [])}

    def teardown(self) -> None:
        self.folder.cleanup()

    def run(self, work: Callable[[Application], Any]) -> Any:
        """`work` with the controls on the file, opened for this step only."""

        async def main() -> Any:
            async with application_store(Path(self.folder.name) / "private" / "a.db") as store:
                application = opened(store)
                application.policy = visible(
                    self.version,
                    managed=(COMPANY,),
                    locked=frozenset({"bookmarks"}) if self.locked else frozenset(),
                )
                application.hosts = self.application.hosts
                return await work(application)

        return trio.run(main)

    def denied(self, *urls: str) -> bool:
        return any(url.split("/")[2] not in self.application.hosts for url in urls)

    @rule(agent=AGENTS)
    def look(self, agent: str) -> None:
        urls = [one["url"] for one in self.model.values()]
        if self.denied(COMPANY.url, *urls):
            ending = self.run(lambda application: application.fails("bookmarks:list"))
            assert ending == (Code.DESTINATION_DENIED, False)
            return
        listed = self.run(lambda application: application.call("bookmarks:list"))
        assert listed["revision"] == self.revision
        assert listed["policyVersion"] == self.version
        assert listed["canMutate"] is not self.locked
        shown = [{"folder": "", **one} for one in listed["personal"]]
        expected = [{"id": name, **one} for name, one in self.model.items()]
        if expected and expected[-1]["id"] == "new":
            expected[-1]["id"] = shown[-1]["id"]
        assert shown == expected
        self.model = {one["id"]: {k: one[k] for k in ("title", "url", "folder")} for one in shown}
        self.seen[agent] = (self.revision, self.version, list(self.model))

    @rule(
        agent=AGENTS,
        action=st.sampled_from(["add", "add", "update", "remove"]),
        which=st.integers(0, 5),
        title=TITLES,
        host=st.sampled_from(HOSTS),
        company=st.booleans(),
        fresh=st.sampled_from([True, True, True, False]),
    )
    def change(
        self, agent: str, action: str, which: int, title: str, host: str, company: bool, fresh: bool
    ) -> None:
        if fresh:  # the agent has just looked
            self.seen[agent] = (self.revision, self.version, list(self.model))
        revision, version, ids = self.seen[agent]
        arguments: dict[str, Any] = {
            "action": action,
            "expectedRevision": revision,
            "policyVersion": version,
        }
        draft = {"title": title, "url": f"https://{host}/{which}", "folder": title[:3]}
        if action != "remove":
            arguments["bookmark"] = draft
        if action != "add":
            arguments["id"] = COMPANY.id if company and which == 0 else ids[which % len(ids)] if ids else "x"
        expected = self.expected(arguments, draft["url"])
        if expected is None:
            assert self.run(lambda one: one.call("bookmarks:mutate", **arguments)) == {"completed": True}
            self.revision += 1
            self.apply(arguments, draft)
        else:
            assert self.run(lambda one: one.fails("bookmarks:mutate", **arguments)) == (expected, False)

    def expected(self, arguments: dict[str, Any], url: str) -> Code | None:
        if self.locked:
            return Code.POLICY_DENIED
        if arguments.get("id") == COMPANY.id:
            return Code.TARGET_DENIED
        if (arguments["expectedRevision"], arguments["policyVersion"]) != (self.revision, self.version):
            return Code.CONFLICT
        there = self.model.get(arguments.get("id", ""))
        urls = ([url] if "bookmark" in arguments else []) + ([there["url"]] if there else [])
        if self.denied(*urls):
            return Code.DESTINATION_DENIED
        return None if there or arguments["action"] == "add" else Code.CONFLICT

    def apply(self, arguments: dict[str, Any], draft: dict[str, str]) -> None:
        if arguments["action"] == "remove":
            del self.model[arguments["id"]]
        elif arguments["action"] == "update":
            self.model[arguments["id"]] = draft
        else:
            self.model["new"] = draft
            self.learn()

    def learn(self) -> None:
        """The id of what was added, which only the store knows."""

        async def last(application: Application) -> str:
            name: str = (await application.store.bookshelf()).bookmarks[-1].id
            return name

        self.model[self.run(last)] = self.model.pop("new")

    @rule(
        locked=st.sampled_from([False, False, True]),
        lost=st.sampled_from([None, None, None, *HOSTS, "wiki.test"]),
    )
    def publish(self, locked: bool, lost: str | None) -> None:
        """A new version, in which a right may be gone."""
        self.version += 1
        self.locked = locked
        self.application.hosts = {*HOSTS, "wiki.test"} - {lost}

    @rule()
    def commit_is_prevented(self) -> None:
        """A change whose last look fails leaves no trace."""

        async def refused(application: Application) -> None:
            application.inspector.instead = ActionError(Code.CONTENT_DENIED)
            arguments = {"action": "add", "expectedRevision": self.revision, "policyVersion": self.version}
            await application.fails(
                "bookmarks:mutate", **arguments, bookmark={"title": "", "url": "https://a.test/"}
            )

        self.run(refused)

    @invariant()
    def the_file_is_the_model(self) -> None:
        async def read(application: Application) -> Any:
            return await application.store.bookshelf()

        shelf = self.run(read)
        assert shelf.revision == self.revision
        assert [one.id for one in shelf.bookmarks] == list(self.model)
        assert [(one.title, one.url, one.folder) for one in shelf.bookmarks] == [
            (one["title"], one["url"], one["folder"]) for one in self.model.values()
        ]


TestShelves = Shelves.TestCase
TestShelves.settings = settings(
    max_examples=12,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
