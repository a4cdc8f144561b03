"""`serve` under a signed policy, and the commands that reach it, as an administrator types them."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.no_browser import without_tabs
from tests.cli.running import LIMIT_S, Finished, here, serving, tabwarden


def moment(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


SCOPES = ["settings:get", "bookmarks:list"]
WIKI = {"id": "wiki", "title": "Wiki", "url": "https://wiki.example.org/"}


class Desk:
    """Whoever decides: keys, and one policy after the other in the same place."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "policy.json"
        self.run("policy", "keygen", "keys")

    def run(self, *arguments: str) -> Finished:
        placed = [
            str(self.home / one) if one in ("keys", "keys/policy-public.json") else one for one in arguments
        ]
        return here(self.home, *placed)

    def publish(
        self, version: int, *grants: dict[str, Any], out: Path | None = None, **changes: Any
    ) -> Finished:
        document = {
            "format": "tabwarden-policy/1",
            "version": version,
            "issued": moment(-1),
            "expires": moment(30),
            "agents": {"enabled": True, "identityMode": "individual", "scopes": SCOPES},
            "destinations": {"allow": ["wiki.example.org"]},
            "bookmarks": [WIKI],
            "grants": [
                {"name": one["id"].title(), "scopes": SCOPES, "generation": 1, **one} for one in grants
            ],
            **changes,
        }
        draft = self.home / "draft.json"
        draft.write_text(json.dumps(document))
        beside = self.home / "next.json"
        beside.unlink(missing_ok=True)
        keys = str(self.home / "keys" / "policy-private.json")
        done = here(self.home, "policy", "sign", str(draft), "--keys", keys, "--out", str(beside))
        assert done.status == 0, done.err
        beside.replace(out or self.file)
        return done


def call(home: Path, connection: str, action: str) -> Any:
    done = tabwarden(home, "call", action, "--connection", connection)
    return done.result if done.status == 0 else done.failure["code"]


def test_grants_from_publication_to_revocation(tmp_path: Path) -> None:
    desk, variables = Desk(tmp_path), without_tabs(tmp_path)
    assert desk.run("policy", "enrol", "keys/policy-public.json").status == 0
    desk.publish(
        1, {"id": "one"}, {"id": "two", "scopes": ["bookmarks:list"]}, {"id": "off", "enabled": False}
    )
    with serving(tmp_path, "--policy", str(desk.file), variables=variables) as (ready, process):
        assert (ready["identity_mode"], ready["connection"], ready["policy_version"]) == (
            "individual",
            None,
            1,
        )
        listed = here(tmp_path, "grants", "list").result
        assert [(one["id"], one["credential"]) for one in listed] == [
            ("one", None),
            ("two", None),
            ("off", None),
        ]

        one = here(tmp_path, "grants", "issue", "one").result
        two = here(tmp_path, "grants", "issue", "two", "--until", "8h").result
        assert Path(one["connection"]).parent == Path(ready["principals"])
        assert call(tmp_path, one["connection"], "settings:get")["visible"] == ["appearance", "bookmarks"]
        assert call(tmp_path, two["connection"], "settings:get") == "policy-denied"
        managed = call(tmp_path, two["connection"], "bookmarks:list")["managed"]
        assert [bookmark["id"] for bookmark in managed] == ["wiki"]

        for grant, said in (("none", "no grant"), ("off", "disabled")):
            refused = here(tmp_path, "grants", "issue", grant)
            assert (refused.status, refused.failure["code"]) == (1, "configuration")
            assert said in refused.failure["message"]

        # A new policy: one loses a scope, two is gone, and what is shown of the settings changes.
        fewer = {"id": "one", "scopes": ["settings:get"]}
        desk.publish(2, fewer, settings={"hiddenSections": ["bookmarks"], "lockedSections": ["appearance"]})
        assert here(tmp_path, "policy", "reload").result["version"] == 2
        assert call(tmp_path, two["connection"], "bookmarks:list") == "descriptor"
        assert not Path(two["connection"]).exists()
        assert call(tmp_path, one["connection"], "bookmarks:list") == "policy-denied"
        shown = call(tmp_path, one["connection"], "settings:get")
        assert (shown["hiddenSections"], shown["lockedSections"]) == (["bookmarks"], ["appearance"])

        # An older one is not taken, however it comes.
        desk.publish(1, {"id": "one"}, {"id": "two"})
        refused = here(tmp_path, "policy", "reload")
        assert (refused.status, refused.result["kind"], refused.result["version"]) == (1, "refused", 2)
        assert here(tmp_path, "grants", "issue", "two").status == 1

        # Issued again: the one before opens nothing, though its file has the same name.
        kept = tmp_path / "kept"
        kept.mkdir(mode=0o700)
        copy = kept / "copy.json"
        copy.touch(mode=0o600)
        copy.write_bytes(Path(one["connection"]).read_bytes())
        again = here(tmp_path, "grants", "issue", "one").result
        assert call(tmp_path, str(copy), "settings:get") == "refused"
        assert call(tmp_path, again["connection"], "settings:get") == shown

        assert here(tmp_path, "grants", "revoke", "one").result == {"id": "one", "revoked": True}
        assert not Path(again["connection"]).exists()
        assert here(tmp_path, "grants", "revoke", "one").result == {"id": "one", "revoked": False}

        # The browser is as it was started: a policy that wants another context allows nothing till then.
        last = here(tmp_path, "grants", "issue", "one").result["connection"]
        agents = {"enabled": True, "scopes": SCOPES, "browserContext": "shared"}
        desk.publish(3, {"id": "one"}, agents=agents)
        assert here(tmp_path, "policy", "reload").result["version"] == 3
        assert call(tmp_path, last, "settings:get") == "policy-denied"

        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0
    assert not Path(ready["admin"]).exists()
    assert [name for name in os.listdir(ready["principals"]) if name.startswith("agent-")] == []
    gone = here(tmp_path, "grants", "list")
    assert (gone.status, gone.failure["code"]) == (1, "configuration")
    assert "start `tabwarden serve`" in gone.failure["message"]


def test_a_start_that_cannot_be_says_what_to_do(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.publish(1, {"id": "one"})

    def refused(*arguments: str) -> str:
        done = tabwarden(tmp_path, "serve", "--headless", "--policy", str(desk.file), *arguments)
        assert (done.status, done.out) == (1, "")
        return str(json.loads(done.err.splitlines()[-1])["error"]["message"])

    assert "enrol" in refused()
    assert desk.run("policy", "enrol", "keys/policy-public.json").status == 0
    assert refused("--scope", "read").startswith("scopes: a signed policy says this for itself")
    config = tmp_path / "tabwarden.toml"
    config.write_text("[application]\nvisible = ['appearance']\n")
    assert refused("--config", str(config)).startswith("application.visible: a signed policy")
    desk.file.write_bytes(b"{}")
    assert "nothing is allowed" in refused()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("grants", "issue", "x" * 65), "1 to 64 characters"),
        (("grants", "issue", "one", "--until", "yesterday"), "--until: 'yesterday'"),
        (("grants", "issue", "one", "--until", "2020-01-01T00:00:00Z"), "a time to come"),
        (("grants", "list", "--admin", "nowhere/admin.sock"), "no broker is administered"),
        (("policy", "reload", "--admin", "nowhere/admin.sock"), "no broker is administered"),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = here(tmp_path, *arguments)
    assert done.status == 1
    assert said in done.failure["message"]


def test_a_broker_without_a_signed_policy_has_no_grants(tmp_path: Path) -> None:
    with serving(tmp_path, "--scope", "settings:get", variables=without_tabs(tmp_path)) as (ready, _):
        assert (ready["identity_mode"], ready["principals"]) == ("legacy", None)
        for arguments in (("grants", "list"), ("grants", "issue", "one"), ("policy", "reload")):
            done = here(tmp_path, *arguments)
            assert (done.status, done.failure["code"]) == (1, "configuration")
            assert "--policy" in done.failure["message"]
