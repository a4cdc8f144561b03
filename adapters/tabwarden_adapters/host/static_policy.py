"""The policy of an engine without a host: answers from flags, the same from start to end."""

from collections.abc import Collection, Mapping, Sequence

import trio
from tabwarden.errors import ConfigurationError

from tabwarden_adapters.host.origins import OPAQUE, host_of, web_origin
from tabwarden_adapters.host.values import Answer, ApprovalKind, SiteMode


class StaticPolicy:
    """Site modes by origin; approvals by kind. What is not named is `OFF` and `NO`.

    There is no person to ask, so it has none of the optional parts: no handoff, no log, no private tabs.
    """

    def __init__(
        self,
        sites: Mapping[str, SiteMode] | None = None,
        *,
        approvals: Mapping[ApprovalKind, Answer] | None = None,
        sensitive_hosts: Collection[str] = (),
    ) -> None:
        """`sites` has normalised origins, `sensitive_hosts` normalised hosts (`from_flags` makes both)."""
        self._sites = dict(sites or {})
        self._approvals = dict(approvals or {})
        self._sensitive_hosts = frozenset(sensitive_hosts)

    @classmethod
    def from_flags(
        cls,
        *,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        approve: Sequence[str] = (),
        confirm: Sequence[str] = (),
        sensitive: Sequence[str] = (),
    ) -> "StaticPolicy":
        """`allow` and `ask` are sites (`https://example.test`, or `example.test` for https), `approve` and
        `confirm` kinds (`site`, `risk`, `navigate`), `sensitive` hosts.

        Raises `ConfigurationError` naming the flag, also where two flags disagree.
        """
        sites: dict[str, SiteMode] = {}
        for flag, mode, values in (("allow", SiteMode.ALLOWED, allow), ("ask", SiteMode.ASK, ask)):
            for text in values:
                _put(sites, _site(text, flag), mode, flag, text)
        approvals: dict[ApprovalKind, Answer] = {}
        for flag, answer, values in (("approve", Answer.YES, approve), ("confirm", Answer.CONFIRM, confirm)):
            for text in values:
                _put(approvals, _kind(text, flag), answer, flag, text)
        hosts = {host_of(_site(text, "sensitive", host_only=True)) for text in sensitive}
        return cls(sites, approvals=approvals, sensitive_hosts=hosts)

    async def site_mode(self, origin: str) -> SiteMode:
        """By exact origin: another port or scheme is another site."""
        await trio.lowlevel.checkpoint()
        try:
            return self._sites.get(web_origin(origin), SiteMode.OFF)
        except ValueError:
            return SiteMode.OFF

    async def approve(self, kind: ApprovalKind, origin: str, summary: str) -> Answer:
        """At once. On a site that is off everything is `NO`."""
        if await self.site_mode(origin) is SiteMode.OFF:
            return Answer.NO
        return self._approvals.get(kind, Answer.NO)

    async def allowed_sensitive_hosts(self) -> frozenset[str]:
        """Those of the flags."""
        return self._sensitive_hosts


def _put(into: dict, key: object, value: object, flag: str, text: str) -> None:  # type: ignore[type-arg]
    if into.setdefault(key, value) != value:
        raise ConfigurationError(f"{flag}: {text!a} is in two flags that disagree; leave one")


def _site(text: str, flag: str, *, host_only: bool = False) -> str:
    wanted = "a host like example.test" if host_only else "a site like https://example.test"
    if host_only and any(one in text for one in ":/?#@"):
        raise ConfigurationError(f"{flag}: {text!a} is not {wanted}")
    try:
        origin = web_origin(text if "://" in text else f"https://{text}")
    except ValueError:
        origin = OPAQUE
    # More than an origin (a path, a star) would promise a choice that is not made.
    rest = text.partition("://")[2] or text
    if origin == OPAQUE or any(one in rest.removesuffix("/") for one in "/?#*"):
        raise ConfigurationError(f"{flag}: {text!a} is not {wanted}")
    return origin


def _kind(text: str, flag: str) -> ApprovalKind:
    try:
        return ApprovalKind(text)
    except ValueError:
        kinds = ", ".join(kind.value for kind in ApprovalKind)
        raise ConfigurationError(f"{flag}: {text!a} is not one of {kinds}") from None
