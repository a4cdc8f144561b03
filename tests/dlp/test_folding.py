"""What looks alike is read alike, what does not show is gone, and places lead back."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden_adapters.dlp.folding import fold

INVISIBLE = [
    chr(code)
    for code in range(0x110000)
    if unicodedata.category(chr(code)) == "Cf" and not 0x600 <= code <= 0x605
]
IGNORABLE = ["\u034f", "\u115f", "\u1160", "\u17b4", "\u180b", "\u3164", "\ufe0f", "\uffa0", "\U000e0100"]


@pytest.mark.parametrize(
    ("given_text", "read"),
    [
        ("\uff21\uff22\uff13", "AB3"),  # full width
        ("\U0001d400\U0001d7d8", "A0"),  # mathematical
        ("\u2460\u00b2", "12"),  # in a circle, raised
        ("4111\u20124111\u20144111\u22124111", "4111-4111-4111-4111"),
        ("a\u00a0b\u2003c\u3000d", "a b c d"),
        ("a\u2028b\rc\u0085d\x0be", "a\nb\nc\nd\ne"),
        ("gh\u200bp\u00ad_\u2060x\x00\x7f", "ghp_x"),
        ("a\tb\nc", "a\tb\nc"),
        ("\ufb01", "fi"),
        ("\ud800x", "\ufffdx"),
        ("\U0001f600", "\U0001f600"),
        ("Gr\u00f6\u00dfe", "Gr\u00f6\u00dfe"),
    ],
)
def test_what_is_read(given_text, read):
    assert fold(given_text).text == read


def test_nothing_invisible_is_read():
    for one in (*INVISIBLE, *IGNORABLE):
        assert fold(f"a{one}b").text == "ab", hex(ord(one))


@given(
    st.text(st.characters(codec=None) | st.sampled_from("\u200b\uff21\ufb01\u2014\U0001d7d8"), max_size=40)
)
def test_places_lead_back(text):
    folded = fold(text)
    last = 0
    for at, character in enumerate(folded.text):
        start, end = folded.origin(at, at + 1)
        assert end == start + 1
        assert last <= start
        assert character in fold(text[start:end]).text
        last = start
    if folded.text:
        assert folded.origin(0, len(folded.text))[1] <= len(text)


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing(text):
    once = fold(text).text
    assert fold(once).text == once
