"""`settings:get` and `settings:update`: the three appearance settings, as far as the policy shows them."""

from functools import partial
from typing import Any

from msgspec import UNSET
from tabwarden import actions
from tabwarden.errors import ActionError, Code
from tabwarden.ports import CallContext

from tabwarden_adapters.application.judging import Judge
from tabwarden_adapters.application.policy import APPEARANCE, ApplicationPolicy
from tabwarden_adapters.application.ports import SettingsStore

BUILT_IN = actions.Appearance(mode="system", accent="blue", tab_mode="separate")
_WIRE_NAMES = {"mode": "mode", "accent": "accent", "tab_mode": "tabMode"}


class SettingControls:
    """Both actions on one store."""

    def __init__(self, store: SettingsStore, judge: Judge) -> None:
        self._store = store
        self._judge = judge

    async def get(
        self, arguments: actions.Arguments, call: CallContext, policy_version: int, /
    ) -> actions.SettingsView:
        """What is shown to agents, and the names of what is hidden and locked."""
        policy = self._judge.policy(call, policy_version)
        appearance = await self._store.appearance()
        call.check()
        return _view(policy, appearance)

    async def update(
        self, arguments: actions.UpdateSettings, call: CallContext, policy_version: int, /
    ) -> actions.SettingsView:
        """All of the named settings, or none: one that is hidden or locked refuses the whole."""
        policy = self._judge.policy(call, policy_version)
        wanted = [name for name in _WIRE_NAMES if getattr(arguments.appearance, name) is not UNSET]
        if not wanted:
            raise ActionError(Code.INVALID_ARGUMENTS)
        for name in wanted:
            if not policy.shows(APPEARANCE, _WIRE_NAMES[name]):
                raise ActionError(Code.POLICY_DENIED, rule="settings.hidden")
            if policy.is_locked(APPEARANCE, _WIRE_NAMES[name]):
                raise ActionError(Code.POLICY_DENIED, rule="settings.locked")
        look = partial(self._judge.last_look, call, policy, ())
        after = await self._store.change_appearance(arguments.appearance, look)
        call.effects_done()
        call.check()
        return _view(policy, after)


def in_force(policy: ApplicationPolicy, stored: actions.Appearance, name: str) -> str:
    """The value of one setting: a locked one has the policy's, else what was set, else its beginning."""
    locked = policy.is_locked(APPEARANCE, _WIRE_NAMES[name])
    order = (policy.appearance, stored) if locked else (stored, policy.appearance)
    values = (getattr(one, name) for one in (*order, BUILT_IN))
    return next(str(value) for value in values if value is not UNSET)


def _view(policy: ApplicationPolicy, stored: actions.Appearance) -> actions.SettingsView:
    shown: dict[str, Any] = {
        name: in_force(policy, stored, name)
        for name, wire_name in _WIRE_NAMES.items()
        if policy.shows(APPEARANCE, wire_name)
    }
    return actions.SettingsView(
        visible=sorted(name for name in policy.visible if policy.shows(*name.split("."))),
        hidden_sections=sorted(policy.hidden),
        locked_sections=sorted(policy.locked),
        appearance=actions.Appearance(**shown),
    )
