"""Whether the tests also do what takes minutes: `make large`."""

import os

WHOLE = bool(os.environ.get("TABWARDEN_LARGE"))
