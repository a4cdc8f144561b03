"""What the content inspector must see before it goes on (port `Inspector`)."""

from typing import Final

from tabwarden.ports import Inspector, MaskingInspector

from tabwarden_adapters.ai.faults import INSPECTOR, failed
from tabwarden_adapters.ai.ports import Operation, still

# The directions that an inspector is told, as policies name them.
FROM_PAGE: Final = "from-page"
TO_MODEL: Final = "to-model"
FROM_MODEL: Final = "from-model"


class Look:
    """One call's look at texts that go one way."""

    def __init__(self, inspector: Inspector, direction: str, operation: Operation) -> None:
        self._inspector = inspector
        self._direction = direction
        self._operation = operation

    async def __call__(self, text: str, start: int, end: int) -> str:
        """The characters from `start` to before `end` as they may go on, after all of `text` was looked
        through; an inspector that masks may have replaced some.

        Raises `ActionError` (`content-denied`), or whatever the inspector raised.
        """
        if not text:
            return ""
        inspector, operation = self._inspector, self._operation
        with operation.trace.child("ai.inspection"):
            if isinstance(inspector, MaskingInspector):
                masked: object = await inspector.mask(
                    text, direction=self._direction, caller=operation.caller, start=start, end=end
                )
                still(operation)
                if type(masked) is str:
                    return masked
                raise failed(INSPECTOR)
            finding: object = await inspector.inspect(
                text, direction=self._direction, caller=operation.caller
            )
        still(operation)
        if finding is not None and type(finding) is not str:
            raise failed(INSPECTOR)
        return text[start:end]
