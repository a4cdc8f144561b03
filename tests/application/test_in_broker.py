"""From the settings of `serve` to an agent: a real broker, a real store, a static policy; no browser."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from tabwarden import AgentClient, start_agent_control
from tabwarden.errors import CallFailed, Code, ConfigurationError
from tabwarden_adapters.application import ApplicationPolicy, Control
from tabwarden_adapters.browser.isolated import _Isolated
from tabwarden_adapters.browser.shared import _Shared
from tabwarden_adapters.cli.application import ApplicationSettings, ManagedBookmark, application_controls
from tabwarden_adapters.cli.settings import load_settings
from tabwarden_adapters.policy import StaticPolicy

from tests.application.support import Call
from tests.browser.host_contract.fake_host import open_host
from tests.cli.running import tabwarden
from tests.support.fakes import MemoryAudit, Reasons

SCOPES = ("settings:get", "settings:update", "bookmarks:list", "bookmarks:mutate")
WIKI = ManagedBookmark(id="wiki", title="Wiki", url="https://wiki.test/")


def application(tmp_path: Path, **changes: Any) -> ApplicationSettings:
    fields: dict[str, Any] = {"visible": ("appearance", "bookmarks"), "bookmarks": (WIKI,)}
    return ApplicationSettings(store=str(tmp_path / "private" / "a.db"), **{**fields, **changes})


def policy(*hosts: str) -> StaticPolicy:
    return StaticPolicy({"scopes": SCOPES, "allowed_hosts": hosts or ("wiki.test", "a.test")})


def controlled(
    settings: ApplicationSettings, static: StaticPolicy, *, wanted: bool = True
) -> AbstractAsyncContextManager[Mapping[str, Control]]:
    current = settings.policy(static.policy_version)
    return application_controls(
        settings,
        wanted=wanted,
        policy=lambda caller: current,
        destination_allowed=static.destination_allowed,
    )


@asynccontextmanager
async def served(
    nursery: trio.Nursery,
    settings: ApplicationSettings,
    static: StaticPolicy,
    audit: MemoryAudit | None = None,
) -> AsyncIterator[AgentClient]:
    """An agent of a broker that has the four actions, while the block runs."""
    reasons = Reasons()
    async with controlled(settings, static) as controls:
        control = await start_agent_control(
            nursery,
            authorize=static,
            actions=open_host().adapters(app_controls=controls, policy_version=lambda: static.policy_version),
            audit=audit or MemoryAudit(),
            on_error=reasons,
        )
        async with AgentClient(control.descriptor) as client:
            yield client
        await control.close()
    assert reasons.told == []


def add(revision: int, url: str = "https://a.test/", **changes: Any) -> dict[str, Any]:
    arguments = {"action": "add", "expectedRevision": revision, "policyVersion": 1}
    return {**arguments, "bookmark": {"title": "A", "url": url}, **changes}


async def refused(client: AgentClient, action: str, arguments: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(CallFailed) as caught:
        await client.call(action, arguments)
    return caught.value.code, caught.value.effect


async def test_settings_and_bookmarks_over_two_runs(tmp_path, nursery):
    async with served(nursery, application(tmp_path), policy()) as client:
        changed = await client.call("settings:update", {"appearance": {"mode": "dark"}})
        assert changed["appearance"]["mode"] == "dark"
        assert await client.call("bookmarks:mutate", add(0)) == {"completed": True}
        assert await refused(client, "bookmarks:mutate", add(0)) == (Code.CONFLICT, "not_started")
    async with served(nursery, application(tmp_path), policy()) as client:
        assert (await client.call("settings:get"))["appearance"]["mode"] == "dark"
        listed = await client.call("bookmarks:list")
        assert [one["url"] for one in listed["personal"]] == ["https://a.test/"]
        assert [one["id"] for one in listed["managed"]] == ["wiki"]
        remove = {"action": "remove", "id": "wiki", "expectedRevision": 1, "policyVersion": 1}
        assert await refused(client, "bookmarks:mutate", remove) == (Code.TARGET_DENIED, "not_started")


async def test_destinations_without_a_right(tmp_path, nursery):
    audit = MemoryAudit()
    async with served(nursery, application(tmp_path), policy("a.test"), audit) as client:
        assert await refused(client, "bookmarks:list", {}) == (Code.DESTINATION_DENIED, "not_started")
        foreign = add(0, "https://b.test/")
        assert await refused(client, "bookmarks:mutate", foreign) == (Code.DESTINATION_DENIED, "not_started")
        assert await client.call("bookmarks:mutate", add(0)) == {"completed": True}
    rules = [event.rule for event in audit.terminal()]
    assert rules == ["application.destinations", "hosts.not-listed", "static"]


async def test_nothing_is_visible_that_was_not_said(tmp_path, nursery):
    async with served(nursery, application(tmp_path, visible=()), policy()) as client:
        shown = await client.call("settings:get")
        assert (shown["visible"], shown["appearance"]) == ([], {})
        update = {"appearance": {"mode": "dark"}}
        assert await refused(client, "settings:update", update) == (Code.POLICY_DENIED, "not_started")
        assert await refused(client, "bookmarks:list", {}) == (Code.POLICY_DENIED, "not_started")


async def test_without_its_scopes_there_is_no_store(tmp_path):
    async with controlled(application(tmp_path), policy(), wanted=False) as controls:
        assert controls == {}
    assert not (tmp_path / "private").exists()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"visible": ("appearance.theme",)}, "visible"),
        ({"locked": ("A",)}, "locked"),
        ({"bookmarks": (ManagedBookmark(id="w", title="W", url="wiki.test"),)}, "company bookmark 'w': url"),
        ({"bookmarks": (WIKI, WIKI)}, "managed[1].id"),
    ],
)
async def test_wrong_settings(tmp_path, changes, named):
    with pytest.raises(ConfigurationError) as caught:
        async with controlled(application(tmp_path, **changes), policy()):
            pass
    assert named in str(caught.value)


def test_addresses_may_be_written_as_people_write_them(tmp_path):
    bookmark = ManagedBookmark(id="w", title="W", url="HTTPS://Wiki.test")
    assert application(tmp_path, bookmarks=(bookmark,)).policy(1).managed[0].url == "https://wiki.test/"


def test_where_the_store_is(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ApplicationSettings().store_path == tmp_path / ".local" / "state" / "tabwarden" / "application.db"
    settings = tmp_path / "folder" / "tabwarden.toml"
    settings.parent.mkdir()
    settings.write_text('[application]\nstore = "private/a.db"\n')
    assert load_settings(settings).application.store_path == settings.parent / "private" / "a.db"


def test_one_visible_setting_hides_the_others(tmp_path):
    made = application(tmp_path, visible=("appearance.mode",)).policy(3)
    assert isinstance(made, ApplicationPolicy)
    assert made.shows("appearance", "mode")
    assert not made.shows("appearance", "accent")
    assert not made.shows("bookmarks")


@pytest.mark.parametrize("kind", [_Isolated, _Shared])
async def test_both_kinds_of_browser_pass_them_on_and_make_no_context_for_them(tmp_path, kind):
    async with controlled(application(tmp_path), policy()) as controls:
        base: Any = SimpleNamespace(ready=True, policy_version=1, context_current=lambda token: False)
        nowhere: Any = None
        allowed = policy().destination_allowed
        if kind is _Isolated:
            browser: Any = _Isolated(nowhere, nowhere, base, allowed, controls)
        else:
            browser = _Shared(nowhere, base, allowed, controls)
        listed = await browser.act("bookmarks:list", None, Call("bookmarks:list"))
        assert listed.revision == 0
        assert set(SCOPES) <= set(browser.plain)


def serve(home: Path, settings: str) -> dict[str, Any]:
    """How `tabwarden serve` fails with these settings: before it starts a browser."""
    file = home / "tabwarden.toml"
    file.write_text(settings)
    done = tabwarden(home, "serve", "--headless", "--config", str(file))
    assert done.status == 1
    return done.failure


def test_serve_says_what_is_wrong_with_the_store(tmp_path):
    (tmp_path / "private").mkdir(mode=0o700)
    store = tmp_path / "private" / "a.db"
    store.write_bytes(b"not a database, but longer than a header would be" * 20)
    store.chmod(0o600)
    settings = 'scopes = ["bookmarks:list"]\n[application]\nvisible = ["bookmarks"]\nstore = "private/a.db"\n'
    failure = serve(tmp_path, settings)
    assert failure["code"] == "configuration"
    assert f"{store} is damaged" in failure["message"]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("visible = 1", "application.visible"),
        ('hidden = ["appearance"]', "hidden"),
        ('locked = ["appearance.theme"]', "locked: there is no 'appearance.theme'"),
        ('bookmarks = [{id = "a", title = "A", url = "ftp://a.test"}]', "company bookmark 'a': url"),
    ],
)
def test_serve_names_the_setting_that_is_wrong(tmp_path, line, named):
    assert named in serve(tmp_path, f"[application]\n{line}\n")["message"]
