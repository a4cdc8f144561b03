"""Text of pages on its way to an agent: what a person cannot see in it is taken out."""

import re

# Controls but tab and line feed; soft hyphens, joiners, fillers, bidirectional controls, variation
# selectors, annotations, tags: none of them shows, all of them can carry or reorder a message.
# page/read.js takes out the same set, before it counts.
INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
TITLE_CHARACTERS = 256  # what a tab strip can show, and more


def visible_text(text: str) -> str:
    """`text` without invisible characters."""
    return INVISIBLE.sub("", text)


def visible_title(text: str) -> str:
    """A tab's title on one line, cut."""
    return " ".join(visible_text(text).split())[:TITLE_CHARACTERS]
