"""Text of pages on its way to an agent: what a person cannot see in it is taken out.

Joiners stay where they shape what is seen: one between two letters of a script that joins, one between two
emoji; and the emoji style after an emoji or in a keycap. Everywhere else they are invisible and go.
page/clean.js does the same, before it counts. Source: Unicode 16, UTS 51 for emoji.
"""

import re

# Controls but tab and line feed; soft hyphens, fillers, bidirectional controls, variation selectors,
# annotations, tags: none of them shows, all of them can carry or reorder a message.
INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Arabic, Syriac, N'Ko, Mandaic, the scripts of India and South-East Asia, Mongolian, Phags-pa.
_JOINED = (
    "\u0620-\u065f\u066e-\u06d3\u06d5\u06ee-\u06ff\u0710-\u07ff\u0840-\u08ff\u0900-\u0dff\u1000-\u109f"
    "\u1780-\u17b3\u17b6-\u17d3\u1820-\u18aa\u1b00-\u1b7f\ua840-\ua877\ua8e0-\ua8ff\uaa60-\uaa7f"
    "\U00011000-\U00011fff"
)
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_LOOSE_STYLE = re.compile(f"(?<![{_EMOJI}])(?<![0-9#*](?=\ufe0f\u20e3))\ufe0f")
_LOOSE_JOINER = re.compile(
    f"(?<![{_JOINED}])(?<![{_EMOJI}\ufe0f](?=\u200d))[\u200c\u200d]"
    f"|(?<=[{_JOINED}])[\u200c\u200d](?![{_JOINED}])|(?<=[{_EMOJI}\ufe0f])\u200d(?![{_EMOJI}])"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONG_WORD = re.compile(r"[A-Za-z0-9_.+/=~-]{8,}\Z")
TITLE_CHARACTERS = 256  # what a tab strip can show, and more


def visible_text(text: str) -> str:
    """`text` without invisible characters; a lone surrogate, which no UTF-8 can hold, becomes U+FFFD."""
    text = INVISIBLE.sub("", _SURROGATE.sub("\ufffd", text))
    return _LOOSE_JOINER.sub("", _LOOSE_STYLE.sub("", text))


def visible_window(text: str) -> str:
    """`visible_text` of a part that was cut out of a clean text: it may begin or end within a sequence."""
    head = text[:1] if text[:1] in ("\u200c", "\u200d", "\ufe0f") else ""
    tail = text[-1:] if len(text) > 1 and text[-1:] in ("\u200c", "\u200d") else ""
    return head + visible_text(text[len(head) : len(text) - len(tail)]) + tail


def visible_title(text: str, beyond: int = 0) -> str:
    """A tab's title on one line, cut; `beyond`: characters of what is cut that are wanted too."""
    return " ".join(visible_text(text).split())[: TITLE_CHARACTERS + beyond]


def cut_title(text: str, most: int) -> str:
    """`visible_title` of at most `most` characters. A long word that the cut goes through is left out: half
    of a secret is one that no inspector knows."""
    whole = visible_title(text, beyond=1)
    if len(whole) <= most or whole[most] == " ":
        return whole[:most]
    return _LONG_WORD.sub("", whole[:most])
