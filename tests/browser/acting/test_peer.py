"""An independent judge: the form filled through Playwright ends in the same state, by the same events."""

import json
import sys
from pathlib import Path

import pytest
import trio
from tabwarden_adapters.browser import find_chromium

HERE = Path(__file__).parent
STEPS = [
    ["type", "#text", "plain \U0001f600 \u05e9\u05dc\u05d5\u05dd"],
    ["type", "#again", "new"],
    ["type", "#search", "words"],
    ["type", "#number", "-12.5"],
    ["type", "#area", "one line"],
    ["type", "#date", "2024-02-29"],
    ["type", "#time", "13:45"],
    ["type", "#color", "#1a2b3c"],
    ["type", "#range", "30"],
    ["type", "#editor", "edited"],
    ["select", "#one", "b"],
    ["check", "#on", True],
    ["check", "#on", True],
    ["check", "#off", False],
    ["check", "#labelled", True],
    ["type", "#again", ""],
    ["click", "#button", None],
    ["click", "#button", None],
]
NAMES = {"type": "text", "select": "value", "check": "checked"}


async def test_the_same_form_ends_in_the_same_state(stage):
    pytest.importorskip("playwright")
    await stage.show((HERE / "form.html").read_text("utf-8"))
    for action, selector, value in STEPS:
        await stage.do(action, selector, **({} if value is None else {NAMES[action]: value}))
    ours = await stage.js("state()")
    command = [sys.executable, HERE / "peer.py", find_chromium(), stage.site.url("/page"), json.dumps(STEPS)]
    peer = await trio.run_process(command, capture_stdout=True)
    theirs = json.loads(peer.stdout)
    assert ours == theirs
    assert len(ours["events"]) > 25
