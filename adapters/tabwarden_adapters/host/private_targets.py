"""Which CDP targets an agent must never see: all that are not known for certain to be public."""

from typing import Final

# What pages are made of (Chromium's `DevToolsAgentHost::kType…`). Others show what the person types into the
# browser itself (`browser_ui`), or are new to us.
PAGE_TYPES: Final = frozenset({"page", "tab", "iframe", "worker", "shared_worker", "service_worker"})


class PrivateTargets:
    """Told of every target as it comes and goes. Incognito windows are browser contexts of their own, so a
    page is public only in the default one."""

    def __init__(self, default_context: str) -> None:
        """`default_context` is the id of the browser context of ordinary windows."""
        self._default_context = default_context
        self._excluded: set[str] = set()

    def seen(self, target_id: str, kind: str, context_id: str | None) -> None:
        """A target is there, or has changed. One that was private once stays so."""
        if context_id != self._default_context or kind not in PAGE_TYPES:
            self._excluded.add(target_id)

    def gone(self, target_id: str) -> None:
        """A target is closed. Its id is not given out again."""
        self._excluded.discard(target_id)

    def ids(self) -> list[str]:
        """Those to exclude, in order."""
        return sorted(self._excluded)
