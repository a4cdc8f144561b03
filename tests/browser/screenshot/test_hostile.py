"""Pages that move, change and displace what must not be seen while a picture is taken of them."""

# Markup in lines of its own.
# ruff: noqa: E501

import pytest
from tabwarden.errors import ActionError, Code

from tests.browser.screenshot.conftest import PLAIN
from tests.browser.screenshot.test_masks import SECRET
from tests.browser.whole import WHOLE

KEPT = "<p class=p style='position:fixed;left:380px;bottom:0;margin:0'></p>"
FRAME = "<iframe id=x style='position:absolute;width:150px;height:60px;border:0' src='data:text/html,<body style=background:red>'></iframe>"
FIELD = f"<div id=x style='position:absolute'>{SECRET}</div>"
# What is done again and again, and how often.
EVERY_FRAME = "let n = 0; (function f() {{ n += 1; {} ; requestAnimationFrame(f) }})()"
EVERY_TASK = "let n = 0; const c = new MessageChannel(); c.port1.onmessage = () => {{ n += 1; {}; c.port2.postMessage(0) }}; c.port2.postMessage(0)"
JUMP = "x.style.left = n % 2 ? '400px' : '9px'"
RESTLESS = {
    "field, every frame": FIELD + f"<script>{EVERY_FRAME.format(JUMP)}</script>",
    "frame, every frame": FRAME + f"<script>{EVERY_FRAME.format(JUMP)}</script>",
    "frame, every task": FRAME + f"<script>{EVERY_TASK.format(JUMP)}</script>",
    "frame, on resize": FRAME
    + "<div id=r></div><script>let n = 0; new ResizeObserver(() => { n += 1; "
    + JUMP
    + "; r.style.height = n % 99 + 'px' }).observe(r)</script>",
    "scrolled, every frame": f"<div style='height:4000px;padding-top:300px'>{SECRET}</div><script>{EVERY_FRAME.format('scrollTo(0, n % 2 ? 250 : 0)')}</script>",
    "type, every frame": "<p id=h></p><script>"
    + EVERY_FRAME.format(
        "h.innerHTML = `<input class=s style='width:200px' type=${n % 2 ? 'password' : 'hidden'}>`"
    )
    + "</script>",
    "new tree, every frame": "<p id=h></p><script>"
    + EVERY_FRAME.format(
        "h.innerHTML = '<div></div>'; h.firstChild.attachShadow({mode: 'closed'}).innerHTML = `<input type=password style='width:200px;background:red;margin-left:${n % 2 * 300}px'>`"
    )
    + "</script>",
    "frame, transform in steps": "<style>@keyframes k { from { transform: none } to { transform: translateX(500px) } } #x { animation: k .05s steps(2, jump-none) infinite }</style>"
    + FRAME,
    "frame, layout in steps": "<style>@keyframes k { from { left: 0 } to { left: 500px } } #x { animation: k .05s steps(2, jump-none) infinite }</style>"
    + FRAME,
    "frame, smooth animation": "<style>@keyframes k { from { transform: none } to { transform: translate(400px, 200px) } } #x { animation: k .3s linear infinite alternate }</style>"
    + FRAME,
    "frame, script animation": FRAME
    + "<script>x.animate([{ translate: '0' }, { translate: '500px' }], { duration: 40, iterations: Infinity, easing: 'steps(2, jump-none)' })</script>",
    "frame in a closed tree's animation": "<div id=h></div><script>h.attachShadow({mode: 'closed'}).innerHTML = `<style>@keyframes k { to { transform: translateX(500px) } } iframe { border: 0; animation: k .05s steps(2, jump-none) infinite }</style><iframe width=150 height=60 src='data:text/html,<body style=background:red>'></iframe>`</script>",
    "frame beside SVG's own animation": "<div style='display:flex'><svg height=9 width=0 style='flex:none'><animate attributeName=width values='0;400' calcMode=discrete dur=.05s repeatCount=indefinite /></svg><iframe style='width:150px;height:60px;border:0' src='data:text/html,<body style=background:red>'></iframe></div>",
    "field in SVG's own animation": f"<svg width=700 height=200><g><animateTransform attributeName=transform type=translate values='0;400' calcMode=discrete dur=.05s repeatCount=indefinite /><foreignObject width=250 height=90>{SECRET}</foreignObject></g></svg>",
    "marquee": f"<marquee scrollamount=200 truespeed scrolldelay=1>{SECRET}</marquee>",
}


LOOKS = 40 if WHOLE else 3
PARTS = 5  # a browser for each, and not for each page


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_page_that_never_rests_shows_nothing(camera, part):
    for trick in list(RESTLESS)[part::PARTS]:
        await camera.show(KEPT + RESTLESS[trick])
        looks = shown = 0
        # Some show what must be masked only half of the time.
        while looks < LOOKS or (shown == 0 and looks < 60):
            looks += 1
            look = await camera.take()
            assert look.tinged() == 0, trick
            assert look.near(PLAIN) > 500, trick
            shown += look.result["masked"]
        assert shown > 0, trick


GLASS = "<svg width=0 height=0><filter id=f x=-9 y=-9 width=99 height=99 filterUnits=objectBoundingBox><feOffset dx=0 dy=150 /></filter></svg>"
DISPLACED = {
    "SVG filter": GLASS + f"<div style='filter:url(#f);position:absolute;top:9px'>{FRAME}</div>",
    "reflection": f"<div style='-webkit-box-reflect:below 60px;width:200px;height:60px'>{FRAME}</div>",
    "video out of its box": "<video style='overflow:visible;object-fit:none' width=90 height=40></video>",
    "text put elsewhere": "<style>#q::after { content: attr(data-v); position: absolute; left: 300px; top: 200px; color: red }</style><p id=q data-private data-v=secret>a</p>",
    "editable page": "<p>text</p><script>document.designMode = 'on'</script>",
}


async def test_what_is_drawn_where_no_box_tells_is_refused(camera):
    for trick, markup in DISPLACED.items():
        await camera.show(KEPT + markup)
        error = await camera.fails()
        assert (error.code, error.rule) == (Code.TARGET_DENIED, "masking-not-proved"), trick


async def test_a_backdrop_that_moves_pixels_is_masked_with_them(camera):
    await camera.show(
        KEPT
        + GLASS
        + FRAME
        + "<div style='position:absolute;inset:0 100px 100px 0;backdrop-filter:url(#f)'></div>"
    )
    look = await camera.take()
    assert look.tinged() == 0
    assert look.near(PLAIN) > 500


async def test_a_transition_between_views_is_waited_for_and_then_refused(camera):
    await camera.show(
        f"<style>::view-transition-group(*) {{ animation-duration: 1000s }}</style>{SECRET}<p id=t>1</p>"
    )
    await camera.js("document.startViewTransition(() => { t.textContent = '2' }).ready.then(() => 1)")
    assert (await camera.fails()).code is Code.BUSY


async def test_a_smooth_scroll_is_not_caught_in_the_middle(camera):
    await camera.show(f"<div style='height:90000px;padding-top:600px'>{SECRET}</div>")
    await camera.js("scrollTo({ top: 700, behavior: 'smooth' })")
    for _ in range(5):
        code = None
        try:
            assert (await camera.take()).tinged() == 0
        except ActionError as error:
            code = error.code
        assert code in (None, Code.BUSY)


async def test_an_agent_cannot_scroll_in_the_middle(camera):
    await camera.show(f"<div style='height:4000px;padding-top:300px'>{SECRET}</div>")
    session, codes = camera.tab.session, []
    native = session.call

    async def call(command):
        result = await native(command)
        if command.method == "Page.captureScreenshot":
            session.call = native
            codes.append(await camera.agent.fails("scroll", y=200))
            codes.append(await camera.agent.fails("screenshot"))
        return result

    session.call = call
    look = await camera.take()
    assert codes == [Code.BUSY, Code.BUSY]
    assert look.tinged() == 0


async def test_a_page_is_told_nothing_and_goes_on(camera):
    await camera.show("""<p class=p id=b></p><style>@keyframes k { to { left: 90px } } #b { position: relative; animation: k 1s infinite }</style>
      <svg><rect width=9 height=9><animate attributeName=x to=90 dur=1s repeatCount=indefinite /></rect></svg>
      <script>window.log = []; for (const type of ['visibilitychange', 'freeze', 'resume', 'blur', 'focus', 'resize', 'scroll', 'pagehide'])
        for (const target of [window, document]) target.addEventListener(type, () => log.push(type), true);
      window.svg = document.querySelector('svg'); window.state = () => JSON.stringify([document.getAnimations().map((a) => [a.playState, a.playbackRate]), svg.animationsPaused(), document.hidden]);
      window.before = state(); window.frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))</script>""")
    await camera.js("(log.length = 0, frame())")
    await camera.take()
    assert await camera.js("log.join() + (state() === before)") == "true"
    # Everything goes on: frames, the style sheet's animations, SVG's.
    assert await camera.js("""(async () => {
      const at = () => [document.getAnimations()[0].currentTime, svg.getCurrentTime(), document.timeline.currentTime];
      const first = at(); await frame(); return at().every((one, i) => one > first[i]) })()""")


async def test_a_tab_behind_gives_no_picture_and_stays_there(camera, site):
    await camera.show("<p class=p></p>")
    behind = camera.tab
    created = await camera.agent.call("tabs:create", url=site.url("/page"))
    error = await camera.fails(sessionId=behind.id)
    assert (error.code, error.committed) == (Code.CONFLICT, False)
    assert camera.tab.id == created["sessionId"]
    assert (await camera.take()).near(PLAIN) > 5_000
