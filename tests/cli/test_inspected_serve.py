"""`serve` looks through what it lets out, by the rules of the policy in force."""

import json
from pathlib import Path
from typing import Any

from tests.cli.no_browser import without_tabs
from tests.cli.running import here, serving, tabwarden
from tests.cli.test_signed_serve import Desk, call

RULE = {"id": "projects", "kind": "words", "values": ["Blue Heron"], "directions": ["from-page"]}


def bookmark(title: str) -> dict[str, Any]:
    return {"id": "one", "title": title, "url": "https://wiki.example.org/"}


def test_the_rules_for_text_are_those_of_the_policy_in_force(tmp_path: Path) -> None:
    desk, variables = Desk(tmp_path), without_tabs(tmp_path)
    assert desk.run("policy", "enrol", "keys/policy-public.json").status == 0
    desk.publish(1, {"id": "one"}, bookmarks=[bookmark("Blue Heron")])
    with serving(tmp_path, "--policy", str(desk.file), variables=variables) as (ready, _):
        connection = here(tmp_path, "grants", "issue", "one").result["connection"]
        assert call(tmp_path, connection, "bookmarks:list")["managed"][0]["title"] == "Blue Heron"
        desk.publish(2, {"id": "one"}, bookmarks=[bookmark("Blue Heron")], dlp=[RULE])
        assert here(tmp_path, "policy", "reload").result["version"] == 2
        assert call(tmp_path, connection, "bookmarks:list") == "content-denied"
        desk.publish(3, {"id": "one"}, bookmarks=[bookmark("Grey Heron")], dlp=[RULE])
        assert here(tmp_path, "policy", "reload").result["version"] == 3
        assert call(tmp_path, connection, "bookmarks:list")["managed"][0]["title"] == "Grey Heron"
        exported = tabwarden(tmp_path, "audit", "export", "--audit", ready["audit"]).out
    rules = [json.loads(line).get("agent", {}).get("rule") for line in exported.splitlines()]
    assert "dlp.corporate:projects" in rules
