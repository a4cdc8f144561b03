"""Where an action takes place, from what a host tells of its tabs."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.model import Caller
from tabwarden_adapters.approvals import origin_of, places

from tests.approvals.support import OTHER_TAB, TAB

ANYBODY = Caller(None, None)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.test/x?y#z", "https://a.test"),
        ("https://A.Test:443/", "https://a.test"),
        ("http://a.test:443/", "http://a.test:443"),
        ("https://a.test./", "https://a.test"),
        ("http://127.1:8080/", "http://127.0.0.1:8080"),
        ("http://[::1]/", "http://[::1]"),
        ("https://good.test\\@evil.test/", "https://good.test"),
        ("https://good.test@evil.test/", "https://evil.test"),
        ("https://bücher.test/", "https://xn--bcher-kva.test"),
        ("about:blank", None),
        ("data:text/html,x", None),
        ("blob:https://a.test/1", None),
        ("file:///etc/passwd", None),
        ("javascript:1", None),
        ("a.test", None),
        ("", None),
        ("https://\ud800.test/", None),
    ],
)
def test_origins(url: str, origin: str | None) -> None:
    assert origin_of(url) == origin


@given(st.text() | st.text(max_size=20).map("https://".__add__))
def test_an_origin_is_an_address_of_its_own_or_none(url: str) -> None:
    origin = origin_of(url)
    if origin is not None:
        assert origin.isascii()
        assert origin_of(origin) == origin


@dataclass
class Page:
    url: str


@dataclass
class Captured:
    session_id: str
    page: Page
    token: int


def test_a_hosts_callbacks_make_a_place() -> None:
    current: set[object] = {7}
    place_of = places(
        lambda session_id: Captured(TAB, Page("https://a.test/x"), 7),
        lambda token: token in current,
    )
    place = place_of(ANYBODY, None)
    assert place is not None
    assert place.origin == "https://a.test"
    assert place.current()
    current.clear()
    assert not place.current()
    # A host that answers with another tab than it was asked for has none.
    assert place_of(ANYBODY, OTHER_TAB) is None
    assert places(lambda session_id: None, lambda token: True)(ANYBODY, None) is None


def test_only_true_says_that_a_page_is_still_there() -> None:
    place_of = places(lambda session_id: Captured(TAB, Page("about:blank"), 7), lambda token: token)
    place = place_of(ANYBODY, TAB)
    assert place is not None
    assert place.origin is None
    assert not place.current()
