"""Those who are shown every finished request, in the thread that exports."""

from collections.abc import Callable
from contextlib import suppress

from tabwarden_observability.finishing import RequestReader
from tabwarden_observability.records import FinishedRequest, RawRequest

Observer = Callable[[FinishedRequest], None]


class Observers:
    """As long as there are none, a request is not even read."""

    def __init__(self, read: RequestReader) -> None:
        self._read = read
        self._observers: list[Observer] = []

    def add(self, observer: Observer) -> None:
        """From now on, show requests to this one too. From any thread."""
        self._observers.append(observer)

    def see(self, raw: RawRequest) -> None:
        """Show one. What an observer raises is dropped."""
        if not self._observers:
            return
        with suppress(Exception):
            request = self._read(raw)
            for observer in self._observers:
                with suppress(Exception):
                    observer(request)
