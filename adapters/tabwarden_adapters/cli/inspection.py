"""The inspector of a served broker: the built-in detectors, and the rules of the policy in force."""

import trio
from tabwarden.model import Caller

from tabwarden_adapters.cli.governing import Ruling
from tabwarden_adapters.dlp import (
    NO_RULES,
    ContentInspector,
    CorporateRule,
    CorporateRules,
    InspectionLimits,
    compile_rules,
)
from tabwarden_adapters.policy import DlpRule

_TEXTLESS = ("settings:", "application:")
_LOADING = 0.8  # of an action's time: what is left is for the action itself


class PolicyInspector:
    """Implements `MaskingInspector`. While the rules of a new policy are compiled, nothing passes by those of
    the one before: texts wait, for as long as their action has."""

    def __init__(self, ruling: Ruling, timeout_s: float) -> None:
        signed = ruling.signed
        self._signed = signed
        limits = InspectionLimits(wait_for_catalogue_s=timeout_s * _LOADING)
        may_read = None if signed is None else signed.sensitive_read_allowed
        self.content = ContentInspector(NO_RULES, may_read_sensitive=may_read, limits=limits)
        self._scopes = ruling.scopes
        self._rules: tuple[DlpRule, ...] = ()  # those that `content` uses
        self._compiled = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._loading = False

    def start(self, nursery: trio.Nursery) -> None:
        """Load the detectors in `nursery`: now, if texts will go either way, and else when the first does.
        They take some seconds of a core, which nobody waits for before."""
        self._nursery = nursery
        if not all(scope.startswith(_TEXTLESS) for scope in self._scopes):
            self._load()

    def _load(self) -> None:
        if self._nursery is not None and not self._loading:
            self._loading = True
            self._nursery.start_soon(self.content.load)

    async def follow(self) -> None:
        """Use the rules of the policy in force. Takes up to some seconds for thousands of them."""
        while (wanted := self._wanted()) != self._rules:
            compiled = await trio.to_thread.run_sync(_compiled, wanted)
            self.content.use(compiled)
            self._rules = wanted
            self._compiled.set()
            self._compiled = trio.Event()

    def looks_at(self, direction: str) -> bool:
        """See `BodyInspector`. By the policy in force, compiled or not."""
        return any(direction in rule.directions for rule in self._wanted())

    async def inspect(self, text: str, *, direction: str, caller: Caller | None = None) -> str | None:
        """See `Inspector`."""
        while True:
            rules = await self._current()
            found = await self.content.inspect(text, direction=direction, caller=caller)
            if rules == self._wanted():
                return found

    async def mask(
        self,
        text: str,
        *,
        direction: str,
        caller: Caller | None = None,
        start: int = 0,
        end: int | None = None,
    ) -> str:
        """See `MaskingInspector`."""
        while True:
            rules = await self._current()
            masked = await self.content.mask(text, direction=direction, caller=caller, start=start, end=end)
            if rules == self._wanted():
                return masked

    def _wanted(self) -> tuple[DlpRule, ...]:
        document = None if self._signed is None else self._signed.document
        return () if document is None else document.dlp

    async def _current(self) -> tuple[DlpRule, ...]:
        """The rules of the policy in force, once they are compiled."""
        self._load()
        while self._wanted() != self._rules:
            await self._compiled.wait()
        return self._rules


def _compiled(rules: tuple[DlpRule, ...]) -> CorporateRules:
    return compile_rules(
        CorporateRule(
            id=rule.id,
            kind=rule.kind,
            values=rule.values,
            directions=rule.directions,
            action=rule.action,
            sensitive=rule.sensitive,
        )
        for rule in rules
    )
