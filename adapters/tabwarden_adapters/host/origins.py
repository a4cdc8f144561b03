"""Origins and addresses, read as browsers read them (WHATWG URL)."""

import ada_url

OPAQUE = "null"
"""The origin of pages without one (`about:blank`, `data:`), as browsers write it."""


def web_origin(text: str) -> str:
    """The origin of `text`, e.g. `https://example.test:8443`; `OPAQUE` for what is not http or https.

    The host's trailing dot goes: `good.test.` is the same machine as `good.test`. Raises ValueError for
    what is no address at all, or has credentials in it.
    """
    if text in ("", OPAQUE):
        return OPAQUE
    url = _parse(text)
    if url.protocol not in ("http:", "https:"):
        return OPAQUE
    return str(url.origin)


def web_address(text: str) -> str:
    """The normal form of an http or https address without credentials. Raises ValueError."""
    url = _parse(text)
    if url.protocol not in ("http:", "https:"):
        raise ValueError("scheme")
    return str(url.href)


def host_of(origin: str) -> str:
    """The host of a `web_origin`, without its port; empty for `OPAQUE`."""
    return "" if origin == OPAQUE else str(ada_url.URL(origin).hostname)


def _parse(text: str) -> ada_url.URL:
    # A lone surrogate has no UTF-8; ada would raise an error of another kind.
    text.encode()
    url = ada_url.URL(text)
    if url.username or url.password:
        raise ValueError("credentials")
    if url.protocol in ("http:", "https:"):
        url.hostname = url.hostname.removesuffix(".")
        if not url.hostname or url.hostname.endswith(".") or ".." in url.hostname:
            raise ValueError("host")
    return url
