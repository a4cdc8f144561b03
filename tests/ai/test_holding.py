"""Nothing of a secret comes out of a stream, wherever it is cut."""

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden_adapters.ai.holding import HeldText

SECRET = "s3cret-abcdef"


class Found(Exception):
    pass


async def look(text: str, start: int, end: int) -> str:
    if SECRET in text:
        raise Found
    return text[start:end]


def run(text: str, cuts: list[int], hold: int, step: int) -> tuple[str, bool]:
    """What came out, and whether the secret was found."""
    out: list[str] = []

    async def main() -> None:
        held = HeldText(look, hold=hold, step=step)
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            out.append(await held.add(text[start:end]))
        out.append(await held.finish())

    try:
        trio.run(main)
    except Found:
        return "".join(out), True
    return "".join(out), False


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_of_a_secret_no_character_comes_out(data):
    before = data.draw(st.text("abc3-s ", max_size=80))
    after = data.draw(st.text("abc3-s ", max_size=80))
    text = before + SECRET + after
    hold = data.draw(st.integers(len(SECRET), 40))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    out, found = run(text, cuts, hold, data.draw(st.integers(1, 30)))
    assert found
    assert text.startswith(out)
    assert len(out) <= text.index(SECRET)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_clean_comes_out_whole(data):
    text = data.draw(st.text("abc ", max_size=200))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    assert run(text, cuts, data.draw(st.integers(1, 40)), data.draw(st.integers(1, 30))) == (text, False)


async def test_after_a_finding_nothing_comes_out_any_more():
    held = HeldText(look, hold=20, step=1)
    with pytest.raises(Found):
        await held.add(SECRET)
    for more in (held.add("and so on"), held.finish()):
        with pytest.raises(RuntimeError):
            await more


async def test_text_comes_out_before_the_end():
    held = HeldText(look, hold=20, step=10)
    assert await held.add("a" * 9) == ""
    assert await held.add("b" * 21) == "a" * 9 + "b"
    assert await held.finish() == "b" * 20
