"""`ApplicationPolicy`: the default hides all, and a wrong one names its field."""

from typing import Any

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.application import ApplicationPolicy

from tests.application.support import bookmark, visible


def test_the_default_shows_nothing_and_locks_all():
    policy = ApplicationPolicy(version=0)
    for section in ("appearance", "bookmarks"):
        assert not policy.shows(section)
        assert policy.is_locked(section)


def test_visible_has_to_be_said_even_when_nothing_is_hidden():
    assert not ApplicationPolicy(version=0, hidden=frozenset()).shows("appearance", "mode")


def test_one_setting_of_a_section():
    policy = visible(visible=frozenset({"appearance.mode"}))
    assert policy.shows("appearance", "mode")
    assert not policy.shows("appearance", "accent")
    assert not policy.shows("appearance")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"version": -1}, "version"),
        ({"version": True}, "version"),
        ({"version": 2**53 + 1}, "version"),
        ({"visible": {"appearance"}}, "visible"),
        ({"hidden": frozenset({"a b"})}, "hidden"),
        ({"hidden": frozenset({1})}, "hidden"),
        ({"locked": frozenset({"appearance.tab_mode"})}, "locked"),
        ({"locked": frozenset(f"n{number}" for number in range(65))}, "locked"),
        ({"managed": [bookmark()]}, "managed"),
        ({"managed": ("x",)}, "managed[0]"),
        ({"managed": (bookmark(), bookmark())}, "managed[1].id"),
        ({"managed": (bookmark(id=""),)}, "managed[0].id"),
        ({"managed": (bookmark(title="a\nb"),)}, "managed[0]"),
        ({"managed": (bookmark(url="https://A.test"),)}, "managed[0].url"),
        ({"managed": (bookmark(url="https://u:p@a.test/"),)}, "managed[0].url"),
        ({"managed": tuple(bookmark(number) for number in range(1001))}, "managed"),
        ({"appearance": {"mode": "dark"}}, "appearance"),
    ],
)
def test_what_it_refuses(changes: dict[str, Any], named: str):
    with pytest.raises(ConfigurationError) as caught:
        visible(**changes)
    assert f"application policy: {named}" in str(caught.value)


def test_no_address_or_title_in_its_repr():
    shown = repr(visible(managed=(bookmark(),))) + repr(bookmark())
    assert "a.test" not in shown
    assert "Title" not in shown
