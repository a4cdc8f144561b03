"""The guarded browsers give the gateway to their adapters, as they do other callbacks."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tabwarden import actions
from tabwarden.errors import ActionError, Code, ConfigurationError
from tabwarden_adapters.ai import create_model_gateway
from tabwarden_adapters.browser.isolated import _Isolated
from tabwarden_adapters.browser.shared import _Shared

from tests.ai.support import Operation, open_looker

ASKED = create_model_gateway("https://models.test", "m", inspect=open_looker(), key=None)


def nowhere(caller: object, href: str, /) -> bool:
    return False


class Grant:
    tabs_opened = 0
    ended = False


async def context(caller: object) -> Grant:
    return Grant()


def no_tab(session_id: str | None) -> None:
    raise ActionError(Code.UNKNOWN_SESSION)


def isolated(**given: Any) -> Any:
    host = SimpleNamespace(
        ready=True, policy_version=1, context_current=lambda token: False, get_context=no_tab
    )
    guard = SimpleNamespace(host=lambda *_: host, context=context)
    return _Isolated(guard, None, host, nowhere, {}, **given)  # type: ignore[arg-type]


def shared(**given: Any) -> Any:
    host = SimpleNamespace(policy_version=1, context_current=lambda token: False)
    return _Shared(SimpleNamespace(), host, nowhere, None, **given)  # type: ignore[arg-type]


def asked_by(adapter: Any) -> Any:
    assert isinstance(adapter, partial)
    return adapter.args[0]


async def test_with_a_gateway_there_is_the_action():
    given = {"inspect": open_looker(), "ai": ASKED}
    alone = isolated(**given)
    assert asked_by(alone.plain["ai"]) is ASKED
    assert asked_by(shared(**given).plain["ai"]) is ASKED
    with pytest.raises(ActionError) as caught:  # it is among those of the caller's own context, too
        await alone.act("ai", actions.Ai(prompt="q"), Operation())
    assert caught.value.code is Code.UNKNOWN_SESSION


def test_without_one_there_is_none():
    assert "ai" not in isolated().plain
    assert "ai" not in shared().plain


@pytest.mark.parametrize("make", [isolated, shared])
def test_there_is_none_without_an_inspector(make):
    with pytest.raises(ConfigurationError, match="inspector"):
        make(ai=ASKED)


async def test_asking_about_a_persons_tab_does_not_make_it_the_agents():
    """The guard has nothing to bind with here: it would be found out."""
    one = shared(inspect=open_looker(), ai=ASKED)

    async def answer(arguments: object, context: object) -> str:
        return "answered"

    one.plain = {"ai": answer}
    assert await one.act("ai", actions.Ai(prompt="q"), Operation()) == "answered"
