"""Cancelled at any await of an action on the real store: what the call was told is what is in the file."""

from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden.actions import Appearance
from tabwarden.errors import ActionError
from tabwarden_adapters.application import application_store

from tests.application.support import opened

ADD = {
    "action": "add",
    "expectedRevision": 0,
    "policyVersion": 1,
    "bookmark": {"title": "A", "url": "https://a.test/"},
}
CHANGES: dict[str, dict[str, Any]] = {
    "bookmarks:mutate": ADD,
    "settings:update": {"appearance": {"mode": "dark"}},
}
TURNS = 40  # of the loop: more than any of the actions has awaits


@pytest.mark.parametrize("name", CHANGES)
async def test_cancelled_at_every_turn(tmp_path: Path, name: str):
    endings: list[list[str]] = []
    for turns in range(TURNS):
        async with application_store(tmp_path / str(turns) / "a.db") as store:
            application = opened(store)
            scope = trio.CancelScope()

            async def change() -> None:
                with scope:  # noqa: B023
                    await application.call(name, **CHANGES[name])  # noqa: B023

            async with trio.open_nursery() as nursery:
                nursery.start_soon(change)
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
            changed = (await store.bookshelf()).revision == 1 or await store.appearance() != Appearance()
            assert application.last.effects == (["begin", "done"] if changed else [])
            endings.append(application.last.effects)
    assert [] in endings


@pytest.mark.parametrize("name", CHANGES)
async def test_cancelled_at_the_last_look(tmp_path: Path, name: str):
    """From here on it is done, whatever comes; one that is over before is not begun."""
    async with application_store(tmp_path / "private" / "a.db") as store:
        application = opened(store)
        policy = application.policy
        with trio.CancelScope() as scope:
            asked = 0

            def last_look(caller: object) -> Any:
                nonlocal asked
                asked += 1
                if asked == 2:  # the first look is before anything
                    scope.cancel()
                return policy

            judge = application.controls[name].__self__._judge  # type: ignore[attr-defined]
            judge._policy = last_look
            await application.call(name, **CHANGES[name])
        assert application.last.effects == ["begin", "done"]
        assert (await store.bookshelf()).revision == 1 or (await store.appearance()).mode == "dark"


@pytest.mark.parametrize("name", ["settings:get", "bookmarks:list"])
async def test_reading_is_cancelled_and_leaves_the_store_as_it_was(tmp_path: Path, name: str):
    async with application_store(tmp_path / "private" / "a.db") as store:
        application = opened(store)
        for turns in range(10):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(application.call, name)
                    for _ in range(turns):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()
        assert await application.call(name)
        assert await application.call("bookmarks:mutate", **ADD) == {"completed": True}


async def test_many_agents_at_once_never_lose_a_change(tmp_path: Path):
    """Each change is acknowledged to exactly one of those that asked for its revision."""
    won: list[int] = []

    async def agent(store: Any, number: int) -> None:
        application = opened(store)
        for _ in range(30):
            revision = (await store.bookshelf()).revision
            try:
                await application.add(f"{number}", "https://a.test/", revision=revision)
            except ActionError as error:
                assert error.code in ("conflict", "browser-management-busy")  # noqa: PT017
                assert error.committed is False  # noqa: PT017
            else:
                won.append(revision)

    async with application_store(tmp_path / "private" / "a.db") as store:
        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(agent, store, number)
        shelf = await store.bookshelf()
        assert sorted(won) == list(range(shelf.revision))
        assert len(shelf.bookmarks) == shelf.revision
