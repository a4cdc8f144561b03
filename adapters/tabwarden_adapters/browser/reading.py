"""Reading a page's visible text: one fixed script, bound to the captured document (CDP domain Runtime)."""

from dataclasses import dataclass, field
from typing import Protocol

import msgspec
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser.capture import Binding
from tabwarden_adapters.browser.cdp.generated import page, runtime
from tabwarden_adapters.browser.tab import WORLD
from tabwarden_adapters.browser.text import visible_text, visible_window

READ_CHARACTERS = 10_000  # agent-api: what one read may return
MARGIN = 4096  # characters looked at on both sides of a window: no cut may hide what an inspector would find
BUDGET_MS = 6_000  # how long a page may be kept busy: an action has ten seconds
OBJECTS = "tabwarden"  # handles on page objects, released together
SCRIPTS = "tabwarden-scripts"  # handles that stay as long as the document
HELD = 8  # scripts held of one document; each is compiled once and begins anew at each call
# In an object: of a function itself, the answer would bring all of its source along.
MAKE = "function () {{ return {{ call: (...values) => ({script}).apply(this, values) }}; }}"
CALL = "function (...values) { return this.call(...values); }"


@dataclass(frozen=True, slots=True)
class PageWindow:
    """A window of a page's visible text. `next_offset` is None at its end. Offsets count characters.

    `around` is the text with the margins that were asked for; the window begins at `start` of it.
    `frames_not_read`: for each frame that shows and was not read, the origin that it was told to load, or
    `frame`.
    """

    text: str = field(repr=False)
    next_offset: int | None
    frames_not_read: list[str]
    around: str = field(default="", repr=False)
    start: int = 0


class _Answer(msgspec.Struct):
    text: str
    next: int | None
    frames: list[str]
    cut: bool


class Run(Protocol):
    """Calls a fixed script in the captured document, with the captured address and `arguments`. The answer
    is not to be believed: it may come from any engine."""

    async def __call__(self, script: str, /, *arguments: object) -> object: ...


async def read_text(run: Run, offset: int, margin: int = 0) -> PageWindow:
    """The visible text of the captured document from character `offset` on, with up to `margin` characters
    before and after it.

    Raises `ActionError`: `stale`, `session-gone`, `result-too-large` when nothing could be read in the time
    that a page may be kept busy, or `failure` when the page broke the script.
    """
    ahead = min(offset, margin)
    characters = ahead + READ_CHARACTERS + margin
    answer = await run(scripts.READ, offset - ahead, characters, BUDGET_MS)
    if answer is None:
        raise ActionError(Code.STALE)
    try:
        window = msgspec.convert(answer, _Answer)
    except msgspec.ValidationError:
        raise ActionError(Code.FAILURE) from None
    if window.cut and len(window.text) <= ahead:
        raise ActionError(Code.RESULT_TOO_LARGE)
    around = visible_window(window.text)
    if len(around) > characters:
        raise ActionError(Code.FAILURE)
    end = ahead + READ_CHARACTERS
    following = window.next if len(around) <= end else offset + READ_CHARACTERS
    frames = [visible_text(name) for name in window.frames]
    return PageWindow(around[ahead:end], following, frames, around, ahead)


async def call_in_document(binding: Binding, script: str, url: str, *arguments: object) -> object:
    """Call a fixed script in our isolated world with the captured document as `this`.

    `script` gets `url` and `arguments` as values, and answers null when the document is not at `url`.
    Raises `ActionError`.
    """
    held = binding.check().held()
    object_id = held.get(script)
    if object_id is None:
        object_id = await _take(binding, script)
        if len(held) < HELD:
            held[script] = object_id
    try:
        result = await binding.call(
            runtime.call_function_on(
                function_declaration=CALL,
                object_id=object_id,
                arguments=[runtime.CallArgument(value=value) for value in (url, *arguments)],
                return_by_value=True,
            )
        )
    except ActionError:
        held.pop(script, None)
        raise
    if result.exception_details is not None:
        raise ActionError(Code.FAILURE)
    if result.result.value is None:
        raise ActionError(Code.STALE)
    return result.result.value


async def _take(binding: Binding, script: str) -> str:
    """A handle on the script, ready to be called in the captured document as long as that is there.

    The handle on the document names its renderer and its context, which a context's number does not: in
    another process the same number can be a page's own world.
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
        made = await binding.call(
            runtime.call_function_on(
                function_declaration=MAKE.format(script=script),
                object_id=document.result.object_id,
                object_group=SCRIPTS,
            )
        )
    finally:
        tab.session.post(runtime.release_object_group(object_group=OBJECTS))
    if made.exception_details is not None or made.result.object_id is None:
        raise ActionError(Code.FAILURE)
    return made.result.object_id
