"""Taking a picture of a page together with the places of what must not be seen in it (CDP domains Page,
Animation, DOMSnapshot, Runtime).

Places and pixels must be of one moment, or a page that moves would be masked where it was. So the page is
brought to a standstill (no script, timer or frame callback of it runs, nothing is animated), the places are
measured before and after the pixels are taken, and a picture whose places differ is thrown away.
"""

import base64
import binascii
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

import msgspec
import trio
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser.capture import Binding, claimed
from tabwarden_adapters.browser.cdp import Command
from tabwarden_adapters.browser.cdp.generated import (
    animation,
    dom,
    dom_snapshot,
    overlay,
    page,
    runtime,
)
from tabwarden_adapters.browser.shot import Region, Shot, ShownText
from tabwarden_adapters.browser.tab import WORLD, Tab

T = TypeVar("T")
Change = Callable[[], Awaitable[None]]

ATTEMPTS: Final = 3  # a scroll that is under way ends meanwhile; what never rests is refused
BUDGET_MS: Final = 2_000  # of one look at the page: it stands still for three of them
CLOSED_PARTS: Final = 2_000  # elements inside of closed shadow trees that are looked at: each costs a call
DRAWN_S: Final = 3.0  # a frame takes some 50 ms, on a busy machine a second; the page stands still for it
RESUMED_S: Final = 0.2  # a page goes on within a millisecond, unless its own script has not come to an end
SCROLL_BAR: Final = 24  # CSS pixels: what a viewport may be smaller than its picture
UNPROVED: Final = "masking-not-proved"  # the audit's rule

OBJECTS: Final = "tabwarden-shot"  # handles on page objects, released together
DISCARDED: Final = page.capture_screenshot(format="jpeg", quality=1, optimize_for_speed=True)
STEP: Final = "function (method, ...values) { return this[method](...values); }"


class _View(msgspec.Struct, frozen=True):
    scale: float  # of a pinch; 1 without
    left: float
    top: float
    width: float
    height: float
    ratio: float  # device pixels in a CSS pixel

    @property
    def pixels(self) -> float:
        return self.scale * self.ratio

    def region(self, box: Region) -> Region:
        left, top, right, bottom = box
        return (
            (left - self.left) * self.pixels,
            (top - self.top) * self.pixels,
            (right - self.left) * self.pixels,
            (bottom - self.top) * self.pixels,
        )

    def fits(self, width: int, height: int) -> bool:
        """Whether a picture of this size is one of this view."""
        beyond = [(width, self.width * self.pixels), (height, self.height * self.pixels)]
        return all(-2 <= real - told <= SCROLL_BAR * self.pixels + 2 for real, told in beyond)


class _Text(msgspec.Struct, frozen=True):
    text: str
    regions: list[Region]
    lost: bool


class _Measure(msgspec.Struct, frozen=True):
    view: _View
    at: tuple[float, float, float, float]
    regions: list[Region]
    things: int
    trouble: str
    texts: list[_Text]


async def take_shot(binding: Binding, url: str, tab_change: Change, *, texts: bool) -> Shot:
    """The pixels of the captured document, which was at `url`, as `shot.TakeShot` has it.

    The tab has to be in front: one behind is not always drawn when it stands still. `tab_change` returns
    after the next change of what is in front.
    """
    tab = binding.check()
    for _ in range(ATTEMPTS):
        # An action at the same time could scroll there and back while the pixels are taken.
        with claimed(tab):
            shot = await _attempt(binding, tab, url, tab_change, texts)
        if shot is not None:
            return shot
    raise ActionError(Code.BUSY)


async def _attempt(binding: Binding, tab: Tab, url: str, tab_change: Change, texts: bool) -> Shot | None:
    drawn = partial(_drawn, binding, tab_change)
    async with _standstill(binding, tab, url) as camera:
        await _compositor_follows(binding)
        await drawn(DISCARDED)
        await drawn(DISCARDED)
        before = _proved(await camera.measure(texts))
        taken = await drawn(page.capture_screenshot(format="png", optimize_for_speed=True))
        # Nor does it ask the page when a person scrolls: after another frame, the page knows how far it went.
        await drawn(DISCARDED)
        after = _proved(await camera.measure(texts))
        stood = camera.stood_still
    if before != after or before.trouble or not stood:
        return None
    try:
        png = base64.b64decode(taken.data, validate=True)
    except binascii.Error:
        raise ActionError(Code.FAILURE) from None
    if not before.view.fits(*_png_size(png)):
        return None
    return Shot(
        png,
        tuple(map(before.view.region, before.regions)),
        before.things,
        tuple(
            ShownText(one.text, None if one.lost else tuple(map(before.view.region, one.regions)))
            for one in before.texts
        ),
    )


def _proved(measure: _Measure) -> _Measure:
    """Raise `ActionError` when nothing is to be hoped for from another look."""
    if measure.trouble == "large":
        raise ActionError(Code.RESULT_TOO_LARGE)
    if measure.trouble == "unproved":
        raise ActionError(Code.TARGET_DENIED, rule=UNPROVED)
    return measure


async def _drawn(
    binding: Binding, tab_change: Change, command: Command[page.CaptureScreenshotResult]
) -> page.CaptureScreenshotResult:
    """A frame of the tab. Raises `ActionError`, with `browser-management-busy` when none is drawn.

    The answer may never come once another tab is in front.
    """
    taken: page.CaptureScreenshotResult | None = None
    error = ActionError(Code.BUSY)
    with trio.move_on_after(DRAWN_S):
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                nonlocal error
                while True:
                    try:
                        binding.check()
                    except ActionError as why:
                        error = why
                        nursery.cancel_scope.cancel()
                    await tab_change()

            nursery.start_soon(watch)
            try:
                taken = await binding.call(command)
            except ActionError as why:
                error = why
            nursery.cancel_scope.cancel()
    if taken is None:
        raise error
    return taken


async def _compositor_follows(binding: Binding) -> None:
    """Have the compositor draw things where the page has them, from the next frame but one.

    What it animates by itself is a frame ahead, and stays there when the animation stops: it is only told of
    what has changed. A layer more (of nothing, drawn in no colour) makes it start from the page's places.
    """
    await binding.call(dom.enable())
    await binding.call(overlay.enable())
    await binding.call(
        overlay.highlight_rect(x=0, y=0, width=1, height=1, color=dom.RGBA(r=0, g=0, b=0, a=0))
    )


def _png_size(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG: its first chunk (ISO/IEC 15948, 11.2.1)."""
    if png[:8] != b"\x89PNG\r\n\x1a\n" or png[12:16] != b"IHDR" or len(png) < 24:
        raise ActionError(Code.FAILURE)
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


class _Camera:
    """The object that shot.js made, in a page at a standstill."""

    def __init__(self, binding: Binding, object_id: str, resumed: trio.Event) -> None:
        self._binding = binding
        self._object_id = object_id
        self._resumed = resumed

    @property
    def stood_still(self) -> bool:
        """True when nothing has set the page going since."""
        return not self._resumed.is_set()

    async def measure(self, texts: bool) -> _Measure:
        return await self.step(_Measure, "measure", texts, BUDGET_MS)

    async def step(self, kind: type[T], method: str, *values: object, nodes: tuple[str, ...] = ()) -> T:
        result = await self._binding.call(step(self._object_id, method, *values, nodes=nodes))
        if result.exception_details is not None:
            raise ActionError(Code.FAILURE)
        try:
            return msgspec.convert(result.result.value, kind)
        except msgspec.ValidationError:
            raise ActionError(Code.FAILURE) from None


def step(
    object_id: str, method: str, *values: object, nodes: tuple[str, ...] = ()
) -> Command[runtime.CallFunctionOnResult]:
    """A step of shot.js; `nodes` are handles, passed after the values."""
    arguments = [runtime.CallArgument(value=value) for value in (method, *values)]
    return runtime.call_function_on(
        function_declaration=STEP,
        object_id=object_id,
        arguments=[*arguments, *(runtime.CallArgument(object_id=node) for node in nodes)],
        return_by_value=True,
        object_group=OBJECTS,
    )


@asynccontextmanager
async def _standstill(binding: Binding, tab: Tab, url: str) -> AsyncIterator[_Camera]:
    """The captured document, as it is at one moment, while the block runs."""
    session = tab.session
    resumed = trio.Event()
    object_id: str | None = None

    def moved(event: page.FrameNavigated) -> None:
        # Chromium hands an unanswered command on to the next document: that would stand still as well.
        if event.frame.id == tab.target_id:
            session.post(runtime.run_if_waiting_for_debugger())

    def goes_on(answer: object) -> None:
        resumed.set()
        unwatch()

    unwatch = session.on(page.FrameNavigated, moved)
    # It is answered when the page goes on; all that comes after it is answered from within.
    session.ask(page.wait_for_debugger(), goes_on)
    try:
        world = await binding.call(page.create_isolated_world(frame_id=tab.target_id, world_name=WORLD))
        context_id = world.execution_context_id
        document = await binding.call(
            runtime.evaluate(expression="document", context_id=context_id, object_group=OBJECTS)
        )
        # The capture still held after this answer, so the handle is one on the captured document.
        made = await binding.call(
            runtime.call_function_on(
                function_declaration=scripts.SHOT,
                object_id=document.result.object_id,
                arguments=[runtime.CallArgument(value=url)],
                object_group=OBJECTS,
            )
        )
        if made.exception_details is not None:
            raise ActionError(Code.FAILURE)
        object_id = made.result.object_id
        if object_id is None:
            raise ActionError(Code.STALE)
        camera = _Camera(binding, object_id, resumed)
        if not await camera.step(bool, "small"):
            raise ActionError(Code.RESULT_TOO_LARGE)
        await binding.call(animation.set_playback_rate(playback_rate=0))
        await _know_closed_trees(binding, camera, context_id)
        await camera.step(int, "still", BUDGET_MS)
        yield camera
    finally:
        # In this order, and before the page's next script: it finds everything as it was.
        if object_id is not None:
            session.post(step(object_id, "done"))
        session.post(overlay.disable())
        session.post(dom.disable())
        session.post(animation.set_playback_rate(playback_rate=1))
        session.post(runtime.run_if_waiting_for_debugger())
        session.post(runtime.release_object_group(object_group=OBJECTS))
        # Nobody's page may be left like that.
        with trio.move_on_after(RESUMED_S, shield=True):
            await resumed.wait()
        if not resumed.is_set():
            session.post(runtime.run_if_waiting_for_debugger())


async def _know_closed_trees(binding: Binding, camera: _Camera, context_id: int) -> None:
    """Tell the script of closed shadow trees: no script can find them, but CDP can."""

    async def handle(backend_node_id: int) -> str | None:
        found = await binding.call(
            dom.resolve_node(
                backend_node_id=backend_node_id, execution_context_id=context_id, object_group=OBJECTS
            )
        )
        return found.object.object_id

    handles: list[str] = []
    taken = await binding.call(dom_snapshot.capture_snapshot(computed_styles=[]))
    for document in taken.documents:
        wanted = _in_closed_trees(document.nodes, taken.strings)
        # A document that our world may not touch is of another origin, and masked as a whole.
        if not wanted or await handle(wanted[0]) is None:
            continue
        for node in wanted[1:]:
            found = await handle(node)
            if found is None or len(handles) == CLOSED_PARTS:
                raise ActionError(Code.TARGET_DENIED, rule=UNPROVED)
            handles.append(found)
    await camera.step(int, "know", nodes=tuple(handles))


def _in_closed_trees(nodes: dom_snapshot.NodeTreeSnapshot, strings: list[str]) -> list[int]:
    """The backend ids of the document and of nodes in its closed shadow trees, one of each tree at least.
    Nothing when it has none."""
    kinds, parents, ids = nodes.shadow_root_type, nodes.parent_index, nodes.backend_node_id
    if kinds is None or parents is None or ids is None:
        return []
    try:
        inside = sorted(
            index for index, kind in zip(kinds.index, kinds.value, strict=True) if strings[kind] == "closed"
        )
        # The roots are no nodes of the snapshot: their children have the host as their parent, as its other
        # children have. So each node with such a child is asked for, by the first of them.
        firsts = {parents[index]: ids[index] for index in reversed(inside)}
        return [ids[0], *firsts.values()] if firsts else []
    except (IndexError, ValueError):
        raise ActionError(Code.FAILURE) from None
