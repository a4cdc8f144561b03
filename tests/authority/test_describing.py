"""What a person reads of a call: all of it, in words that the agent cannot bend."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.actions import ACTIONS, parse_arguments
from tabwarden.approval import Fact
from tabwarden.authority.describing import describe, visible

from tests.approvals.support import TAB

ARGUMENTS: dict[str, dict[str, Any]] = {
    "navigate": {"url": "https://a.test/"},
    "read": {"offset": 7},
    "inspect": {"cursor": 7},
    "scroll": {"x": 1, "y": -2},
    "click": {"selector": "#a"},
    "type": {"selector": "#a", "text": "hello"},
    "select": {"selector": "#a", "value": "v"},
    "check": {"selector": "#a", "checked": True},
    "ai": {"prompt": "p"},
    "handoff": {"reason": "please sign in"},
    "settings:update": {"appearance": {"mode": "dark", "tabMode": "compact"}},
    "bookmarks:mutate": {
        "action": "update",
        "expectedRevision": 1,
        "policyVersion": 2,
        "id": "b1",
        "bookmark": {"title": "T", "url": "https://b.test/", "folder": "F"},
    },
    "tabs:create": {"url": "https://a.test/", "group": "g"},
    "tabs:activate": {"sessionId": TAB},
    "tabs:close": {"sessionId": TAB},
    "tabs:group": {"sessionId": TAB, "group": "g"},
}


def leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [value]


@pytest.mark.parametrize("action", ACTIONS)
def test_every_argument_of_every_action_is_told(action: str) -> None:
    args = ARGUMENTS.get(action, {})
    _, arguments = parse_arguments(action, args)
    facts = describe(arguments, 100)
    texts = [fact.text for fact in facts]
    for leaf in leaves({name: value for name, value in args.items() if name != "sessionId"}):
        expected = f'"{leaf}"' if isinstance(leaf, str) else {True: "yes"}.get(leaf is True, str(leaf))
        assert expected in texts
    assert all(fact.label and fact.label.isprintable() for fact in facts)
    assert len({fact.label for fact in facts}) == len(facts)


def test_what_the_agent_wrote_is_marked_as_its_own() -> None:
    _, arguments = parse_arguments("check", {"selector": "#a", "checked": False})
    assert describe(arguments, 100) == (
        Fact("element", '"#a"', by_agent=True),
        Fact("checked", "no", by_agent=False),
    )
    _, arguments = parse_arguments("bookmarks:mutate", ARGUMENTS["bookmarks:mutate"])
    assert Fact("bookmark: title", '"T"', by_agent=True) in describe(arguments, 100)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", '"plain"'),
        ("été 日本 שלום", '"été 日本 שלום"'),
        ("a\nYour answer: y\r\n", r'"a\nYour answer: y\x0d\n"'),
        ("\x1b[2J\x1b]0;x\x07", r'"\x1b[2J\x1b]0;x\x07"'),
        ("\x9b2J", r'"\x9b2J"'),
        ("a\u202egpj.exe", r'"a\u202egpj.exe"'),
        ("\u2066x\u2069\u200b\u200d\ufeff\u00ad", r'"\u2066x\u2069\u200b\u200d\ufeff\xad"'),
        ('" … 5 characters left out … "', r'"\" … 5 characters left out … \""'),
        ("\\x1b", r'"\\x1b"'),
        ("a\u2028b\u2029\x85", r'"a\u2028b\u2029\x85"'),
        ("a\u00a0b\u3000", r'"a\xa0b\u3000"'),
        ("\U000e0041\ue000\ud800", r'"\U000e0041\ue000\ud800"'),
        ("e\u0301\u0301\u0301\u0301", '"e\u0301\u0301' + r'\u0301\u0301"'),
        ("a\ufe0f\u034f\u3164\u2800", r'"a\ufe0f\u034f\u3164\u2800"'),
    ],
)
def test_nothing_hides_turns_or_steers(text: str, shown: str) -> None:
    assert visible(text, 1000) == shown


@given(st.text())
def test_whatever_the_text_it_stays_one_line_in_its_quotes(text: str) -> None:
    shown = visible(text, 10_000)
    assert shown.startswith('"')
    assert shown.endswith('"')
    assert shown.isprintable()
    inside = shown[1:-1].replace("\\\\", "").replace('\\"', "")
    assert '"' not in inside
    assert not [one for one in shown if unicodedata.bidirectional(one) in ("LRO", "RLO", "LRE", "RLE", "PDF")]


@given(st.text(max_size=60), st.text(max_size=60))
def test_two_texts_never_look_the_same_to_a_program(one: str, other: str) -> None:
    assert (visible(one, 1000) == visible(other, 1000)) == (one == other)


def test_of_a_long_text_both_ends_are_shown_and_what_is_missing_is_said() -> None:
    text = "a" * 75 + "b" * 1000 + "c" * 25
    assert visible(text, 100) == f'"{"a" * 75}" … 1000 characters left out … "{"c" * 25}"'
    assert visible("a" * 100, 100) == f'"{"a" * 100}"'
