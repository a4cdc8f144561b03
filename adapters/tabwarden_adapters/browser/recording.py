"""The adapter-level audit: told before an action begins and after it has ended."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Literal, TypeVar

import trio
from tabwarden.errors import DENIALS, ActionError, Code

from tabwarden_adapters.browser.contract import AdapterAudit, AdapterEvent
from tabwarden_adapters.browser.operation import HostOperation

T = TypeVar("T")
Outcome = Literal["started", "completed", "denied", "failed"]

END_S: Final = 2.0  # a record takes milliseconds; a call that is over must not wait for a disk that hangs


class Recorder:
    """Without an audit it records nothing: the broker has one of its own."""

    def __init__(self, audit: AdapterAudit | None) -> None:
        self._audit = audit

    async def record(
        self, operation: HostOperation, work: Callable[[], Awaitable[T]], settled: Callable[[T], None]
    ) -> T:
        """Do `work` between two records. `settled` gets its result after the last one, and raises when it is
        void by then.

        Raises what `work` does; `audit-unavailable` when a record cannot be made: without the first nothing
        has begun, without the last the result is withheld.
        """
        if self._audit is None:
            return await work()
        await self._tell(self._audit, operation, "started", False)
        try:
            result = await work()
        except ActionError as error:
            committed = error.committed if operation.committed is False else operation.committed
            await self._tell_end(self._audit, operation, _outcome(error.code), committed)
            raise
        except BaseException:
            # Cancelled, or the host's fault. Nothing is returned, so nothing depends on this record.
            with suppress(ActionError):
                await self._tell_end(self._audit, operation, "failed", operation.committed)
            raise
        await self._tell_end(self._audit, operation, "completed", operation.committed)
        settled(result)
        return result

    async def _tell_end(
        self, audit: AdapterAudit, operation: HostOperation, outcome: Outcome, committed: bool | None
    ) -> None:
        with trio.move_on_after(END_S, shield=True):
            await self._tell(audit, operation, outcome, committed)
            return
        raise ActionError(Code.AUDIT_UNAVAILABLE, committed=committed)

    @staticmethod
    async def _tell(
        audit: AdapterAudit, operation: HostOperation, outcome: Outcome, committed: bool | None
    ) -> None:
        try:
            await audit(AdapterEvent(operation.action, operation.session_id, outcome, committed))
        except Exception:
            raise ActionError(Code.AUDIT_UNAVAILABLE, committed=committed) from None


def _outcome(code: Code) -> Outcome:
    return "denied" if code in DENIALS else "failed"
