"""Addresses, read as Chromium reads them. Only what `ada_url` writes back is judged and sent on."""

from functools import lru_cache

import ada_url
from tabwarden.errors import ActionError, Code

SCHEMES = ("http:", "https:")
# Every check of a call asks for the same few addresses. Together these are a megabyte at the most.
REMEMBERED, REMEMBERED_CHARACTERS = 256, 2_048


def web_href(text: str) -> str:
    """The normal form of an HTTP(S) URL without credentials, its host without a trailing dot.

    Raises `ActionError(Code.INVALID_ARGUMENTS)` for everything else (WHATWG URL).
    """
    return _normal(text) if len(text) <= REMEMBERED_CHARACTERS else _normal.__wrapped__(text)


@lru_cache(REMEMBERED)
def _normal(text: str) -> str:
    try:
        url = ada_url.URL(text)
        if url.protocol not in SCHEMES or url.username or url.password:
            raise ActionError(Code.INVALID_ARGUMENTS)
        # `good.test.` is the same machine as `good.test`, but not the same text to a list of hosts.
        url.hostname = url.hostname.removesuffix(".")
    except ValueError:
        raise ActionError(Code.INVALID_ARGUMENTS) from None
    if not url.hostname or url.hostname.endswith(".") or ".." in url.hostname:
        raise ActionError(Code.INVALID_ARGUMENTS)
    return str(url.href)


def destination(text: str) -> str | None:
    """`web_href` for an address that Chromium reports, or None when no policy could allow it."""
    try:
        return web_href(text)
    except ActionError:
        return None


def origin(href: str) -> str:
    """The origin of a `web_href`, e.g. `https://example.test:8443`."""
    return str(ada_url.URL(href).origin)


def without_fragment(text: str) -> str:
    """An address as Chromium reports it, up to its fragment."""
    return text.partition("#")[0]
