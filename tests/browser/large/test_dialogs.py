"""Dialogs with megabytes of text: dismissed at once, counted, and never kept."""

import pytest
import trio
from tabwarden.errors import Code

from tests.browser.large.conftest import MB, measured
from tests.browser.reading.probe import in_page

TEXT = "'\\u00e9'.repeat(3000000)"  # six bytes each in CDP's JSON
PAGE = f"""<!doctype html><title>t</title><script>const text = {TEXT}; window.said = []</script>
  <button id=alert onclick="said.push(alert(text))">1</button>
  <button id=confirm onclick="said.push(confirm(text))">2</button>
  <button id=prompt onclick="said.push(prompt(text, text))">3</button>
  <button id=huge onclick="said.push(prompt(text, 'x'.repeat(40000000)))">4</button>"""


async def test_they_are_dismissed_and_told_while_another_tab_is_read(agent, site, other):
    site.pages["/"] = PAGE
    await agent.call("navigate", url=site.url("/", "large.localhost"))
    with measured() as memory:
        # The last one is larger than a message may be: only its first and last bytes are ever seen.
        for button in ("alert", "confirm", "prompt", "huge"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(other.reads)
                result = await agent.call("click", selector=f"#{button}")
                assert result == {"completed": True, "dialogsDismissed": 1}
    assert await in_page(agent, "JSON.stringify(said)") == "[null,false,null,null]"
    assert memory.kept < MB


async def test_a_page_that_asks_to_stay_at_length_stays(agent, site, other):
    site.pages["/"] = (
        PAGE + f"<script>onbeforeunload = (e) => {{ e.preventDefault(); return {TEXT} }}</script>"
    )
    await agent.call("navigate", url=site.url("/", "large.localhost"))
    assert await agent.call("click", selector="#confirm") == {"completed": True, "dialogsDismissed": 1}
    captured = agent.host.get_context(None)
    with measured() as memory:
        assert await agent.fails("navigate", url=site.url("/2", "large.localhost")) is Code.NAVIGATION_FAILED
        assert await agent.fails("tabs:close", sessionId=captured.session_id) is Code.CONFLICT
        await other.reads()
    assert agent.host.dialogs_dismissed(captured.session_id) == 3
    assert "GET /2" not in site.asked
    assert memory.kept < MB


@pytest.mark.parametrize("count", [20])
async def test_a_page_that_goes_on_asking_blocks_nobody_else(agent, site, other, count):
    asking = f"for (let i = 0; i < {count}; i++) confirm('x'.repeat(3000000))"
    site.pages["/"] = f'<!doctype html><title>t</title><button id=b onclick="{asking}">b</button>'
    await agent.call("navigate", url=site.url("/", "large.localhost"))
    async with trio.open_nursery() as nursery:

        async def reads():
            while True:
                await other.reads()

        nursery.start_soon(reads)
        assert (await agent.call("click", selector="#b"))["dialogsDismissed"] == count
        nursery.cancel_scope.cancel()
