"""What the content inspector must see before it is let out (port `Inspector`)."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from tabwarden.errors import ActionError, Code
from tabwarden.ports import Inspector, MaskingInspector

from tabwarden_adapters.browser.operation import HostOperation, broken
from tabwarden_adapters.browser.text import TITLE_CHARACTERS

# The directions that an inspector is told.
FROM_PAGE: Final = "from-page"  # to the agent: read text, controls, titles, bookmarks
TO_PAGE: Final = "to-page"  # from the agent: typed text, addresses
TO_MODEL: Final = "to-model"  # a prompt
FROM_MODEL: Final = "from-model"  # its answer


class Gate:
    """Lets text pass, or raises. Without an inspector everything passes."""

    def __init__(self, inspector: Inspector | None) -> None:
        self._inspector = inspector

    async def passes(self, text: str, direction: str, operation: HostOperation) -> None:
        """Return when `text` may go on. Raises `ActionError` (`content-denied`), or whatever the inspector
        raised: then nothing of it goes on either."""
        if self._inspector is None or not text:
            return
        operation.check()
        finding: object = await self._inspector.inspect(text, direction=direction, caller=operation.caller)
        operation.check()
        if finding is not None and type(finding) is not str:
            raise broken(operation.committed)

    @property
    def looks(self) -> bool:
        """Whether there is an inspector at all."""
        return self._inspector is not None

    async def released(
        self, text: str, direction: str, operation: HostOperation, start: int = 0, end: int | None = None
    ) -> str:
        """The characters from `start` to before `end` as they may go on, after all of `text` was looked
        through; an inspector that masks may have replaced some. Raises as `passes`."""
        inspector = self._inspector
        if not text or not isinstance(inspector, MaskingInspector):
            await self.passes(text, direction, operation)
            return text[start:end]
        operation.check()
        masked: object = await inspector.mask(
            text, direction=direction, caller=operation.caller, start=start, end=end
        )
        operation.check()
        if type(masked) is not str:
            raise broken(operation.committed)
        return masked

    async def value_passes(self, value: object, operation: HostOperation) -> None:
        """`passes` for every text in a result on its way to the agent."""
        if self._inspector is not None:
            try:
                found = "\n".join(_texts(msgspec.to_builtins(value)))
            except Exception:
                raise broken(operation.committed) from None
            await self.passes(found, FROM_PAGE, operation)

    async def title(self, whole: str, operation: HostOperation) -> str:
        """A title as it may be told, cut; empty for one that must not pass: one page must not keep the others
        from being listed. What its cut would leave half of is seen whole."""
        try:
            return await self.released(whole, FROM_PAGE, operation, end=TITLE_CHARACTERS)
        except ActionError as error:
            if error.code is not Code.CONTENT_DENIED:
                raise
            return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
