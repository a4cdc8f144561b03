"""5 MB of text read to their end, which takes minutes: `make large` names this file."""

import pytest

from tests.browser.large.test_reading import MESSAGES


@pytest.mark.timeout(1200)
async def test_five_megabytes_of_text_to_their_end(agent, site, meter):
    words = " ".join(f"w{number}" for number in range(670_000))
    site.pages["/"] = f"<!doctype html><p>{words}</p>"
    await agent.call("navigate", url=site.url())
    parts, offset = [], 0
    while offset is not None:
        with meter.at_most(MESSAGES):
            result = await agent.call("read", offset=offset)
        parts.append(result["text"])
        offset = result.get("nextOffset")
    assert "".join(parts) == words
