"""What a person could see is read; what is hidden from a person is not."""

import pytest

from tests.browser.reading import hiding

# Words of techniques that begin or end in the middle of something that shows.
EXTRAS = {"stays": 6, "and": 1, "x": 2}


async def test_every_technique_on_one_page(agent, site):
    html, shown, hidden = hiding.page()
    assert len(hidden) > 90
    assert len(shown) > 50
    site.pages["/"] = html
    await agent.call("navigate", url=site.url())
    result = await agent.call("read")
    words = result["text"].replace("xS", "x S").split()
    assert [word for word in words if word.startswith("H")] == []
    assert [word for word in words if word.startswith("S")] == shown
    others = [word for word in words if not word.startswith(("H", "S"))]
    assert {word: others.count(word) for word in set(others)} == EXTRAS
    assert result == {"text": result["text"], "origin": site.url(""), "untrusted": True}


ALONE = {
    "a view that cannot scroll": (
        "<style>body{margin:0;height:100vh;overflow:hidden}</style><p>yes</p>"
        "<div style='position:absolute;top:300vh'>NO</div>",
        "yes",
    ),
    "a view that cannot scroll sideways": (
        "<style>body{overflow-x:hidden}</style><p>yes</p><p style='margin-top:2000px'>too</p>"
        "<div style='position:absolute;left:300vw'>NO</div>",
        "yes\n\ntoo",
    ),
    "beside, where one can scroll": (
        "<p>yes</p><div style='position:absolute;left:300vw;top:90px'>too</div>",
        "yes\n\ntoo",
    ),
    "under a full page": (
        "<p>NO</p><div style='position:fixed;inset:0;background:#fff'><p>yes</p></div>",
        "yes",
    ),
    "under a header": (
        "<header style='position:fixed;inset:0 0 auto;height:80px;background:#fff'>yes</header><p>too</p>"
        "<p style='height:3000px'>three</p>",
        "yes\n\ntoo\n\nthree",
    ),
    "under a modal dialog's backdrop": (
        "<p>yes</p><dialog>too</dialog><script>document.querySelector('dialog').showModal()</script>",
        "yes\n\ntoo",
    ),
    "under an opaque backdrop": (
        "<style>dialog{inset:0;width:100vw;height:100vh;max-width:none;max-height:none;background:#fff}</style>"
        "<p>NO</p><dialog>yes</dialog><script>document.querySelector('dialog').showModal()</script>",
        "yes",
    ),
    "a dark canvas": (
        "<style>html{color-scheme:dark}</style><p>yes</p><p style='color:#121212'>NO</p>",
        "yes",
    ),
    "a body's background": (
        "<body style='background:#036;color:#fff'><p>yes</p><p style='color:#036'>NO</p>",
        "yes",
    ),
    "right to left": (
        "<html dir=rtl><p>yes</p><div style='position:absolute;top:60px;left:-200px;width:150px'>too</div>"
        "<div style='position:absolute;top:60px;right:-900px;width:100px'>NO</div>",
        "yes\n\ntoo",
    ),
    "all that is editable": ("<script>document.designMode = 'on'</script><p>NO</p>", ""),
    "an inner page": (
        "<style>html,body{height:100%;margin:0;overflow:hidden}main{height:100%;overflow:auto}</style>"
        "<main><p>yes</p><p style='margin-top:2000px'>too</p></main>",
        "yes\n\ntoo",
    ),
    "quirks": ("<p>yes</p><p style='margin-top:2000px'>too</p><p style='color:#fff'>NO</p>", "yes\n\ntoo"),
    "a popover that is open": (
        "<p>yes</p><div popover>too</div><script>document.querySelector('[popover]').showPopover()</script>",
        "yes\n\ntoo",
    ),
    "ground of a dark page": (
        "<div style='background:#000;height:3000px'><p style='color:#fff'>yes</p>"
        "<div style='height:40px;overflow:auto'><p style='margin-top:90px;color:#fff'>too</p>"
        "<p style='color:#000'>NO</p></div></div>",
        "yes\n\ntoo",
    ),
}


@pytest.mark.parametrize("part", [0, 1])
async def test_pages_as_a_whole(agent, site, part):
    read = {}
    expected = {}
    for name, (html, text) in list(ALONE.items())[part::2]:
        mode = "" if name == "quirks" else "<!doctype html>"
        site.pages["/"] = mode + html
        await agent.call("navigate", url=site.url())
        read[name] = (await agent.call("read"))["text"]
        expected[name] = text
    assert read == expected


async def test_every_technique_in_a_frame(agent, site):
    """A frame of the page's own origin has classes of its own, whatever they are called."""
    html, shown, _ = hiding.page()
    frame = "<iframe src=/inner style='width:100%;height:30000px;border:0'></iframe>"
    site.pages.update({"/": f"<!doctype html><body style='margin:0'>{frame}", "/inner": html})
    await agent.call("navigate", url=site.url())
    words = (await agent.call("read"))["text"].replace("xS", "x S").split()
    assert [word for word in words if word.startswith("H")] == []
    assert [word for word in words if word.startswith("S")] == shown
