"""Pages that work against the click and the text: nothing lands where it was not meant to."""

# Markup in lines of its own.
# ruff: noqa: E501

import trio
from tabwarden.errors import ActionError, Code

from tests.browser.agent import Call

# `bait` is what the page wants clicked, `x` is what the agent means. Whatever reaches the bait is logged.
BAIT = """<!doctype html><style>* { margin: 0 } button, a, input { position: absolute; left: 50px; top: 50px;
  width: 100px; height: 40px } #bait { display: none; z-index: 9 } .on { display: block !important }</style>
<button id=x onclick="log.push('x')">x</button>
<a id=bait href=/gone onpointerdown="log.push('down')" onpointerup="log.push('up')" onclick="log.push('bait')">bait</a>
<script>window.log = []; const on = (type, f) => addEventListener(type, f, true);
const show = () => bait.classList.add('on'); %s</script>"""
TRICKS = {
    "overlay when the pointer moves": ("on('mousemove', show)", Code.TARGET_DENIED),
    "overlay when it comes over": ("x.onmouseenter = show", Code.TARGET_DENIED),
    "overlay at the press": ("on('pointerdown', show)", Code.CONFLICT),
    "overlay after the press": ("x.onmousedown = show", Code.CONFLICT),
    "runs away": (
        "on('mousemove', () => { x.style.left = (x.offsetLeft + 200) % 600 + 'px'; show() })",
        Code.TARGET_DENIED,
    ),
    "gone": ("x.onmouseenter = () => x.remove()", Code.TARGET_DENIED),
    "gone at the press": ("x.onmousedown = () => { x.remove(); show() }", Code.CONFLICT),
    "disabled when hovered": ("x.onmouseenter = () => { x.disabled = true }", Code.TARGET_DENIED),
    "becomes a secret": ("x.onmouseenter = () => x.setAttribute('data-sensitive', '')", Code.TARGET_DENIED),
    "keeps the press to itself": ("on('pointerdown', (e) => e.stopImmediatePropagation())", Code.CONFLICT),
    "keeps the click to itself": ("on('click', (e) => e.stopImmediatePropagation())", Code.CONFLICT),
    "frame": (
        "on('mousemove', () => { const f = document.createElement('iframe'); f.src = 'http://other.localhost:1/';"
        " f.style = 'position:fixed;inset:0;width:100%;height:100%'; document.body.append(f) })",
        Code.TARGET_DENIED,
    ),
}


async def test_the_bait_is_never_clicked(stage):
    for name, (trick, code) in TRICKS.items():
        await stage.show(BAIT % trick)
        ending = await stage.no("click", "#x")
        assert (ending.code, ending.effect) == (code, "unknown"), name
        # Whatever it was, the button is up again and a later click is a whole one.
        assert await stage.js("log") == [], name
        await stage.show("<button id=x>1</button>")
        assert await stage.do("click", "#x") == {}, name


async def test_a_page_that_never_rests_gets_no_click_on_its_bait(stage):
    swap = "let i = 0; (function f() { bait.classList.toggle('on', i++ % 2); setTimeout(f) })()"
    await stage.show(BAIT % swap)
    for _ in range(5):
        ended = Call("click")
        try:
            await stage.agent.call("click", ended, selector="#x")
        except ActionError:
            assert ended.effects == [] or ended.effects[0] == "begin"
    assert set(await stage.js("log")) <= {"x"}
    assert "GET /gone" not in stage.site.asked


async def test_the_element_stays_the_one_that_was_found(stage):
    await stage.show("""<style>button { display: block; width: 200px }</style>
      <button id=x onclick="document.title = 'a'" onmouseenter="this.id = 'y'; o.id = 'x'">a</button>
      <button id=o onclick="document.title = 'b'">b</button>""")
    assert await stage.do("click", "#x") == {}
    assert await stage.js("document.title") == "a"
    await stage.show("""<input id=x onfocus="this.id = 'y'; o.id = 'x'"><input id=o>""")
    await stage.do("type", "#x", text="t")
    assert await stage.js("[y.value, x.value]") == ["t", ""]


FIELDS = {
    "onfocus=\"this.type = 'password'\"": Code.CONFLICT,
    "onfocus=\"this.autocomplete = 'cc-number'\"": Code.CONFLICT,
    "onfocus='this.readOnly = true'": Code.TARGET_DENIED,
    "onfocus='this.disabled = true'": Code.CONFLICT,
    "onfocus='o.focus()'": Code.TARGET_DENIED,
    "onfocus='this.remove()'": Code.CONFLICT,
    "onfocus='this.hidden = true'": Code.CONFLICT,
    "onmousedown='event.preventDefault()'": Code.TARGET_DENIED,
    "data-b=\"x.type = 'password'\"": Code.CONFLICT,
    "data-b=\"x.setAttribute('data-private', '')\"": Code.CONFLICT,
    "data-b='o.focus()'": Code.CONFLICT,
    "data-b='event.preventDefault()'": Code.CONFLICT,
    "oninput='this.value = 1'": Code.CONFLICT,
    "oninput='this.remove()'": Code.CONFLICT,
    "onchange=\"this.type = 'password'\"": Code.CONFLICT,
}


async def test_text_goes_into_the_field_that_was_meant_or_nowhere(stage):
    for trick, code in FIELDS.items():
        await stage.show(f"""<input id=x {trick}><input id=o><script>const x = document.getElementById('x'); window.x = x;
          addEventListener('beforeinput', (event) => {{ if (x.dataset.b) eval(x.dataset.b) }}, true)</script>""")
        ending = await stage.no("type", "#x", text="text")
        assert (ending.code, ending.effect) == (code, "unknown"), trick
        assert await stage.js("o.value") == "", trick
        if "password" not in trick or "change" not in trick:
            assert await stage.js("window.x.value") in ("", "1", "text" if "remove" in trick else ""), trick


async def test_a_page_may_leave_at_the_press(stage):
    stage.site.pages["/next"] = """<p>next</p><script>window.log = [];
      for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'keydown', 'beforeinput'])
        addEventListener(type, () => log.push(type), true)</script>"""
    for handler in ("onmousedown", "onpointerdown", "onmouseup", "onclick"):
        await stage.show(
            f"<button id=x {handler}=\"location = '/next'\">1</button><style>#x{{width:500px}}</style>"
        )
        assert await stage.do("click", "#x") == {}, handler
        await stage.at("/next")
        assert await stage.js("log") == [], handler
    for handler in ("onmousedown", "onfocus", "onbeforeinput", "oninput", "onchange"):
        await stage.show(f"<input id=x {handler}=\"location = '/next'\"><style>#x{{width:500px}}</style>")
        call = Call("type")
        try:
            await stage.agent.call("type", call, selector="#x", text="t")
        except ActionError:
            assert call.effects == ["begin"]
        await stage.at("/next")
        assert await stage.js("log") == [], handler


async def test_a_page_cannot_speak_for_our_scripts(stage):
    await stage.show("""<form id=f><input name=defaultView><input name=getAttribute><input name=parentNode>
      <input name=matches><input name=localName><input name=elements><button id=x type=button>1</button>
      <input id=t><input type=checkbox id=c></form><img name=elementFromPoint><img name=documentElement>
      <script>
      for (const Class of [Document, Element, HTMLElement, HTMLInputElement, Node, Window, Event, EventTarget])
        for (const name of Object.getOwnPropertyNames(Class.prototype))
          if (!['addEventListener', 'constructor'].includes(name))
            try { Object.defineProperty(Class.prototype, name, { value: () => document.body }) } catch {}
      Array.prototype.find = Array.prototype.filter = () => document.body;
      Promise.prototype.then = () => {}; window.requestAnimationFrame = () => {}; window.setTimeout = () => {};
      window.MessageChannel = window.performance = window.getComputedStyle = null;
      </script>""")
    assert await stage.do("click", "#x") == {}
    assert await stage.do("type", "#t", text="text") == {}
    assert await stage.do("check", "#c", checked=True) == {}


async def test_large_and_busy_pages(stage):
    rows = "".join(f"<tr><td>{n}<td><button>b{n}</button><td><input>" for n in range(7000))
    await stage.show(
        f"<table>{rows}</table><input id=t><button id=x onclick=\"document.title = 'hit'\">1</button>"
        "<script>setInterval(() => { for (let i = 0; i < 200; i++) document.body.dataset.n = i })</script>"
    )
    with trio.fail_after(20):
        assert await stage.do("click", "#x") == {}
        assert await stage.do("type", "#t", text="x" * 20_000) == {}
    assert await stage.js("[document.title, t.value.length]") == ["hit", 20_000]
    assert (await stage.no("click", "button")).rule == "target-several"
