"""A call, a policy, an inspector and stores in memory. All of them deny until told otherwise."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import trio
from msgspec import UNSET
from tabwarden.actions import Appearance, parse_arguments
from tabwarden.authority.projection import project
from tabwarden.errors import ActionError, Code
from tabwarden.model import Caller
from tabwarden_adapters.application import (
    ApplicationPolicy,
    BeforeCommit,
    BookmarkChange,
    Bookshelf,
    StoredBookmark,
    create_application_controls,
)

CALLER = Caller("agent-1", 1)
OPEN = frozenset({"appearance", "bookmarks"})
COMPANY = StoredBookmark("company-1", "Wiki", "https://wiki.test/", "Work")
SESSION = "00000000-0000-4000-8000-000000000001"


def visible(version: int = 1, **changes: Any) -> ApplicationPolicy:
    """A policy that shows both sections and locks none."""
    fields: dict[str, Any] = {"visible": OPEN, "hidden": frozenset(), "locked": frozenset()}
    return ApplicationPolicy(version=version, **{**fields, **changes})


class Trace:
    """Implements `RequestTrace`."""

    trace_id, span_id = "0" * 32, "0" * 16

    def adopt(self, traceparent: str) -> None: ...

    def phase(self, phase: object) -> AbstractContextManager[None]:
        return nullcontext()

    def child(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()

    def annotate(self, **attributes: object) -> None: ...

    def end(self, outcome: object, code: str | None = None) -> None: ...


class Call:
    """Implements `CallContext`. `ended`, once set, is what `check` raises."""

    role = "agent"
    scopes: frozenset[str] = frozenset()
    caller = CALLER

    def __init__(self, action: str) -> None:
        self.action = action
        self.trace = Trace()
        self.effects: list[str] = []
        self.ended: Code | None = None

    def effects_begin(self) -> None:
        self.effects.append("begin")

    def effects_done(self) -> None:
        self.effects.append("done")

    def check(self) -> None:
        if self.ended is not None:
            raise ActionError(self.ended)

    def effect(self, error: ActionError | None = None) -> bool | None:
        """What the broker makes of it: True committed, False not started, None unknown."""
        if "done" in self.effects:
            return True
        return None if "begin" in self.effects else False if error is None else error.committed


class MemoryInspector:
    """An `Inspector` that finds `forbidden` texts. `instead` is answered, or raised, whatever comes."""

    def __init__(self, *forbidden: str) -> None:
        self.forbidden = forbidden
        self.seen: list[tuple[str, str]] = []
        self.instead: Any = None
        self.meanwhile: Callable[[], object] = lambda: None

    async def inspect(self, text: str, *, direction: str, caller: Any = None) -> str | None:
        self.seen.append((direction, text))
        await trio.lowlevel.checkpoint()
        self.meanwhile()
        if isinstance(self.instead, BaseException):
            raise self.instead
        if any(one in text for one in self.forbidden):
            raise ActionError(Code.CONTENT_DENIED)
        answer: str | None = self.instead
        return answer


class MemoryStore:
    """A host's own `SettingsStore` and `BookmarkStore`, as small as they get."""

    def __init__(self) -> None:
        self.settings = Appearance()
        self.shelf = Bookshelf(0, ())
        self.meanwhile: Callable[[], object] = lambda: None
        self.instead: BaseException | None = None

    async def appearance(self) -> Appearance:
        await trio.lowlevel.checkpoint()
        return self.settings

    async def change_appearance(self, change: Appearance, before_commit: BeforeCommit, /) -> Appearance:
        await self._wait()
        before_commit()
        given = {name: getattr(change, name) for name in change.__struct_fields__}
        changes = {name: value for name, value in given.items() if value is not UNSET}
        self.settings = msgspec.structs.replace(self.settings, **changes)
        return self.settings

    async def bookshelf(self) -> Bookshelf:
        await trio.lowlevel.checkpoint()
        return self.shelf

    async def change_bookmarks(
        self, change: BookmarkChange, expected_revision: int, before_commit: BeforeCommit, /
    ) -> int:
        await self._wait()
        if self.shelf.revision != expected_revision:
            raise ActionError(Code.CONFLICT)
        after = change.applied_to(self.shelf)
        before_commit()
        self.shelf = after
        return after.revision

    async def _wait(self) -> None:
        await trio.lowlevel.checkpoint()
        self.meanwhile()
        if self.instead is not None:
            raise self.instead


class MemoryGroups:
    """Implements `TabGroups`."""

    def __init__(self, *addresses: str) -> None:
        self.all = list(addresses)
        self.put_into: list[tuple[str, str]] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def addresses(self, session_id: str, group: str, /) -> Sequence[str]:
        return self.all

    async def put(self, session_id: str, group: str, before_commit: BeforeCommit, /) -> None:
        await trio.lowlevel.checkpoint()
        self.meanwhile()
        before_commit()
        self.put_into.append((session_id, group))


class Application:
    """The controls with everything around them, called as the browser adapters call them."""

    def __init__(self, store: Any = None, groups: MemoryGroups | None = None) -> None:
        self.store = MemoryStore() if store is None else store
        self.policy: Any = ApplicationPolicy(version=1)
        self.hosts: set[str] = set()
        self.verdict: Any = True
        self.judged: list[str] = []
        self.inspector = MemoryInspector()
        self.controls = create_application_controls(
            policy=lambda caller: self.policy,
            destination_allowed=self.allowed,
            inspect=self.inspector,
            settings=self.store,
            bookmarks=self.store,
            groups=groups,
        )
        self.last = Call("")

    def allowed(self, caller: Caller, href: str, /) -> Any:
        assert caller == CALLER
        self.judged.append(href)
        if isinstance(self.verdict, BaseException):
            raise self.verdict
        return href.split("/")[2] in self.hosts and self.verdict

    async def call(self, name: str, /, **arguments: Any) -> Any:
        spec, parsed = parse_arguments(name, arguments)
        self.last = Call(name)
        return project(spec, await self.controls[name](parsed, self.last, self.policy.version))

    async def fails(self, name: str, /, **arguments: Any) -> tuple[Code, bool | None]:
        """The code, and what the broker would say of effects."""
        try:
            await self.call(name, **arguments)
        except ActionError as error:
            self.rule = error.rule
            return error.code, self.last.effect(error)
        raise AssertionError(f"{name} succeeded")

    async def add(self, title: str, url: str, folder: str = "", revision: int | None = None) -> Any:
        if revision is None:
            revision = (await self.store.bookshelf()).revision
        return await self.call(
            "bookmarks:mutate",
            action="add",
            expectedRevision=revision,
            policyVersion=self.policy.version,
            bookmark={"title": title, "url": url, "folder": folder},
        )


def opened(store: Any = None, **more: Any) -> Application:
    """One that shows and allows what these tests use."""
    application = Application(store, **more)
    application.policy = visible(managed=(COMPANY,))
    application.hosts = {"wiki.test", "a.test", "b.test"}
    return application


def bookmark(number: int = 1, **changes: Any) -> StoredBookmark:
    fields = {"id": f"id-{number}", "title": f"Title {number}", "url": f"https://a.test/{number}"}
    return StoredBookmark(**{**fields, **changes})


def files(folder: Path) -> dict[str, int]:
    return {one.name: one.stat().st_mode & 0o777 for one in folder.iterdir()}
