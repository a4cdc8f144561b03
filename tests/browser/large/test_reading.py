"""Pages of 5 MB: what is not asked for stays in the page."""

import pytest

from tests.browser.large.conftest import MB, measured

WINDOW = 10_000
MESSAGES = 40_000  # bytes of one call: the window, and what the calls around it answer


async def test_it_is_read_to_its_end_without_loss_or_repetition(agent, site, meter):
    said = [f"{number} " + "word " * 24 + f"\U0001f600{number}" for number in range(1_250)]
    filler = "y" * 4_000
    site.pages["/"] = "<!doctype html>" + "".join(f"<p data-x={filler}>{one}</p>" for one in said)
    assert len(site.pages["/"]) > 5 * MB
    await agent.call("navigate", url=site.url())
    parts, offset = [], 0
    with measured() as memory:
        while offset is not None:
            with meter.at_most(MESSAGES):
                result = await agent.call("read", offset=offset)
            assert len(result["text"]) <= WINDOW
            parts.append(result["text"])
            assert result.get("nextOffset", offset + len(parts[-1])) == offset + len(parts[-1])
            offset = result.get("nextOffset")
    expected = "\n\n".join(said)
    assert "".join(parts) == expected
    assert len(parts) == -(-len(expected) // WINDOW)
    assert memory.peak < 2 * MB  # the parts themselves, four bytes for a character


@pytest.mark.parametrize("tag", ["p", "pre"])
async def test_one_text_node_of_five_megabytes(agent, site, meter, tag):
    words = " ".join(f"w{number}" for number in range(670_000))
    assert len(words) > 5 * MB
    site.pages["/"] = f"<!doctype html><{tag}>{words}</{tag}>"
    await agent.call("navigate", url=site.url())
    with measured() as memory:
        for offset in (0, WINDOW, 2_500_000, len(words) - 15_000, len(words) - 5_000):
            with meter.at_most(MESSAGES):
                result = await agent.call("read", offset=offset)
            assert result["text"] == words[offset : offset + WINDOW]
            assert ("nextOffset" in result) == (offset + WINDOW < len(words))
    assert memory.peak < MB
