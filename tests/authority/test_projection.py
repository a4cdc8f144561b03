"""Only what the action table declares leaves, whatever an adapter returns."""

import dataclasses
import datetime
import json
from collections import UserDict
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden.actions import ACTIONS
from tabwarden.authority.projection import NotProjectable, encode, project
from tabwarden.protocol.codec import parse_json

SESSION = "01234567-89ab-cdef-0123-456789abcdef"
TEXT = "text that must not travel"

# A value of the result type of every action, as an adapter would return it.
GOOD: dict[str, Any] = {
    "sessions": [{"id": SESSION, "title": "t", "foreground": True}],
    "read": {"text": "t", "origin": "https://a.test", "untrusted": True, "nextOffset": 3},
    "inspect": {
        "controls": [
            {"ref": "r", "role": "b", "name": "n", "selector": "s", "options": [{"value": "v", "label": "l"}]}
        ]
    },
    "screenshot": {
        "image": "aQ==",
        "mediaType": "image/png",
        "width": 1,
        "height": 1,
        "masked": 0,
        "origin": "https://a.test",
        "untrusted": True,
    },
    "ai": {"text": "t"},
    "application:state": {"ready": True, "policyVersion": 1, "activeTabId": None, "tabCount": 0},
    "bookmarks:list": {
        "managed": [],
        "personal": [{"id": "1", "title": "t", "url": "https://a.test"}],
        "revision": 1,
        "policyVersion": 1,
        "canMutate": False,
    },
}
for _name in ("settings:get", "settings:update"):
    GOOD[_name] = {
        "visible": ["appearance"],
        "hiddenSections": [],
        "lockedSections": [],
        "appearance": {"mode": "dark"},
    }
for _name in ("tabs:create", "tabs:activate", "tabs:group"):
    GOOD[_name] = {"completed": True, "sessionId": SESSION}
for _name in ACTIONS:
    GOOD.setdefault(_name, {"completed": True})


def without_defaults(value: Any) -> Any:
    """`omit_defaults` leaves out what equals its default."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("action", ACTIONS)
def test_a_good_value_of_every_action_passes(action: str) -> None:
    projected = project(ACTIONS[action], GOOD[action])
    assert projected == without_defaults(GOOD[action])
    assert parse_json(encode(projected)) == projected


def sprinkle(value: Any) -> Any:
    """Add fields that no table declares, at every level."""
    if isinstance(value, dict):
        return {**{key: sprinkle(item) for key, item in value.items()}, "cookie": TEXT, "x_y": [TEXT]}
    if isinstance(value, list):
        return [sprinkle(item) for item in value]
    return value


@pytest.mark.parametrize("action", sorted(set(ACTIONS) - {"settings:get", "settings:update"}))
def test_unknown_fields_are_dropped_at_every_level(action: str) -> None:
    projected = project(ACTIONS[action], sprinkle(GOOD[action]))
    assert projected == without_defaults(GOOD[action])
    assert TEXT not in encode(projected).decode()


@pytest.mark.parametrize("action", ["settings:get", "settings:update"])
def test_an_unknown_setting_is_refused_rather_than_dropped(action: str) -> None:
    """The type of the three settings is also the argument's, which refuses what it does not know."""
    value = {**GOOD[action], "cookie": TEXT}
    assert "cookie" not in project(ACTIONS[action], value)
    with pytest.raises(NotProjectable):
        project(ACTIONS[action], sprinkle(GOOD[action]))


@pytest.mark.parametrize("action", ACTIONS)
def test_each_required_field_must_be_there_and_of_its_type(action: str) -> None:
    spec, good = ACTIONS[action], GOOD[action]
    item = good[0] if isinstance(good, list) else good
    hint = spec.result.__args__[0] if isinstance(good, list) else spec.result

    def wrap(changed: object) -> object:
        return [changed] if isinstance(good, list) else changed

    required = [field for field in msgspec.structs.fields(hint) if field.required]
    assert required
    for field in required:
        left = {key: value for key, value in item.items() if key != field.encode_name}
        with pytest.raises(NotProjectable):
            project(spec, wrap(left))
        for wrong in (object(), 1.5, {"a": 1}, b"\xff", float("nan")):
            with pytest.raises(NotProjectable):
                project(spec, wrap({**left, field.encode_name: wrong if wrong != b"\xff" else [[]]}))


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        "",
        TEXT,
        b"",
        [],
        {},
        [GOOD["navigate"]],
        {"Completed": True},
        {"completed": 1},
        {"completed": "true"},
        {"completed": None},
        {"completed": True, "dialogsDismissed": -1},
        {"completed": True, "dialogsDismissed": 2**53 + 1},
        {"completed": True, "dialogsDismissed": True},
        {"completed": True, "dialogsDismissed": 1.5},
        {"completed": True, "openedSessions": ["not a session"]},
        {"completed": True, "openedSessions": SESSION},
        {1: 2},
        object(),
        Exception(TEXT),
        lambda: TEXT,
        (x for x in [TEXT]),
        ...,
        int,
    ],
    ids=lambda value: type(value).__name__,
)
def test_another_kind_of_value_is_refused(value: object) -> None:
    with pytest.raises(NotProjectable) as caught:
        project(ACTIONS["navigate"], value)
    assert str(caught.value) == ""
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("lone", ["\ud800", "a\udfffb", "\ude00\ud83d"])
def test_text_without_utf_8_is_refused(lone: str) -> None:
    """Pages hand such text over through CDP; it would break the encoder after the action was done."""
    for action, value in (
        ("read", {"text": lone}),
        ("read", {"text": "t", "framesNotRead": ["f", lone]}),
        ("sessions", [{"id": SESSION, "title": lone, "foreground": True}]),
        ("inspect", {"controls": [{**GOOD["inspect"]["controls"][0], "name": lone}]}),
    ):
        with pytest.raises(NotProjectable):
            project(ACTIONS[action], value)


def test_a_lone_surrogate_in_a_dropped_field_does_not_matter() -> None:
    assert project(ACTIONS["ai"], {"text": "t", "raw": "\ud800"}) == {"text": "t"}


class HostileMapping(UserDict[str, object]):
    pass


class HostileDict(dict[str, object]):
    def __iter__(self) -> Any:
        raise SystemExit(TEXT)

    items = keys = values = __getitem__ = __len__ = __iter__


class HostileText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise SystemExit(TEXT)

    encode = __str__  # type: ignore[assignment]


class Raises:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError(TEXT)

    def __iter__(self) -> Any:
        raise RuntimeError(TEXT)


@dataclasses.dataclass
class RaisingData:
    completed: bool = True

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(TEXT)


class OtherStruct(msgspec.Struct):
    completed: bool = True
    secret: str = TEXT


def hostile() -> dict[str, object]:
    loop: list[object] = []
    loop.append(loop)
    ring: dict[str, object] = {"completed": True}
    ring["self"] = ring
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    return {
        "loop": loop,
        "ring": ring,
        "deep": deep,
        "mapping": HostileMapping(completed=True),
        "raises": Raises(),
        "text": {"completed": HostileText("x")},
        "nested": {"completed": True, "extra": Raises()},
        "key": {HostileText("completed"): True},
        "data": RaisingData(),
        "huge": {"completed": True, "dialogsDismissed": 10**5000},
        "infinity": {"completed": True, "dialogsDismissed": float("inf")},
    }


@pytest.mark.parametrize("name", hostile())
def test_a_hostile_object_is_refused_without_its_text(name: str) -> None:
    try:
        projected = project(ACTIONS["navigate"], hostile()[name])
    except NotProjectable as error:
        assert error.args == ()  # noqa: PT017 - either ending is right, and this one has no text
    else:
        assert projected == {"completed": True}


@pytest.mark.parametrize("value", [OtherStruct(), HostileDict(completed=True)], ids=["struct", "dict"])
def test_another_object_with_the_right_fields_gives_only_those(value: object) -> None:
    assert project(ACTIONS["navigate"], value) == {"completed": True}


@pytest.mark.parametrize("value", [Decimal(1), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)], ids=str)
def test_what_comes_out_is_plain_json(value: object) -> None:
    projected = project(ACTIONS["ai"], {"text": value})
    assert type(projected["text"]) is str
    assert parse_json(encode(projected)) == projected


def test_the_projected_value_shares_nothing_with_the_adapters() -> None:
    """What an adapter changes after it returned must not change what leaves."""
    value = {"controls": [dict(GOOD["inspect"]["controls"][0])]}
    projected = project(ACTIONS["inspect"], value)
    value["controls"][0]["name"] = TEXT
    value["controls"].append({})
    assert projected == GOOD["inspect"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["completed", "id", "title", "foreground", "text", "controls", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(st.sampled_from(sorted(ACTIONS)), JSON)
@settings(max_examples=200)
def test_anything_is_projected_or_refused(action: str, value: object) -> None:
    try:
        projected = project(ACTIONS[action], value)
    except NotProjectable:
        return
    # It holds under the declared type, so it is a fixed point.
    assert project(ACTIONS[action], projected) == projected
    encode(projected)
