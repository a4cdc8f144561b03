"""The rule behind a destination that an adapter was refused. The contract's predicate answers yes or no, so
the policy leaves its rule here, in the context of the call that asks, and the denial takes it up."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from tabwarden.errors import ActionError, Code
from tabwarden.ports import ActionAdapter, CallContext

_LAST: ContextVar[list[str] | None] = ContextVar("tabwarden_denied_by", default=None)


def note_denial(rule: str) -> None:
    """A destination was refused by this rule. Kept only inside a call of `naming_denials`."""
    last = _LAST.get()
    if last is not None:
        last[:] = [rule]


def naming_denials(actions: Mapping[str, ActionAdapter]) -> dict[str, ActionAdapter]:
    """The same adapters, whose denials of a destination name the rule of the last one that was refused."""
    return {name: _Naming(adapter) for name, adapter in actions.items()}


class _Naming:
    """Implements `ActionAdapter` around another."""

    def __init__(self, adapter: ActionAdapter) -> None:
        self._adapter = adapter

    async def __call__(self, arguments: Any, context: CallContext, /) -> object:
        last: list[str] = []
        token = _LAST.set(last)
        try:
            return await self._adapter(arguments, context)
        except ActionError as error:
            if error.code is Code.DESTINATION_DENIED and error.rule is None and last:
                raise ActionError(error.code, rule=last[0], committed=error.committed) from None
            raise
        finally:
            _LAST.reset(token)
