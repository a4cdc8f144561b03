"""A stream is released in parts of which none is the beginning of a secret."""

import random
import re

import pytest
import trio
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.dlp import HeldStream, compile_rules, start_inspector
from tabwarden_adapters.dlp.streaming import HELD

from tests.dlp.samples import SELF_EVIDENT
from tests.dlp.support import FakeCatalogue, rule


@pytest.fixture
async def inspector(nursery):
    rules = compile_rules([rule("pattern", r"EMP-\d{6}", action="mask")])
    made = start_inspector(nursery, rules, make=FakeCatalogue)
    assert await made.settled()
    return made


async def test_clean_text_comes_out_whole_and_late(inspector):
    stream = HeldStream(inspector, direction="from-model")
    text = "".join(f"line {number}\n" for number in range(1000))
    out = [await stream.feed(text[at : at + 100]) for at in range(0, len(text), 100)]
    assert len("".join(out)) >= len(text) - HELD - 1200
    assert "".join(out) + await stream.finish() == text
    with pytest.raises(ActionError):
        await stream.feed("more")


@pytest.mark.parametrize("kind", SELF_EVIDENT[:8:2], ids=repr)
@pytest.mark.parametrize("stuffing", ["", "\u200b" * 200])
async def test_no_beginning_of_a_secret_is_released(inspector, kind, stuffing):
    secret = kind.make(random.Random(1))
    stuffed = secret[0] + stuffing.join(secret[1:])
    text = "word " * 1400 + stuffed[:9000] + " word" * 1200
    stream, out = HeldStream(inspector, direction="from-model", limit=100_000), ""
    code = None
    try:
        for at in range(0, len(text), 700):
            out += await stream.feed(text[at : at + 700])
        out += await stream.finish()
    except ActionError as error:
        code = error.code
    assert code is Code.CONTENT_DENIED
    assert set(out) <= set("word ")
    with pytest.raises(ActionError):
        await stream.feed("more")
    with pytest.raises(ActionError):
        await stream.finish()


async def test_masks_across_pieces(inspector):
    text = "x" * 5000 + " EMP-123456 " + "y" * 6000 + " EMP-654321"
    for size in (1, 7, 1024, 20_000):
        if size == 1:
            text = text[4000:]
        stream = HeldStream(inspector, direction="from-model", held=64)
        out = ""
        for at in range(0, len(text), size):
            out += await stream.feed(text[at : at + size])
        out += await stream.finish()
        assert out == re.sub(r"EMP-\d{6}", "█" * 10, text)


async def test_more_than_an_answer_may_have(inspector):
    stream = HeldStream(inspector, direction="from-model", limit=100)
    with pytest.raises(ActionError) as error:
        await stream.feed("x" * 101)
    assert error.value.code is Code.RESULT_TOO_LARGE
    with pytest.raises(ActionError):
        await stream.finish()


async def test_cancelled_it_releases_no_more(inspector):
    stream = HeldStream(inspector, direction="from-model")
    await stream.feed("x" * 100)
    with trio.CancelScope() as scope:
        scope.cancel()
        await stream.finish()
    assert scope.cancelled_caught
    with pytest.raises(ActionError):
        await stream.finish()
