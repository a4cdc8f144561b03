"""What an AI gateway may know of a captured page: its visible text, read as `read` reads it."""

from dataclasses import dataclass, field

from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser.contract import CapturedContext, Operation
from tabwarden_adapters.browser.reading import MARGIN, READ_CHARACTERS, read_text
from tabwarden_adapters.browser.urls import destination, origin


@dataclass(frozen=True, slots=True)
class CapturedText:
    """`following`: what comes after `text`, to be looked at with it. `cut`: the page has more text than this,
    or frames that were not read. `title` is not known here."""

    origin: str
    text: str = field(repr=False)
    following: str = field(repr=False)
    cut: bool
    title: str = field(default="", repr=False)


async def captured_text(captured: CapturedContext, operation: Operation, /) -> CapturedText:
    """The first 10,000 characters of the captured document's visible text.

    Checks the call, the capture and the destination before and after. Raises `ActionError` as `read` does.
    """
    url = captured.page.url

    def require() -> str:
        operation.check()
        if not operation.current():
            raise ActionError(Code.STALE)
        href = destination(url)
        if href is None or not operation.allowed(href):
            raise ActionError(Code.DESTINATION_DENIED)
        return href

    async def run(script: str, /, *arguments: object) -> object:
        require()
        answer = await captured.page.run(script, (url, *arguments), operation)
        require()
        return answer

    window = await read_text(run, 0, MARGIN)
    more = window.next_offset is not None or bool(window.frames_not_read)
    return CapturedText(origin(require()), window.text, window.around[READ_CHARACTERS:], more)
