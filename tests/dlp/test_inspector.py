"""The inspector in its loop: loading, limits, cancellation, rules that change, who may read what."""

import random
import threading

import pytest
import trio
from tabwarden.errors import ActionError, Code
from tabwarden.ports import Inspector, MaskingInspector
from tabwarden_adapters.dlp import ContentInspector, InspectionLimits, Result, compile_rules, start_inspector

from tests.dlp.samples import card, private_key
from tests.dlp.support import CALLER, OTHER, FakeCatalogue, denial, rule

PLAN = rule("words", "secret plan", sensitive=True)
STAFF = rule("pattern", r"EMP-\d{6}", id="staff", action="mask")
LONG = "word " * 2000  # so that a thread looks through it


class Panic(BaseException):
    """As a panic in native code arrives."""


@pytest.fixture
async def catalogue():
    return FakeCatalogue()


@pytest.fixture
async def inspector(nursery, catalogue):
    made = start_inspector(
        nursery,
        compile_rules([PLAN, STAFF]),
        may_read_sensitive=lambda caller: caller == CALLER,
        make=lambda: catalogue,
    )
    assert await made.settled()
    return made


async def refused(inspector: Inspector, text: str, direction: str = "from-page", **more) -> str | None:
    with pytest.raises(ActionError) as error:
        await inspector.inspect(text, direction=direction, **more)
    code, named = denial(error.value)
    assert code is Code.CONTENT_DENIED
    assert text not in str(error.value)
    return named


async def test_what_becomes_of_texts(inspector):
    assert isinstance(inspector, MaskingInspector)
    assert await inspector.inspect("nothing in it", direction="from-page") is None
    assert await inspector.inspect("", direction="from-page") is None
    assert await inspector.inspect(LONG, direction="from-page") is None
    chosen = random.Random(1)
    for text in (private_key(chosen), LONG + private_key(chosen)):
        assert await refused(inspector, text) == "dlp.credential"
        assert await refused(inspector, text, caller=CALLER) == "dlp.credential"
    assert await refused(inspector, card(chosen), caller=CALLER) == "dlp.card"
    assert await refused(inspector, "EMP-123456") == "dlp.corporate:staff"


async def test_who_may_read_what_is_sensitive(inspector):
    text = "the secret plan"
    assert await inspector.inspect(text, direction="from-page", caller=CALLER) == "corporate:r-1"
    assert await refused(inspector, text) == "dlp.corporate:r-1"
    assert await refused(inspector, text, caller=OTHER) == "dlp.corporate:r-1"
    for direction in ("to-page", "from-model", "to-model", "to-site", "elsewhere"):
        if direction != "elsewhere":
            assert await refused(inspector, text, direction, caller=CALLER) == "dlp.corporate:r-1"
    mixed = f"{text} {private_key(random.Random(2))}"
    assert await refused(inspector, mixed, caller=CALLER) == "dlp.credential"
    assert await inspector.mask(text, direction="from-page", caller=CALLER) == text


@pytest.mark.parametrize("answer", [False, None, 1, "yes", RuntimeError("text")])
async def test_only_true_lets_somebody_read(nursery, answer):
    def may(caller):
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = start_inspector(nursery, compile_rules([PLAN]), may_read_sensitive=may, make=FakeCatalogue)
    assert await made.settled()
    assert await refused(made, "the secret plan", caller=CALLER) == "dlp.corporate:r-1"


async def test_which_directions_rules_name(nursery):
    made = start_inspector(nursery, make=FakeCatalogue)
    assert await made.settled()
    assert not made.looks_at("to-site")
    for kind, value in (("words", "plan"), ("pattern", "EMP"), ("detector", "card")):
        made.use(compile_rules([rule(kind, value, directions=("from-page", "to-site"))]))
        assert made.looks_at("to-site")
        assert not made.looks_at("to-model")
    # Where it looks it looks for everything, and what policy masks elsewhere cannot be masked in a request.
    assert await refused(made, card(random.Random(4)), "to-site") == "dlp.card"
    assert await refused(made, private_key(random.Random(4)), "to-site") == "dlp.credential"
    made.use(compile_rules([STAFF]))
    assert await refused(made, "EMP-123456", "to-site") == "dlp.corporate:staff"


async def test_masks(inspector):
    text = "é EMP-123456 and EMP-654321."
    masked = await inspector.mask(text, direction="from-page")
    assert masked == "é ██████████ and ██████████."
    part = await inspector.mask(text, direction="from-page", start=0, end=6)
    assert part == "é ████"
    rest = await inspector.mask(text, direction="from-page", start=6)
    assert rest == "██████ and ██████████."
    with pytest.raises(ActionError):
        await inspector.mask(f"{text} {card(random.Random(3))}", direction="from-page", start=0, end=6)


async def test_what_the_catalogue_finds_is_a_credential(inspector, catalogue):
    catalogue.words = ("open sesame",)
    assert await refused(inspector, "say open sesame") == "dlp.credential"


@pytest.mark.parametrize("raised", [TimeoutError(), RuntimeError("text"), MemoryError(), Panic()])
async def test_a_detector_that_fails_denies(inspector, catalogue, raised):
    catalogue.instead = raised
    for text in ("short", LONG):
        assert await refused(inspector, text) == "dlp.incomplete"
    catalogue.instead = None
    assert await inspector.inspect(LONG, direction="from-page") is None


async def test_a_text_that_is_too_long_is_not_looked_through(nursery, catalogue):
    made = start_inspector(nursery, limits=InspectionLimits(characters=100), make=lambda: catalogue)
    assert await made.settled()
    assert await made.inspect("x" * 100, direction="from-page") is None
    assert catalogue.looks == 1
    assert await refused(made, "x" * 101) == "dlp.incomplete"
    assert catalogue.looks == 1


# ---- loading ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("raised", [RuntimeError("text"), ImportError(), Panic()])
async def test_without_a_catalogue_nothing_passes(nursery, raised):
    def make():
        raise raised

    made = start_inspector(nursery, make=make)
    assert not await made.settled()
    assert not made.loaded
    assert await refused(made, "nothing in it") == "dlp.incomplete"


async def test_until_it_is_loaded_texts_wait(nursery, catalogue, autojump_clock):
    hold = threading.Event()
    limits = InspectionLimits(wait_for_catalogue_s=0.01)
    made = start_inspector(nursery, limits=limits, make=lambda: hold.wait(20) and catalogue)
    try:
        assert await refused(made, "nothing in it") == "dlp.incomplete"
        assert not made.loaded
    finally:
        hold.set()
    assert await made.settled()
    assert await made.inspect("nothing in it", direction="from-page") is None


async def test_loading_can_be_given_up(catalogue):
    hold, begun = threading.Event(), threading.Event()

    def make():
        begun.set()
        hold.wait(20)
        return catalogue

    try:
        async with trio.open_nursery() as inner:
            made = start_inspector(inner, make=make)
            await trio.to_thread.run_sync(begun.wait)
            inner.cancel_scope.cancel()
        assert not made.loaded
        assert await refused(made, "nothing in it") == "dlp.incomplete"
    finally:
        hold.set()


# ---- time and cancellation --------------------------------------------------------------------------


async def test_a_look_that_takes_too_long_denies_and_keeps_its_place(nursery, catalogue):
    catalogue.held = threading.Event()
    limits = InspectionLimits(seconds=0.05, at_once=1)
    made = start_inspector(nursery, limits=limits, make=lambda: catalogue)
    assert await made.settled()
    try:
        assert await refused(made, LONG) == "dlp.incomplete"
        assert await refused(made, LONG) == "dlp.incomplete"
        assert catalogue.looks == 1  # the second waited for the first one's thread, in vain
    finally:
        catalogue.held.set()


async def test_cancelled_while_it_looks(inspector, catalogue):
    catalogue.held = threading.Event()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            inner.start_soon(lambda: inspector.inspect(LONG, direction="from-page"))
            await trio.to_thread.run_sync(catalogue.begun.wait)
            scope.cancel()
    assert scope.cancelled_caught
    catalogue.held.set()
    assert await inspector.inspect(LONG, direction="from-page") is None


async def test_every_look_is_a_checkpoint(inspector):
    for text in ("short", LONG, "x" * 500_000):
        with trio.CancelScope() as scope:
            scope.cancel()
            await inspector.examine(text, direction="from-page")
        assert scope.cancelled_caught


# ---- another policy ---------------------------------------------------------------------------------


async def test_rules_that_come_while_it_looks_hold(inspector, catalogue):
    catalogue.held = threading.Event()
    text = LONG + "the new thing"
    got = []

    async def look():
        got.append(await inspector.examine(text, direction="from-page"))

    async with trio.open_nursery() as inner:
        inner.start_soon(look)
        await trio.to_thread.run_sync(catalogue.begun.wait)
        inspector.use(compile_rules([rule("words", "new thing", id="new")]))
        catalogue.held.set()
    assert (got[0].result, got[0].classes) == (Result.BLOCKED, ("corporate:new",))
    assert catalogue.looks == 2
    inspector.use(compile_rules([]))
    assert await inspector.inspect(text, direction="from-page") is None


async def test_an_inspector_that_was_never_loaded_waits_only_so_long(autojump_clock):
    made = ContentInspector()
    assert await refused(made, "nothing in it") == "dlp.incomplete"
    assert trio.current_time() > 0
