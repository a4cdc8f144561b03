"""`settings:get` and `settings:update`."""

import pytest
from tabwarden.actions import Appearance, UpdateSettings
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.application import ApplicationPolicy, create_application_controls

from tests.application.support import Application, Call, MemoryStore, opened, visible

DARK = {"appearance": {"mode": "dark"}}


async def test_what_is_shown_and_changed():
    application = opened()
    assert await application.call("settings:get") == {
        "visible": ["appearance", "bookmarks"],
        "hiddenSections": [],
        "lockedSections": [],
        "appearance": {"mode": "system", "accent": "blue", "tabMode": "separate"},
    }
    changed = await application.call("settings:update", appearance={"mode": "dark", "tabMode": "compact"})
    assert changed["appearance"] == {"mode": "dark", "accent": "blue", "tabMode": "compact"}
    assert application.last.effects == ["begin", "done"]
    assert (await application.call("settings:get"))["appearance"] == changed["appearance"]


async def test_the_default_policy_shows_and_changes_nothing():
    application = Application()
    shown = await application.call("settings:get")
    assert (shown["visible"], shown["appearance"]) == ([], {})
    assert shown["hiddenSections"] == shown["lockedSections"] == ["appearance", "bookmarks"]
    assert await application.fails("settings:update", **DARK) == (Code.POLICY_DENIED, False)
    assert application.rule == "settings.hidden"


@pytest.mark.parametrize("name", ["appearance", "appearance.mode"])
async def test_hidden_is_neither_told_nor_changed(name):
    application = opened()
    application.policy = visible(hidden=frozenset({name}))
    shown = (await application.call("settings:get"))["appearance"]
    assert "mode" not in shown
    assert ("accent" in shown) == (name == "appearance.mode")
    assert await application.fails("settings:update", **DARK) == (Code.POLICY_DENIED, False)
    assert application.store.settings == Appearance()


@pytest.mark.parametrize("name", ["appearance", "appearance.mode"])
async def test_locked_is_told_and_not_changed(name):
    application = opened()
    application.policy = visible(locked=frozenset({name}))
    assert (await application.call("settings:get"))["appearance"]["mode"] == "system"
    assert await application.fails("settings:update", **DARK) == (Code.POLICY_DENIED, False)
    assert application.rule == "settings.locked"


async def test_one_locked_setting_refuses_the_whole_change():
    application = opened()
    application.policy = visible(locked=frozenset({"appearance.accent"}))
    refused = await application.fails("settings:update", appearance={"mode": "dark", "accent": "teal"})
    assert refused == (Code.POLICY_DENIED, False)
    assert application.store.settings == Appearance()
    assert await application.call("settings:update", **DARK)


@pytest.mark.parametrize(
    "appearance",
    [
        {},
        {"mode": "sepia"},
        {"accent": "red"},
        {"tabMode": "none"},
        {"theme": "dark"},
        {"tab_mode": "compact"},
    ],
)
async def test_nothing_but_the_three_settings_and_their_values(appearance):
    application = opened()
    assert await application.fails("settings:update", appearance=appearance) == (
        Code.INVALID_ARGUMENTS,
        False,
    )


async def test_a_policy_that_changes_meanwhile_prevents_the_change():
    application = opened()

    def changes() -> None:
        application.policy = visible(2)

    application.store.meanwhile = changes
    assert await application.fails("settings:update", **DARK) == (Code.STALE, False)
    assert application.store.settings == Appearance()


async def test_a_lock_without_a_new_version_prevents_the_change_too():
    application = opened()

    def locks() -> None:
        application.policy = visible(locked=frozenset({"appearance"}))

    application.store.meanwhile = locks
    assert await application.fails("settings:update", **DARK) == (Code.STALE, False)
    assert application.store.settings == Appearance()


async def test_a_call_that_ends_meanwhile_changes_nothing():
    application = opened()

    def ends() -> None:
        application.last.ended = Code.DEADLINE

    application.store.meanwhile = ends
    assert await application.fails("settings:update", **DARK) == (Code.DEADLINE, False)
    assert application.store.settings == Appearance()


@pytest.mark.parametrize("answer", [None, object(), "visible"])
async def test_a_policy_that_is_none_is_a_failure(answer):
    application = opened()
    application.policy = answer
    with pytest.raises(ActionError) as caught:
        await application.controls["settings:get"](None, application.last, 1)
    assert (caught.value.code, caught.value.rule) == (Code.FAILURE, "application-policy")


async def test_a_busy_store():
    application = opened()
    application.store.instead = ActionError(Code.BUSY)
    assert await application.fails("settings:update", **DARK) == (Code.BUSY, False)


async def test_where_values_come_from():
    """Set by an agent, else the policy's, else built in; a lock holds to the policy's."""
    application = opened()
    application.policy = visible(appearance=Appearance(mode="light", accent="violet"))
    shown = (await application.call("settings:get"))["appearance"]
    assert shown == {"mode": "light", "accent": "violet", "tabMode": "separate"}
    changed = (await application.call("settings:update", **DARK))["appearance"]
    assert changed == {"mode": "dark", "accent": "violet", "tabMode": "separate"}
    application.policy = visible(
        appearance=Appearance(mode="light"), locked=frozenset({"appearance"}), version=2
    )
    shown = (await application.call("settings:get"))["appearance"]
    assert shown == {"mode": "light", "accent": "blue", "tabMode": "separate"}


async def test_a_policy_that_raises_is_a_failure_that_has_done_nothing():
    def broken(caller: object) -> ApplicationPolicy:
        raise RuntimeError("text")

    store = MemoryStore()
    controls = create_application_controls(
        policy=broken, destination_allowed=lambda caller, href: True, inspect=None, settings=store
    )
    call = Call("settings:update")
    with pytest.raises(ActionError) as caught:
        await controls["settings:update"](UpdateSettings(appearance=Appearance(mode="dark")), call, 1)
    assert (caught.value.code, caught.value.rule, caught.value.committed) == (
        Code.FAILURE,
        "application-policy",
        False,
    )
    assert (call.effects, store.settings) == ([], Appearance())
