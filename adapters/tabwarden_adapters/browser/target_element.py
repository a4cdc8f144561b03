"""The one element that an action is about, held in its document from the first look to the last.

`hands` runs page/act.js once and keeps the object that it makes: one document, one element, whatever the
page does meanwhile. Each step checks the call and the capture before and after (`Binding`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Final, Generic, TypeVar

import msgspec
import trio
from tabwarden.errors import ActionError, Code

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser import selectors
from tabwarden_adapters.browser.capture import Binding
from tabwarden_adapters.browser.cdp import CdpError, Command
from tabwarden_adapters.browser.cdp.generated import page, runtime
from tabwarden_adapters.browser.input import Point
from tabwarden_adapters.browser.tab import WORLD, Tab

T = TypeVar("T")

STEP: Final = "function (method, ...values) { return this[method](...values); }"
OBJECTS: Final = "tabwarden-hands"  # handles on page objects, released together


class Why(StrEnum):
    """Why a target was denied. It goes to the audit as the rule that decided, never to the agent."""

    NONE = "target-none"  # no element
    SEVERAL = "target-several"
    GONE = "target-gone"  # no longer in the document
    SENSITIVE = "target-sensitive"  # it, what is around it, or the field that its label names
    KIND = "target-kind"  # not a thing that this action works on
    READONLY = "target-readonly"
    DISABLED = "target-disabled"  # itself, its fieldset, inert, or said so by ARIA
    UNSEEN = "target-unseen"  # hidden, transparent, or without a size
    OUT_OF_VIEW = "target-out-of-view"  # nothing of it can be scrolled into view
    MOVING = "target-moving"
    NOT_PAINTED = "target-not-painted"
    COVERED = "target-covered"  # a pointer would meet something else
    NOT_FOCUSED = "target-not-focused"  # a click did not put the focus there
    OPTION = "target-option"  # no such option, several, or one that may not be chosen
    SUBMITS_SECRETS = "target-submits-secrets"  # would send a form with a filled sensitive field


# Layout can settle: these are worth another look.
PASSING: Final = frozenset((Why.UNSEEN, Why.OUT_OF_VIEW, Why.COVERED, Why.MOVING))


class Step(msgspec.Struct, frozen=True):
    """What a step answers: `denied` is a `Why` without `target-`, or None."""

    denied: str | None = None

    def why(self) -> Why | None:
        """The reason, if there is one. Raises `ActionError` for one that is none of ours."""
        if self.denied is None:
            return None
        try:
            return Why("target-" + self.denied)
        except ValueError:
            raise ActionError(Code.FAILURE, committed=None) from None


class _Found(msgspec.Struct, frozen=True):
    count: int
    stale: bool


class _Prepared(Step, frozen=True):
    x: float = 0.0
    y: float = 0.0


S = TypeVar("S", bound=Step)


def denial(why: Why) -> ActionError:
    """`target-denied`, with the reason for the audit."""
    return ActionError(Code.TARGET_DENIED, rule=why.value)


class Answer(Generic[T]):
    """The answer of a step that was asked for beforehand. `value` stays None when none came."""

    def __init__(self) -> None:
        self.value: T | None = None
        self._arrived = trio.Event()

    def arrive(self, value: T | None) -> None:
        """Note it; None: there will be none."""
        self.value = value
        self._arrived.set()

    async def within(self, seconds: float) -> T | None:
        """Wait for it so long."""
        with trio.move_on_after(seconds):
            await self._arrived.wait()
        return self.value


class Hands:
    """The object that act.js made, and its element."""

    def __init__(self, binding: Binding, tab: Tab, object_id: str) -> None:
        self._binding = binding
        self._object_id = object_id
        self.tab = tab

    async def step(self, kind: type[T], method: str, *values: object) -> T:
        """One step of act.js. Raises `ActionError`: `stale`, `session-gone`, `failure`."""
        return self._value(kind, await self._binding.call(self._command(method, values)))

    async def require(self, kind: type[S], method: str, *values: object) -> S:
        """`step`, raising `target-denied` when that is what it answers."""
        answer = await self.step(kind, method, *values)
        why = answer.why()
        if why is not None:
            raise denial(why)
        return answer

    async def look(self, text: str) -> None:
        """Find the element. Raises `ActionError`: `target-denied`, `stale-ref`, `invalid-arguments`."""
        found = await self.step(_Found, "look", selectors.target(text).argument())
        if found.stale:
            raise ActionError(Code.STALE_REF)
        if found.count != 1:
            raise denial(Why.SEVERAL if found.count else Why.NONE)

    async def prepare(self, action: str) -> Point:
        """Bring it into view and find a point where a pointer meets it. Raises `target-denied`."""
        prepared = await self.require(_Prepared, "prepare", action)
        return Point(prepared.x, prepared.y)

    def ask(self, kind: type[T], method: str) -> Answer[T]:
        """Begin a step whose answer comes by itself, also from a document that is being left, which takes no
        more questions: Chromium holds them back until the next document is there."""
        answer = Answer[T]()

        def told(result: runtime.CallFunctionOnResult | CdpError) -> None:
            try:
                answer.arrive(None if isinstance(result, CdpError) else self._value(kind, result))
            except ActionError:
                answer.arrive(None)

        self.tab.session.ask(self._command(method, ()), told)
        return answer

    def post(self, method: str) -> None:
        """A step for the way out: not waited for, and it cannot fail."""
        self.tab.session.post(self._command(method, ()))

    def _command(self, method: str, values: tuple[object, ...]) -> Command[runtime.CallFunctionOnResult]:
        return runtime.call_function_on(
            function_declaration=STEP,
            object_id=self._object_id,
            arguments=[runtime.CallArgument(value=value) for value in (method, *values)],
            return_by_value=True,
            await_promise=True,
            object_group=OBJECTS,
        )

    @staticmethod
    def _value(kind: type[T], result: runtime.CallFunctionOnResult) -> T:
        if result.exception_details is not None:
            raise ActionError(Code.FAILURE, committed=None)
        try:
            return msgspec.convert(result.result.value, kind)
        except msgspec.ValidationError:
            raise ActionError(Code.FAILURE, committed=None) from None


@asynccontextmanager
async def hands(binding: Binding, url: str) -> AsyncIterator[Hands]:
    """Take hold of the captured document, which was at `url`. Raises `ActionError`."""
    tab = binding.check()
    held: Hands | None = None
    try:
        world = await binding.call(page.create_isolated_world(frame_id=tab.target_id, world_name=WORLD))
        document = await binding.call(
            runtime.evaluate(
                expression="document", context_id=world.execution_context_id, object_group=OBJECTS
            )
        )
        # The capture still held after this answer, so the handle is one on the captured document.
        made = await binding.call(
            runtime.call_function_on(
                function_declaration=scripts.ACT,
                object_id=document.result.object_id,
                arguments=[runtime.CallArgument(value=url)],
                object_group=OBJECTS,
            )
        )
        if made.exception_details is not None:
            raise ActionError(Code.FAILURE)
        if made.result.object_id is None:
            raise ActionError(Code.STALE)
        held = Hands(binding, tab, made.result.object_id)
        yield held
    finally:
        if held is not None:
            held.post("done")
        tab.session.post(runtime.release_object_group(object_group=OBJECTS))
