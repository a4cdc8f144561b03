"""Reading a page's visible text: one fixed script, bound to the captured document (CDP domain Runtime)."""

from dataclasses import dataclass, field

import msgspec
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser.capture import Binding
from tabwarden_adapters.browser.cdp.generated import page, runtime
from tabwarden_adapters.browser.tab import WORLD
from tabwarden_adapters.browser.text import visible_text

READ_CHARACTERS = 10_000  # agent-api: what one read may return
OBJECTS = "tabwarden"  # handles on page objects, released together


@dataclass(frozen=True, slots=True)
class PageWindow:
    """A window of a page's visible text. `next_offset` is None at its end. Offsets count characters."""

    text: str = field(repr=False)
    next_offset: int | None


class _Answer(msgspec.Struct):
    text: str
    next: int | None


async def read_text(binding: Binding, url: str, offset: int) -> PageWindow:
    """The visible text of the document at `url` (as captured) from character `offset` on.

    Raises `ActionError`: `stale`, `session-gone`, or `failure` when the page broke the script.
    """
    answer = await call_in_document(binding, scripts.READ, url, offset, READ_CHARACTERS)
    try:
        window = msgspec.convert(answer, _Answer)
    except msgspec.ValidationError:
        raise ActionError(Code.FAILURE) from None
    text = visible_text(window.text)
    if len(text) > READ_CHARACTERS:
        raise ActionError(Code.FAILURE)
    return PageWindow(text, window.next)


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
