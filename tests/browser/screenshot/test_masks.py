"""Every kind of thing that must not be seen, in a picture of a real page: its colour is gone, the rest is there."""

# Markup in lines of its own.
# ruff: noqa: E501

import re

import pytest
import trio
from tabwarden_adapters.browser.cdp.command import Command
from tabwarden_adapters.browser.sensitive import SENSITIVE

from tests.browser.screenshot.conftest import PLAIN
from tests.browser.site import Site

KEPT = "<p class=p style='margin:0 0 150px'>plain</p>"
RED = "<style>[data-x] { background: rgb(255, 0, 0); color: rgb(255, 0, 0); border: 0 }</style>"


@pytest.mark.parametrize("row", SENSITIVE, ids=lambda row: row.reason)
async def test_every_sensitive_element_is_masked(camera, row):
    examples = [re.sub(r"(<\w+)( data-x)", r"\1 value=SECRET\2", one) for one in row.examples]
    await camera.show(KEPT + RED + "".join(f"<div>{one}</div>" for one in examples))
    assert (await camera.raw()).tinged() > 0 or row.reason == "hidden"
    look = await camera.take()
    assert look.tinged() == 0
    assert look.near(PLAIN) > 5_000
    assert look.result["masked"] >= len(row.examples) - (row.reason == "hidden")
    assert look.covered < 0.3


@pytest.mark.parametrize("row", [row for row in SENSITIVE if row.lookalikes], ids=lambda row: row.reason)
async def test_lookalikes_stay(camera, row):
    await camera.show(KEPT + RED + "".join(f"<div>{one}</div>" for one in row.lookalikes))
    look = await camera.take()
    assert look.tinged() == (await camera.raw()).tinged() or look.result["masked"] > 0
    assert look.tinged() > 0


SECRET = "<input type=password class=s value=secret style='width:200px;height:40px'>"
BOX = "<p class=s data-private style='width:200px;height:40px;margin:0'>secret</p>"
GLYPHS = "color:red;font:40px serif"
PLACES = {
    "field": SECRET,
    "placeholder": "<input type=password class=s placeholder=secret>",
    "text": BOX,
    "text that overflows": f"<p data-private style='width:20px;height:10px;{GLYPHS}'>secret</p>",
    "several lines of an inline element": "<p style='width:150px;font:40px serif'>a <b data-private style='color:red'>secret secret secret</b></p>",
    "tall letters": f"<p data-private style='line-height:4px;height:4px;{GLYPHS}'>S\u0310\u0311\u0312\u0313\u0314ecret</p>",
    "fat letters": "<p data-private style='color:red;font:40px serif;-webkit-text-stroke:12px red;margin:60px'>secret</p>",
    "shadow of letters": "<p data-private style='color:red;font:40px serif;text-shadow:120px 90px red;margin:0'>secret</p>",
    "child outside": "<div data-private style='position:relative;width:9px;height:9px'><p class=s style='position:absolute;left:300px;top:90px;width:90px'>secret</p></div>",
    "fixed child": "<div data-private><p class=s style='position:fixed;right:0;bottom:0;width:90px'>secret</p></div>",
    "rotated": f"<div style='transform:rotate(31deg);margin:120px;width:220px'>{SECRET}</div>",
    "scaled": f"<div style='transform:scale(1.7);transform-origin:0 0'>{SECRET}</div>",
    "perspective": f"<div style='perspective:300px;margin:60px'><div style='transform:rotateY(40deg)'>{SECRET}</div></div>",
    "zoomed": f"<div style='zoom:1.6'>{SECRET}</div>",
    "fixed": f"<div style='position:fixed;left:333px;top:222px'>{SECRET}</div>",
    "sticky": f"<div style='height:2000px'><div style='position:sticky;top:70px'>{SECRET}</div></div><script>scrollTo(0, 60)</script>",
    "scrolled": f"<div id=b style='overflow:auto;width:250px;height:90px'><p style='height:300px'></p>{SECRET}<p style='height:300px'></p></div><script>b.scrollTop = 290</script>",
    "out of a scroller": f"<div id=b style='overflow:auto;width:250px;height:90px;margin-top:150px'><div style='position:absolute;top:20px;left:300px'>{SECRET}</div><div style='position:fixed;top:90px;left:300px'>{SECRET}</div></div>",
    "letters out of a table row": f"<table><tr style='overflow:hidden;height:9px'><td style='overflow:visible;line-height:4px;{GLYPHS}' data-private>secret</table>",
    "clip with a margin": f"<div style='overflow:clip;overflow-clip-margin:60px;width:90px;height:20px;margin:60px'>{SECRET}</div>",
    "blurred scroller": f"<div style='filter:blur(5px);margin:40px;width:150px'><div style='overflow:hidden;width:150px;height:30px'>{SECRET}</div></div>",
    "half out of view": f"<div style='position:absolute;left:-90px;top:-9px'>{SECRET}</div><div style='position:absolute;right:-90px;bottom:-9px'>{SECRET}</div><style>body{{overflow:hidden;height:100vh}}</style>",
    "page scrolled": f"<div style='height:3000px;padding-top:500px'>{SECRET}</div><script>scrollTo(0, 321)</script>",
    "blurred": f"<div style='filter:blur(6px);margin:40px;width:220px'>{SECRET}</div>",
    "shadow by filter": "<div data-private style='filter:drop-shadow(0 120px red);font:40px serif;color:red;margin:0'>secret</div>",
    "table": f"<table><tr><td>1<td>{SECRET}<td>3</table>",
    "columns": f"<div style='columns:2;height:60px'><b data-private style='{GLYPHS}'>secret secret secret secret secret secret</b></div>",
    "vertical writing": f"<div style='writing-mode:vertical-rl'>{BOX}</div>",
    "right to left": f"<div dir=rtl>{BOX}</div>",
    "flex and grid": f"<div style='display:flex;gap:50px'><i></i><div style='display:grid;place-items:center;height:90px'>{SECRET}</div></div>",
    "svg text": "<svg width=400 height=90><text data-private x=50 y=60 font-size=40 fill=red stroke=red stroke-width=6>secret</text></svg>",
    "foreign object": f"<svg width=400 height=90><foreignObject x=50 y=9 width=300 height=80>{BOX}</foreignObject></svg>",
    "display contents": f"<div data-private style='display:contents'><span style='{GLYPHS}'>secret</span></div>",
    "top layer": f"<dialog id=d>{SECRET}</dialog><script>d.showModal()</script>",
    "popover": f"<div id=d popover>{SECRET}</div><script>d.showPopover()</script>",
    "open shadow tree": "<div id=h></div><script>h.attachShadow({mode: 'open'}).innerHTML = `<input type=password style='width:200px;background:red'>`</script>",
    "closed shadow tree": "<div id=h></div><script>h.attachShadow({mode: 'closed'}).innerHTML = `<p>x</p><div><input type=password style='width:200px;background:red;position:relative;left:90px'></div>`</script>",
    "closed in closed": "<div id=h></div><script>const r = h.attachShadow({mode: 'closed'}); r.innerHTML = `<section></section>`; r.firstChild.attachShadow({mode: 'closed'}).innerHTML = `<input type=password style='width:200px;background:red'>`</script>",
    "slotted": "<div id=h data-private><b style='color:red;font:40px serif'>secret</b></div><script>h.attachShadow({mode: 'closed'}).innerHTML = `<div style='margin:90px'><slot></slot></div>`</script>",
    "pseudo": "<style>#p::after { content: 'secret'; color: red; font: 40px serif }</style><p id=p data-private>a</p>",
    "open details": f"<details open><summary>s</summary>{SECRET}</details>",
    "option of a list": "<select size=3 style='background:white'><option>a<option data-private style='background:red;color:red'>secret<option>c</select>",
    "chosen option": "<select class=s style='width:200px'><option data-private selected>secret<option>c</select>",
    "value that is too long": f"<input class=s style='width:200px' value='{'x' * 1001}'>",
    "value with hidden characters": "<input class=s style='width:200px' value='a\u202eb'>",
    "long editable": f"<div contenteditable class=s style='width:400px'>{'secret ' * 40}</div>",
    "canvas": "<canvas id=c width=200 height=90></canvas><script>const x = c.getContext('2d'); x.fillStyle = 'red'; x.fillRect(0, 0, 200, 90)</script>",
    "video": "<video class=s width=200 height=90></video>",
    "object": "<object class=s style='width:200px;height:90px;display:block'></object>",
    "embed": "<embed type=image/svg+xml style='width:200px;height:90px' src=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'%3E%3Crect width='9' height='9' fill='red'/%3E%3C/svg%3E\">",
    "image inside": "<div data-private><img style='width:200px;height:90px;position:relative;left:99px' src=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'%3E%3Crect width='9' height='9' fill='red'/%3E%3C/svg%3E\"></div>",
    "frame with data": "<iframe style='width:200px;height:90px' src='data:text/html,<body style=background:red>'></iframe>",
    "sandboxed frame": "<iframe sandbox style='width:200px;height:90px' srcdoc='<body style=background:red>'></iframe>",
    "covered by glass": f"<div style='position:relative'>{SECRET}<div style='position:absolute;left:0;top:0;width:500px;height:99px;backdrop-filter:blur(9px)'></div></div>",
}


PARTS = 8  # a browser for each, and not for each page


@pytest.mark.parametrize("part", range(PARTS))
async def test_no_pixel_of_a_secret_is_left(camera, part):
    wrong = []
    for place in list(PLACES)[part::PARTS]:
        await camera.show(
            f"<p class=p style='position:fixed;left:380px;bottom:0;margin:0'></p>{PLACES[place]}"
        )
        painted = (await camera.raw()).tinged()
        look = await camera.take()
        seen = (painted > 100, look.tinged(), look.near(PLAIN) > 500, look.result["masked"] > 0)
        if seen != (True, 0, True, True) or look.covered > 0.6:
            wrong.append((place, seen, look.covered))
    assert not wrong


INNER = {
    "plain": "",
    "border and padding": "border:9px solid blue;padding:20px 40px",
    "scaled": "transform:scale(1.5);transform-origin:0 0",
    "zoomed": "zoom:1.4",
    "turned": "transform:rotate(9deg);margin:40px",
}


async def test_frames_of_the_same_origin_are_looked_into(camera, site):
    site.pages["/inner"] = (
        "<body style='margin:0;height:900px'><p style='background:rgb(0,160,0);height:30px;margin:200px 0 0'></p>"
        "<input type=password style='background:red;width:150px;height:30px;border:0;margin:20px'>"
        "<script>scrollTo(0, 190)</script>"
    )
    for how, more in INNER.items():
        style = f"width:300px;height:150px;border:0;{more}"
        nested = "<iframe src=/inner style='border:3px solid blue'>"
        await camera.show(
            f"<div style='padding:40px'><iframe style='{style}' src=/inner></iframe></div>"
            f'<div style="padding:40px"><iframe style="{style}" srcdoc="{nested}"></iframe></div>'
        )
        assert (await camera.raw()).tinged() > 1000, how
        look = await camera.take()
        assert look.tinged() == 0, how
        assert look.near(PLAIN) > 3_000 or how == "turned"


@pytest.mark.parametrize("host", ["127.0.0.1", "frames.localhost"])
async def test_frames_of_other_origins_are_masked_whole(camera, nursery, host):
    """Another port of the same host shares the process, another host has one of its own."""
    other = Site()
    listeners = await nursery.start(trio.serve_tcp, other.serve, 0)
    other.port = listeners[0].socket.getsockname()[1]
    other.pages["/"] = (
        "<body style='background:red'><div id=h></div><script>h.attachShadow({mode:'closed'}).innerHTML='<p>x'</script>"
    )
    await camera.show(
        f"<p class=p></p><iframe style='width:300px;height:150px;border:0' src={other.url(host=host)}></iframe>"
    )
    assert (await camera.raw()).tinged() > 40_000
    look = await camera.take()
    assert look.tinged() == 0
    assert look.near(PLAIN) > 5_000
    assert look.result["masked"] == 1


KEEPS = {
    "field": "<input class=s style='width:200px;height:40px' value=plain>",
    "image": "<img style='width:200px;height:90px' src=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'%3E%3Crect width='9' height='9' fill='red'/%3E%3C/svg%3E\">",
    "text": "<p class=s>plain</p>",
    "secret scrolled away": "<p class=s style='position:absolute;top:0'>plain</p><div id=b style='overflow:auto;height:60px;margin-top:90px'><input type=password style='margin-bottom:400px;display:block'></div><script>b.scrollTop = 90</script>",
    "hidden secret over it": "<p class=s style='position:absolute;top:90px'>plain</p><input type=password style='position:absolute;top:80px;opacity:0;height:60px'><input type=password style='position:absolute;top:80px;visibility:hidden;height:60px'><input type=password style='position:absolute;top:80px;display:none'>",
    "hidden frame over it": "<p class=s style='position:absolute;top:90px'>plain</p><iframe src='data:text/html,x' style='position:absolute;inset:0;visibility:hidden'></iframe>",
}


async def test_what_is_no_secret_is_kept(camera):
    for kept, markup in KEEPS.items():
        await camera.show(markup)
        look = await camera.take()
        assert look.tinged() == (await camera.raw()).tinged() > 100, kept
        assert (look.result["masked"], look.covered) == (0, 0), kept


@pytest.mark.parametrize("ratio", [2, 1.25])
async def test_other_densities(camera, ratio):
    await camera.tab.session.call(
        Command(
            "Emulation.setDeviceMetricsOverride",
            {"width": 700, "height": 500, "deviceScaleFactor": ratio, "mobile": False},
            None,
        )
    )
    await camera.show(f"<p class=p></p><div style='margin:33.3px'>{SECRET}</div>")
    assert (await camera.raw()).tinged() > 8_000
    look = await camera.take()
    assert (look.result["width"], look.result["height"]) == (700 * ratio, 500 * ratio)
    assert look.tinged() == 0
    assert look.near(PLAIN) > 8_000


async def test_a_pinched_page(camera):
    await camera.show(f"<p class=p></p><div style='margin:33.3px'>{SECRET}</div>")
    await camera.tab.session.call(Command("Emulation.setPageScaleFactor", {"pageScaleFactor": 1.5}, None))
    assert await camera.js("visualViewport.scale") == 1.5
    assert (await camera.raw()).tinged() > 10_000
    look = await camera.take()
    assert look.tinged() == 0
    assert look.near(PLAIN) > 10_000
