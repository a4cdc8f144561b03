"""From a call and its tab to the facts that risks.py judges. What cannot be looked up is risky."""

from dataclasses import dataclass, field
from typing import Final

import msgspec
from tabwarden.actions import ActionSpec
from tabwarden.errors import Code

from tabwarden_adapters.host.agreements import AgreedRisk
from tabwarden_adapters.host.origins import OPAQUE, web_origin
from tabwarden_adapters.host.risks import Deed, Facts, Risk, risks_of
from tabwarden_adapters.host.sight import Ahead, SeenTab

_STEPS: Final = {"back": -1, "forward": 1}
_FILLED: Final = frozenset({"type", "select", "check"})


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What is known of one call beforehand. `goes_to`: where it is known to lead, or `OPAQUE` for a place
    that is not known; empty for a call that leads nowhere. `called`: what the page calls the element.
    `missing`: why there is no element to act on."""

    deed: Deed | None = None
    goes_to: frozenset[str] = frozenset()
    called: str | None = field(default=None, repr=False)
    in_form: bool | None = False
    form_origins: frozenset[str] | None = frozenset()
    downloads: bool = False
    missing: Code | None = None

    def risks(self, origin: str, visited: frozenset[str]) -> frozenset[Risk]:
        """By the table, on a page of this origin, for an agent that has been at `visited`."""
        if self.deed is None:
            return frozenset()
        led = next(iter(self.goes_to), None)
        return risks_of(
            Facts(
                deed=self.deed,
                page_origin=origin,
                in_form=self.in_form,
                form_origins=self.form_origins,
                name=self.called if self.deed is Deed.PRESS else "",
                target_origin=led,
                downloads=self.downloads,
                visited=visited,
            )
        )

    def remembered_as(self, risk: Risk) -> AgreedRisk | None:
        """As what a yes to this risk counts for later calls: forms to the same sites, downloads. None: it
        does not. What was bought or deleted is done, and what was not known is not what comes next."""
        if risk is Risk.FOREIGN_FORM and self.in_form is not None and self.form_origins is not None:
            return risk, self.form_origins
        return (risk, frozenset()) if risk is Risk.DOWNLOAD else None


def origin_of(url: str) -> str:
    """The origin of an address, `OPAQUE` for one that has none or is none."""
    try:
        return web_origin(url)
    except ValueError:
        return OPAQUE


async def foresee(spec: ActionSpec, args: msgspec.Struct, tab: SeenTab | None) -> Foreseen:
    """What `args` lead to in `tab`. Never raises but for cancellation."""
    url = getattr(args, "url", None)
    if isinstance(url, str):
        return Foreseen(Deed.NAVIGATE, frozenset({origin_of(url)}))
    if tab is None:
        return Foreseen()
    if spec.name in _STEPS:
        entry = await tab.entry(_STEPS[spec.name])
        return Foreseen(Deed.NAVIGATE, frozenset({OPAQUE if entry is None else origin_of(entry)}))
    selector = getattr(args, "selector", None)
    if not isinstance(selector, str):
        return Foreseen()
    ahead = await tab.element(selector)
    if ahead.missing is not None:
        return Foreseen(missing=ahead.missing)
    if spec.name in _FILLED:
        return Foreseen(Deed.TYPE, in_form=ahead.in_form, form_origins=_origins(ahead), called=ahead.name)
    web = ahead.leads_to.startswith(("http:", "https:"))
    return Foreseen(
        Deed.PRESS,
        frozenset({origin_of(ahead.leads_to)}) if web else frozenset(),
        ahead.name,
        ahead.in_form,
        _origins(ahead),
        ahead.downloads,
    )


def _origins(ahead: Ahead) -> frozenset[str] | None:
    if ahead.form_targets is None:
        return None
    return frozenset(origin_of(target) for target in ahead.form_targets)
