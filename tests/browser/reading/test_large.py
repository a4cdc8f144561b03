"""Large pages: bounded work in the page, bounded answers."""

import pytest
from tabwarden.errors import Code
from tabwarden_adapters.browser import reading

from tests.browser.reading.probe import in_page


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """What is right must not depend on how busy the machine is that runs the tests."""
    monkeypatch.setattr(reading, "BUDGET_MS", 60_000)


async def test_five_megabytes_come_in_windows(agent, site):
    line = "word " * 100
    site.pages["/"] = "<!doctype html>" + "".join(f"<p>{number} {line}</p>" for number in range(10_000))
    await agent.call("navigate", url=site.url())
    first = await agent.call("read")
    late = await agent.call("read", offset=4_000_000)
    past = await agent.call("read", offset=10**7)
    assert first["text"].startswith("0 word word")
    assert (len(first["text"]), first["nextOffset"]) == (10_000, 10_000)
    assert (len(late["text"]), late["nextOffset"]) == (10_000, 4_010_000)
    assert past["text"] == ""
    assert "nextOffset" not in past


async def test_ten_thousand_controls(agent, site):
    fields = "".join(f"<input name=n{number}><button>b</button>" for number in range(5_000))
    site.pages["/"] = f"<!doctype html>{fields}"
    await agent.call("navigate", url=site.url())
    result = await agent.call("inspect")
    late = await agent.call("inspect", cursor=9_950)
    assert len(result["controls"]) == 100
    assert result["nextCursor"] == 100
    assert [control["selector"] for control in late["controls"]][::2] == [
        f'input[name="n{number}"]' for number in range(4_975, 5_000)
    ]


async def test_what_is_too_much_ends_in_time(agent, site):
    site.pages["/"] = "<!doctype html><p>x</p>"
    await agent.call("navigate", url=site.url())
    await in_page(
        agent,
        """(() => {
          let deep = document.body;
          for (let i = 0; i < 3000; i += 1) deep = deep.appendChild(document.createElement("i"));
          deep.append("deep");
        })()""",
    )
    assert await agent.fails("read") is Code.RESULT_TOO_LARGE


async def test_a_page_is_not_kept_busy(agent, site, monkeypatch):
    site.pages["/"] = "<!doctype html>" + "<p>x <button>b</button></p>" * 5_000
    await agent.call("navigate", url=site.url())
    monkeypatch.setattr(reading, "BUDGET_MS", 0)
    assert await agent.fails("read") is Code.RESULT_TOO_LARGE
    assert await agent.fails("inspect") is Code.RESULT_TOO_LARGE


async def test_a_long_line_that_is_cut_off_is_bounded(agent, site):
    line = "word " * 200_000
    site.pages["/"] = (
        "<!doctype html><p>before</p><div style='white-space:nowrap;overflow:hidden;width:300px'>"
        f"{line}</div><p>after</p>"
    )
    await agent.call("navigate", url=site.url())
    result = await agent.call("read")
    assert result["text"].startswith("before\n\nword word")
    assert result["text"].count("word") < 20
