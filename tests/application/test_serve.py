"""The four actions through the real command, broker and store. The browser is a program that answers every
command and has no tabs: what concerns no tab must work on it all the same."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.cli.no_browser import without_tabs
from tests.cli.running import LIMIT_S, serving, tabwarden

SETTINGS = """
timeout_s = 120.0
scopes = ["settings:get", "settings:update", "bookmarks:list", "bookmarks:mutate"]
allowed_hosts = ["example.org", "wiki.example.org"]
browser_context = "{context}"

[application]
visible = ["appearance", "bookmarks"]
locked = ["appearance.accent"]
store = "private/application.db"

[[application.bookmarks]]
id = "wiki"
title = "Wiki"
url = "https://wiki.example.org/"
"""


def call(home: Path, name: str, /, **arguments: Any) -> Any:
    request = json.dumps({"action": name, "args": arguments})
    done = tabwarden(home, "call", "--request", "-", text=request)
    return done.result if done.status == 0 else done.failure["code"]


DRAFT = {"title": "Example", "url": "https://example.org/", "folder": ""}
ADD = {"action": "add", "expectedRevision": 0, "policyVersion": 1, "bookmark": DRAFT}


def prepared(home: Path, context: str) -> tuple[tuple[str, str], dict[str, str]]:
    """Arguments and variables for `serve`."""
    config = home / "tabwarden.toml"
    config.write_text(SETTINGS.format(context=context))
    return ("--config", str(config)), without_tabs(home)


def test_settings_and_bookmarks_outlive_a_killed_broker(tmp_path: Path):
    arguments, variables = prepared(tmp_path, "isolated")
    with serving(tmp_path, *arguments, variables=variables) as (_, process):
        changed = call(tmp_path, "settings:update", appearance={"mode": "dark"})
        assert changed["appearance"]["mode"] == "dark"
        assert call(tmp_path, "settings:update", appearance={"accent": "teal"}) == "policy-denied"
        assert call(tmp_path, "bookmarks:mutate", **ADD) == {"completed": True}
        assert call(tmp_path, "bookmarks:mutate", **ADD) == "conflict"
        foreign = {**ADD, "bookmark": {**DRAFT, "url": "https://example.com/"}}
        assert call(tmp_path, "bookmarks:mutate", **foreign) == "destination-denied"
        os.kill(process.pid, signal.SIGKILL)
        process.wait(LIMIT_S)

    with serving(tmp_path, *arguments, variables=variables) as (_, process):
        shown = call(tmp_path, "settings:get")["appearance"]
        assert shown == {"mode": "dark", "accent": "blue", "tabMode": "separate"}
        listed = call(tmp_path, "bookmarks:list")
        assert [one["url"] for one in listed["personal"]] == ["https://example.org/"]
        assert [one["id"] for one in listed["managed"]] == ["wiki"]
        assert listed["revision"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0


def test_in_a_shared_profile(tmp_path: Path):
    arguments, variables = prepared(tmp_path, "shared")
    with serving(tmp_path, *arguments, variables=variables):
        assert call(tmp_path, "bookmarks:mutate", **ADD) == {"completed": True}
        assert call(tmp_path, "bookmarks:list")["revision"] == 1
