"""The rules by which a text passes are those of the policy in force when its result is given."""

from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing
from tabwarden.errors import ActionError
from tabwarden_adapters.browser import BodyInspector
from tabwarden_adapters.cli.inspection import PolicyInspector
from tabwarden_adapters.policy import DlpRule

TEXT = "the word is heron"
RULE = DlpRule(id="birds", kind="words", values=("heron",), directions=("from-page",))
MASKING = DlpRule(id="birds", kind="words", values=("heron",), directions=("from-page",), action="mask")


class Turning:
    """Implements `Catalogue`: finds nothing, and calls `turn` at each look."""

    def __init__(self) -> None:
        self.turn: Any = lambda: None

    def places(self, text: bytes, seconds: float) -> list[tuple[int, int]]:
        self.turn()
        return []


async def changing(nursery: trio.Nursery, after: DlpRule) -> tuple[PolicyInspector, trio.Event]:
    """An inspector whose policy changes in the middle of its first look; the event says that it has."""
    document: Any = SimpleNamespace(dlp=())
    signed: Any = SimpleNamespace(document=document, sensitive_read_allowed=lambda caller: False)
    inspector = PolicyInspector(SimpleNamespace(signed=signed, scopes=frozenset({"read"})), 60.0)  # type: ignore[arg-type]
    catalogue, changed = Turning(), trio.Event()
    await inspector.content.load(lambda: catalogue)

    def turn() -> None:
        signed.document = SimpleNamespace(dlp=(after,))
        changed.set()

    catalogue.turn = turn
    return inspector, changed


@pytest.mark.parametrize("how", ["inspect", "mask"])
async def test_a_policy_that_changes_in_mid_look(nursery: trio.Nursery, how: str) -> None:
    inspector, changed = await changing(nursery, RULE if how == "inspect" else MASKING)
    results: list[object] = []

    async def look() -> None:
        try:
            if how == "inspect":
                results.append(await inspector.inspect(TEXT, direction="from-page"))
            else:
                results.append(await inspector.mask(TEXT, direction="from-page"))
        except ActionError as error:
            results.append(error.rule)

    async with trio.open_nursery() as looking:
        looking.start_soon(look)
        await changed.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert results == []  # the new rules are not compiled, and by the old ones nothing passes
        await inspector.follow()
    [result] = results
    if how == "inspect":
        assert result == "dlp.corporate:birds"
    else:
        assert isinstance(result, str)
        assert "heron" not in result


async def test_whether_bodies_are_looked_at_is_said_by_the_policy_in_force(nursery: trio.Nursery) -> None:
    """From the moment that it is in force: its rules are compiled later, and bodies wait for that."""
    rule = DlpRule(id="birds", kind="words", values=("heron",), directions=("to-site",))
    inspector, changed = await changing(nursery, rule)
    assert isinstance(inspector, BodyInspector)
    assert not inspector.looks_at("to-site")
    results: list[object] = []

    async def look() -> None:
        with pytest.raises(ActionError) as refused:
            await inspector.inspect(TEXT, direction="to-site")
        results.append(refused.value.rule)

    async with trio.open_nursery() as looking:
        looking.start_soon(look)
        await changed.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert inspector.looks_at("to-site")
        assert not inspector.looks_at("from-page")
        assert results == []
        await inspector.follow()
    assert results == ["dlp.corporate:birds"]


async def test_without_rules_of_a_policy_it_is_the_built_in_ones(nursery: trio.Nursery) -> None:
    inspector = PolicyInspector(SimpleNamespace(signed=None, scopes=frozenset()), 60.0)  # type: ignore[arg-type]
    await inspector.content.load(Turning)
    assert await inspector.inspect(TEXT, direction="from-page") is None
    assert not inspector.looks_at("to-site")
    with pytest.raises(ActionError):
        await inspector.inspect("4111 1111 1111 1111", direction="to-model")
