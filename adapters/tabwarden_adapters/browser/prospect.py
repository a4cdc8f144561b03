"""What a call may lead to, looked up before anybody is asked about it: fixed scripts, CDP domain Page.

A page can change between this look and the press. What is looked up is a page's own word; None is not known.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser.capture import Binding, Captures, TabContext
from tabwarden_adapters.browser.cdp.generated import page
from tabwarden_adapters.browser.reading import call_in_document
from tabwarden_adapters.browser.selectors import target

SECRETS_MS: Final = 2_000  # how long a page may be kept busy by being looked at for fields


@dataclass(frozen=True, slots=True)
class Prospect:
    """Of one element. `missing`: why there is none, as the action itself would say. `name` is all that it is
    called, `form_targets` the addresses that its form may be sent to, `leads_to` a link's address, empty
    without one. None: not known."""

    name: str | None = field(repr=False)
    in_form: bool | None
    form_targets: tuple[str, ...] | None = field(repr=False)
    leads_to: str = field(repr=False)
    downloads: bool
    missing: Code | None = None


UNKNOWN: Final = Prospect(None, None, None, "", False)


class _Element(msgspec.Struct, rename="camel"):
    count: int
    stale: bool
    name: str | None
    in_form: bool | None
    targets: list[str] | None
    leads: str
    downloads: bool


class _Secrets(msgspec.Struct):
    reason: str
    cut: bool


class _Always:
    def check(self) -> None:
        """The caller looks itself whether it still goes on."""


class Prospects:
    """Looks into captured tabs of one host."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures

    async def element(self, captured: TabContext, selector: str) -> Prospect:
        """Of the element that `selector` names there. `UNKNOWN` when it cannot be told."""
        try:
            wanted = target(selector).argument()
            found = msgspec.convert(await self._run(captured, scripts.PROSPECT, wanted), _Element)
        except (ActionError, msgspec.ValidationError):
            return UNKNOWN
        if found.count != 1:
            return replace(UNKNOWN, missing=Code.STALE_REF if found.stale else Code.TARGET_DENIED)
        targets = None if found.targets is None else tuple(sorted(found.targets))
        return Prospect(found.name, found.in_form, targets, found.leads, found.downloads)

    async def entry(self, captured: TabContext, by: int) -> str | None:
        """The address of the entry `by` steps on in the tab's history."""
        try:
            history = await self._binding(captured).call(page.get_navigation_history())
        except ActionError:
            return None
        index = history.current_index + by
        return history.entries[index].url if 0 <= index < len(history.entries) else None

    async def secrets(self, captured: TabContext) -> bool | None:
        """Whether a field for a password, a card or a one-time code shows there."""
        try:
            answer = await self._run(captured, scripts.SECRETS, SECRETS_MS)
            found = msgspec.convert(answer, _Secrets)
        except (ActionError, msgspec.ValidationError):
            return None
        if found.reason:
            return True
        return None if found.cut else False

    async def _run(self, captured: TabContext, script: str, *arguments: object) -> object:
        return await call_in_document(self._binding(captured), script, captured.url, *arguments)

    def _binding(self, captured: TabContext) -> Binding:
        return Binding(self._captures, captured.token, _Always())
