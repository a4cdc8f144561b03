"""The addresses that bookmarks may have, read as browsers read them (WHATWG URL, by ada)."""

import ada_url

from tabwarden_adapters.application.values import URL_CHARACTERS

_SCHEMES = ("http:", "https:")


def web_href(text: str) -> str | None:
    """The normal form of an HTTP(S) URL without credentials, its host without a trailing dot; None for
    everything else, and for one that is too long in its normal form."""
    try:
        url = ada_url.URL(text)
        if url.protocol not in _SCHEMES or url.username or url.password:
            return None
        url.hostname = url.hostname.removesuffix(".")  # the same machine, but another text to a list of hosts
        host, href = str(url.hostname), str(url.href)
    except (ValueError, UnicodeError):
        return None
    if not host or host.endswith(".") or ".." in host or len(href) > URL_CHARACTERS:
        return None
    return href
