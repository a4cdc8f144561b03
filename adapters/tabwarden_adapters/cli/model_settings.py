"""The model gateway's part of the settings of `serve`.

[ai]
url = "https://models.example.org/v1"        # these three only without a signed policy, which has its own
model = "house-model"
max_characters = 20000
credential = "ai-key.json"                   # what `tabwarden ai set-key` wrote; has a usual place
protector = "key-file"                       # what sealed that
"""

from typing import Annotated

import msgspec
from msgspec import Meta

KEY_PROTECTOR = "key-file"


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table `[ai]`."""

    url: str = ""
    model: str = ""
    max_characters: Annotated[int, Meta(ge=1, le=20_000)] | None = None
    credential: str | None = None
    protector: str = KEY_PROTECTOR
