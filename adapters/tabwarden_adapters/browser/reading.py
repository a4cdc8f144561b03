"""Reading a page's visible text: one fixed script, bound to the captured document (CDP domain Runtime)."""

from dataclasses import dataclass, field

import msgspec
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser.capture import Binding
from tabwarden_adapters.browser.cdp.generated import page, runtime
from tabwarden_adapters.browser.tab import WORLD
from tabwarden_adapters.browser.text import visible_text, visible_window

READ_CHARACTERS = 10_000  # agent-api: what one read may return
BUDGET_MS = 6_000  # how long a page may be kept busy: an action has ten seconds
OBJECTS = "tabwarden"  # handles on page objects, released together


@dataclass(frozen=True, slots=True)
class PageWindow:
    """A window of a page's visible text. `next_offset` is None at its end. Offsets count characters.

    `frames_not_read`: for each frame that shows and was not read, the origin that it was told to load, or
    `frame`.
    """

    text: str = field(repr=False)
    next_offset: int | None
    frames_not_read: list[str]


class _Answer(msgspec.Struct):
    text: str
    next: int | None
    frames: list[str]
    cut: bool


async def read_text(binding: Binding, url: str, offset: int) -> PageWindow:
    """The visible text of the document at `url` (as captured) from character `offset` on.

    Raises `ActionError`: `stale`, `session-gone`, `result-too-large` when nothing could be read in the time
    that a page may be kept busy, or `failure` when the page broke the script.
    """
    answer = await call_in_document(binding, scripts.READ, url, offset, READ_CHARACTERS, BUDGET_MS)
    try:
        window = msgspec.convert(answer, _Answer)
    except msgspec.ValidationError:
        raise ActionError(Code.FAILURE) from None
    if window.cut and not window.text:
        raise ActionError(Code.RESULT_TOO_LARGE)
    text = visible_window(window.text)
    if len(text) > READ_CHARACTERS:
        raise ActionError(Code.FAILURE)
    return PageWindow(text, window.next, [visible_text(name) for name in window.frames])


async def call_in_document(binding: Binding, script: str, url: str, *arguments: object) -> object:
    """Call a fixed script in our isolated world with the captured document as `this`.

    `script` gets `url` and `arguments` as values, and answers null when the document is not at `url`.
    The handle on the document names its renderer and its context, which a context's number does not: in
    another process the same number can be a page's own world. Raises `ActionError`.
    """
    tab = binding.check()
    world = await binding.call(page.create_isolated_world(frame_id=tab.target_id, world_name=WORLD))
    try:
        document = await binding.call(
            runtime.evaluate(
                expression="document", context_id=world.execution_context_id, object_group=OBJECTS
            )
        )
        # The capture still held after this answer, so the handle is one on the captured document.
        result = await binding.call(
            runtime.call_function_on(
                function_declaration=script,
                object_id=document.result.object_id,
                arguments=[runtime.CallArgument(value=value) for value in (url, *arguments)],
                return_by_value=True,
                object_group=OBJECTS,
            )
        )
    finally:
        tab.session.post(runtime.release_object_group(object_group=OBJECTS))
    if result.exception_details is not None:
        raise ActionError(Code.FAILURE)
    if result.result.value is None:
        raise ActionError(Code.STALE)
    return result.result.value
