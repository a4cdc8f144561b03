"""Ten thousand controls: windows that are bounded, and together all of them."""

import msgspec
import pytest
from tabwarden_adapters.browser import inspecting

from tests.browser.large.conftest import MB, measured
from tests.browser.whole import WHOLE

COUNT = 10_000
REPLY = 65_536  # bytes of a window as JSON: well within what one reply may be
# One in a hundred has nothing to be called by but its place.
MARKUP = "<!doctype html>" + "".join(
    f"<button id=b{number}>b{number}</button><a {f'id=a{number}' if number % 50 else ''} href=/>a{number}</a>"
    for number in range(COUNT // 2)
)
NAMES = [f"{kind}{number}" for number in range(COUNT // 2) for kind in "ba"]


async def test_each_window_is_bounded(agent, site, meter):
    site.pages["/"] = MARKUP
    await agent.call("navigate", url=site.url())
    with measured() as memory:
        for cursor in (0, 100, 4_950, COUNT - 100, COUNT - 1):
            with meter.at_most(REPLY):
                result = await agent.call("inspect", cursor=cursor)
            assert [control["name"] for control in result["controls"]] == NAMES[cursor : cursor + 100]
            assert result.get("nextCursor") == (cursor + 100 if cursor + 100 < COUNT else None)
            assert len(msgspec.json.encode(result)) < REPLY
    assert memory.peak < MB


@pytest.mark.timeout(1200 if WHOLE else 120)
async def test_all_are_reached_once_each_with_a_selector_and_a_ref_of_its_own(agent, site, monkeypatch):
    if not WHOLE:  # windows of another size, so that a page of this size is not measured a hundred times
        monkeypatch.setattr(inspecting, "CONTROLS", 2_500)
        monkeypatch.setattr(inspecting, "CHARACTERS", 10 * MB)
    site.pages["/"] = MARKUP
    await agent.call("navigate", url=site.url())
    controls, cursor = [], 0
    while cursor is not None:
        result = await agent.call("inspect", cursor=cursor)
        controls += result["controls"]
        cursor = result.get("nextCursor")
    assert [control["name"] for control in controls] == NAMES
    for key in ("selector", "ref"):
        assert len({control[key] for control in controls}) == COUNT
    # And the last of them can be acted upon by either.
    for target in (controls[-2]["selector"], controls[-2]["ref"]):
        assert await agent.call("click", selector=target) == {"completed": True}


async def test_large_values_and_names_stay_in_the_page(agent, site, meter, other):
    site.pages["/"] = """<!doctype html><title>t</title><button id=b>b</button><select id=s></select>
    <style>select, button { width: 9em; height: 2em; overflow: hidden }</style><script>
      const long = 'a b-c '.repeat(350000);
      for (let i = 0; i < 255; i += 1) {
        const one = document.createElement('button');
        for (const key of ['class', 'role', 'aria-label', 'aria-labelledby', 'data-x']) one.setAttribute(key, long);
        one.append('x');
        document.body.append(one);
      }
      const field = Object.assign(document.createElement('input'), {value: long, name: 'n'});
      document.body.append(field);
      for (let i = 0; i < 20000; i += 1) s.append(new Option(i < 2 ? long : `o${i}`, i < 2 ? long + i : `v${i}`));
      const named = Object.assign(document.createElement('button'), {textContent: long});
      named.setAttribute('aria-label', long);
      document.body.append(named);
    </script>"""  # noqa: E501
    await agent.call("navigate", url=site.url("/", "large.localhost"))
    with measured() as memory:
        with meter.at_most(REPLY):
            result = await agent.call("inspect")
        # A class of megabytes could say anything: its element is withheld, like any that is called a secret.
        b, s, field, named = result["controls"]
        assert (b["selector"], s["selector"], field["selector"]) == ("#b", "#s", 'input[name="n"]')
        assert [option["value"] for option in s["options"]] == [f"v{number}" for number in range(2, 22)]
        assert "value" not in field
        assert named["name"] == ("a b-c " * 100)[:200]
        with meter.at_most(REPLY):
            await agent.call("read")
        assert await agent.call("select", selector="#s", value="v19999") == {"completed": True}
        assert await agent.call("click", selector="#b") == {"completed": True}
        await other.reads()
    assert memory.peak < MB
