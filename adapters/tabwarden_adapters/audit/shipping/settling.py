"""Which of the records that were sent over a connection count as taken: those after which it lived on."""

from collections import deque
from dataclasses import dataclass

from tabwarden_adapters.audit.segments import Head

_PARTS = 20  # so finely is the time divided: no more places than that are remembered


@dataclass(slots=True)
class _Sent:
    begun: float
    at: float
    head: Head


class Settling:
    """Of one connection at a time. Times are of one clock that never goes back, in seconds."""

    def __init__(self, settle_s: float) -> None:
        self._settle_s = settle_s
        self._waiting: deque[_Sent] = deque()
        self._last: Head | None = None

    def handed_over(self, head: Head) -> None:
        """All up to `head` is on its way."""
        self._last = head

    def sent(self, head: Head, now: float) -> None:
        """The other side's system has all up to `head`."""
        last = self._waiting[-1] if self._waiting else None
        if last is not None and now - last.begun < self._settle_s / _PARTS:
            last.at, last.head = now, head
        else:
            self._waiting.append(_Sent(now, now, head))

    def settled(self, now: float) -> Head | None:
        """The newest that counts as taken by now, once; None when there is no newer one."""
        head: Head | None = None
        while self._waiting and self._waiting[0].at + self._settle_s <= now:
            head = self._waiting.popleft().head
        return head

    def everything(self) -> Head | None:
        """All that was handed over, once, since the other side is known to have read it."""
        head = self._last
        self.forget()
        return head

    def forget(self) -> None:
        """The connection is gone."""
        self._waiting.clear()
        self._last = None
