"""Scrolling: what lies at the middle of the viewport moves by so many pixels, or is at its end."""

# Markup in lines of its own.
# ruff: noqa: E501

from tabwarden.errors import Code

TALL = "<!doctype html><style>*{margin:0}</style><div style='width:4000px;height:4000px'></div>"
INNER = "<div id=i style='position:fixed;inset:20px;overflow:auto'><div style='width:3000px;height:3000px'></div></div>"


async def position(stage, what="scrollingElement"):
    return await stage.js(f"[document.{what}.scrollLeft, document.{what}.scrollTop]")


async def test_the_page_scrolls_and_stops_at_its_ends(stage):
    for doctype in ("<!doctype html>", ""):
        await stage.show(
            doctype + TALL.removeprefix("<!doctype html>") + "<style>html{scroll-behavior:smooth}</style>"
        )
        assert await stage.do("scroll", x=30, y=200) == {}
        assert await position(stage) == [30, 200]
        await stage.do("scroll", y=-50)
        assert await position(stage) == [30, 150]
        await stage.do("scroll", x=-100_000, y=-100_000)
        assert await position(stage) == [0, 0]
        await stage.do("scroll", y=-1)  # at its end already
        await stage.do("scroll")
        await stage.do("scroll", x=100_000, y=100_000)
        assert await stage.js("scrollY + innerHeight >= 4000 - 20 && scrollX + innerWidth >= 4000 - 20")
    await stage.show("<p>short</p>")
    assert await stage.do("scroll", y=100) == {}


async def test_inner_scrollers_scroll_and_hand_on(stage):
    await stage.show(TALL + INNER)
    await stage.do("scroll", y=100)
    assert (await position(stage, "getElementById('i')"), await position(stage)) == ([0, 100], [0, 0])
    await stage.do("scroll", y=100_000)
    await stage.do("scroll", y=100)  # the inner one is at its end
    assert (await position(stage)) == [0, 100]
    # In a shadow tree, and in a frame of the same origin.
    await stage.show(
        TALL + "<div id=h></div><script>h.attachShadow({mode:'open'}).innerHTML = `" + INNER + "`</script>"
    )
    await stage.do("scroll", y=100)
    assert await position(stage, "getElementById('h').shadowRoot.getElementById('i')") == [0, 100]
    frame = (
        "<iframe id=f style='position:fixed;inset:0;width:100%;height:100%' srcdoc=\"" + TALL + '"></iframe>'
    )
    await stage.show(TALL + frame)
    await stage.do("scroll", y=100)
    assert await position(stage, "getElementById('f').contentDocument.scrollingElement") == [0, 100]
    assert await position(stage) == [0, 0]


async def test_what_a_wheel_could_not_move_stays(stage):
    await stage.show("<body style='overflow:hidden'>" + TALL.removeprefix("<!doctype html>"))
    await stage.do("scroll", y=100)
    assert await position(stage) == [0, 0]
    await stage.show(
        TALL + "<div id=i style='position:fixed;inset:0;overflow:hidden'><p style='height:3000px'></div>"
    )
    await stage.do("scroll", y=100)
    assert (await position(stage, "getElementById('i')"), await position(stage)) == ([0, 0], [0, 100])


async def test_right_to_left(stage):
    await stage.show("<html dir=rtl>" + TALL)
    await stage.do("scroll", x=-100)
    assert await position(stage) == [-100, 0]
    await stage.do("scroll", x=50)
    assert await position(stage) == [-50, 0]
    await stage.do("scroll", x=100)
    assert await position(stage) == [0, 0]


async def test_a_page_that_scrolls_back_is_found_out(stage):
    await stage.show(TALL + "<script>onscroll = () => scrollTo(0, 0)</script>")
    ending = await stage.no("scroll", y=100)
    assert (ending.code, ending.effect) == (Code.CONFLICT, "unknown")
