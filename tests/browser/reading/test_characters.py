"""What leaves is what shows: the same in the page's script and in Python."""

import random
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from tabwarden_adapters.browser.text import INVISIBLE, visible_text, visible_title, visible_window

from tests.browser.reading.probe import in_world

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
KEPT = (
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: the joiner keeps two letters apart
    "क्\u200dष",  # Devanagari: a half letter
    "ශ්\u200dරී",  # Sinhala
    FAMILY,
    "\U0001f3f3\ufe0f\u200d\U0001f308",
    "❤\ufe0f\u200d\U0001f525",
    "\U0001f44d\U0001f3fd",
    "1\ufe0f\u20e3",
    "a\tb\nc",
    "e\u0301 Ω ß 中文 \U00020000",
    "\u2800\u2801",
)
LOST = {
    "a\u200db": "ab",
    "a\u200cb": "ab",
    "ب\u200c\u200cب": "بب",
    "ب\u200c": "ب",
    "\u200dب": "ب",
    "a\ufe0fb": "ab",
    "1\ufe0f": "1",
    "\U0001f600\u200d": "\U0001f600",
    "\U0001f600\u200cx": "\U0001f600x",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f": "\U0001f3f4",
    "a\u202eb\u2066c\u2069": "abc",
    "a\u00adb\u2060c\ufeffd\u200be": "abcde",
    "a\x00b\x1bc\x7fd\x85e": "abcde",
    "a\u2028b\u2029c\rd": "abcd",
    "x\ud800y": "x\ufffdy",
    "\U000e0041\U000e0100": "",
    "\u3164\uffa0\u115f": "",
}
HARD = "ab1#ب\u0915\u094d\u200c\u200d\ufe0f\ufe0e\u20e3\u202e\u00ad❤\U0001f600\U0001f3fd\U000e0041 \n"


def test_real_words_and_emoji_stay():
    assert [visible_text(text) for text in KEPT] == list(KEPT)
    assert {text: visible_text(text) for text in LOST} == LOST
    assert visible_title(" a\u202e \n b ") == "a b"


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=())) | st.text(alphabet=HARD))
def test_nothing_invisible_leaves(text):
    clean = visible_text(text)
    clean.encode()
    assert visible_text(clean) == clean
    assert not INVISIBLE.search(clean)
    for character in clean:
        if unicodedata.category(character) in ("Cf", "Cs", "Cc"):
            # Marks that join, and number signs of Arabic and Kaithi, which are seen.
            seen = 0x600 <= ord(character) < 0x8E3 or ord(character) >= 0x110BD
            assert seen or character in "\t\n\u200c\u200d"


@given(st.text(alphabet=HARD), st.integers(0, 40))
def test_windows_put_together_are_the_text(text, cut):
    clean = visible_text(text)
    assert visible_window(clean[:cut]) + visible_window(clean[cut:]) == clean


async def test_the_page_script_agrees(agent, site):
    site.pages["/"] = "<p>x"
    await agent.call("navigate", url=site.url())
    chance = random.Random(3)
    texts = [*KEPT, *(text for text in LOST if "\ud800" not in text)]
    texts += ["".join(chance.choices(HARD, k=12)) for _ in range(3_000)]
    texts += ["".join(map(chr, range(start, start + 256))) for start in range(0, 0xD800, 256)]
    texts += ["".join(map(chr, range(start, start + 256))) for start in range(0xE000, 0x20000, 256)]
    texts += ["".join(map(chr, range(0xE0000, 0xE1000)))]
    script = "return a0.map((text) => clean(text));"
    assert await in_world(agent, script, texts, parts=("clean.js",)) == [visible_text(text) for text in texts]
    site.pages["/"] = "<p>" + " ".join(KEPT[:8])
    await agent.call("navigate", url=site.url())
    assert (await agent.call("read"))["text"] == " ".join(KEPT[:8])
