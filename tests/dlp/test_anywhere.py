"""For any clean text: a secret put anywhere into it, split by whatever does not show, is found."""

import os
import random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.dlp.samples import SELF_EVIDENT
from tests.dlp.support import found
from tests.dlp.test_folding import IGNORABLE, INVISIBLE

FULL = bool(os.environ.get("TABWARDEN_LARGE"))
WIDE = {chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)}


@settings(max_examples=5000 if FULL else 100, deadline=None)
@given(
    text=st.text(max_size=200) | st.text("abcXYZ0189-_./+= \n", max_size=200),
    at=st.integers(0, 200),
    kind=st.sampled_from(SELF_EVIDENT),
    seed=st.integers(0, 2**32),
    splits=st.lists(st.tuples(st.integers(0, 80), st.sampled_from([*INVISIBLE, *IGNORABLE])), max_size=6),
    wide=st.booleans(),
)
def test_a_secret_anywhere(text, at, kind, seed, splits, wide):
    assume(not found(text))
    secret = kind.make(random.Random(seed))
    if wide:
        secret = "".join(WIDE.get(one, one) for one in secret)
    for place, invisible in splits:
        where = place % len(secret)
        secret = secret[:where] + invisible + secret[where:]
    at %= len(text) + 1
    places = found(text[:at] + secret + text[at:])
    assert any(one.kind == "credential" for one in places)
    # What was put in is in what would be replaced, but for what stands before it by itself.
    assert any(one.start < at + len(secret) and one.end > at for one in places)
