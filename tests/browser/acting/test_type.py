"""Typing: the field holds exactly the text, the page was told as by a person, or nothing has changed."""

# Markup in lines of its own.
# ruff: noqa: E501

import pytest
from tabwarden.errors import Code

LOG = """<script>window.log = [];
for (const type of ['beforeinput', 'input', 'change', 'submit', 'keydown', 'focus'])
  document.addEventListener(type, (e) => { if (e.target.id) log.push(type + ' ' + e.target.id) }, true)</script>"""
TEXTS = (
    "plain",
    "two words, \u00e4\u00f6\u00fc \u00df",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd abc",
    "\u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4 \u0e44\u0e17\u0e22",
    "e\u0301 \u00e9 \ufb01",
    "<b>&amp;</b> \\ ' \" ` ${x}",
    "a\tb",
    " spaces  in  it ",
)


async def test_any_text_arrives_whole_in_place_of_the_old(stage):
    await stage.show(f"{LOG}<input id=i value=old><textarea id=t>old</textarea><input id=s type=search>")
    for text in TEXTS:
        for name in ("i", "t", "s"):
            assert await stage.do("type", "#" + name, text=text) == {}
            assert await stage.js(f"{name}.value") == text
    await stage.do("type", "#t", text="one\r\ntwo\rthree\n")
    assert await stage.js("t.value") == "one\ntwo\nthree\n"
    long = "0123456789" * 2000
    await stage.do("type", "#t", text=long)
    assert await stage.js("t.value") == long
    await stage.do("type", "#t", text="")
    await stage.do("type", "#i", text="")
    assert await stage.js("t.value + i.value") == ""


async def test_the_page_is_told_once_and_nothing_is_submitted(stage):
    await stage.show(f"<form action=/sent><input id=i value=old><input id=j><button>go</button></form>{LOG}")
    await stage.do("type", "#i", text="new")
    assert await stage.js("log.splice(0)") == ["focus i", "beforeinput i", "input i", "change i"]
    assert await stage.js("document.activeElement.id") == "i"
    assert await stage.do("type", "#i", text="new") == {}
    assert await stage.js("log.splice(0)") == []
    await stage.do("type", "#j", text="x")
    # Leaving the first field says nothing new of it.
    assert await stage.js("log.splice(0)") == ["focus j", "beforeinput j", "input j", "change j"]
    await stage.do("type", "#j", text="")
    assert await stage.js("log.splice(0)") == ["keydown j", "beforeinput j", "input j", "change j"]
    assert "GET /sent" not in " ".join(stage.site.asked)


VALUES = {
    "date": "2024-02-29", "time": "13:45", "datetime-local": "2024-02-29T13:45", "month": "2024-02",
    "week": "2024-W09", "range": "30", "color": "#1a2b3c", "number": "-12.5e3", "email": "a@b.test",
    "url": "not yet a url", "tel": "+1 (2) 3",
}  # fmt: skip
CHANGED = {
    "date": ("2023-02-29", "29.2.2024"), "time": ("25:00",), "datetime-local": ("2024-02-29 13:45",),
    "month": ("2024-13",), "week": ("2024-W54",), "range": ("31", "-10", "200", "x"), "color": ("red", "#ABC"),
    "number": ("1e", "abc", "1,5", "+1", " 1"), "email": (" a@b.test ",), "url": ("http://a.test/\n",),
    "text": ("one\ntwo", "12345678901"),
}  # fmt: skip


async def test_typed_fields_take_what_they_keep_and_refuse_what_they_would_change(stage):
    for kind in {*VALUES, *CHANGED}:
        old = VALUES.get(kind, "old")
        await stage.show(f"{LOG}<input id=x type={kind} step=any maxlength=10>" if kind != "range"
                         else f"{LOG}<input id=x type=range max=100 step=10>")  # fmt: skip
        if kind in VALUES:
            if kind in ("email", "url", "tel"):
                await stage.js("x.removeAttribute('maxlength')")
            await stage.do("type", "#x", text=old)
            assert await stage.js("x.value") == old
            told = await stage.js("log.filter((line) => !/focus|before/.test(line))")
            assert told == ["input x", "change x"], kind
        else:
            await stage.js(f"x.value = '{old}'")
        await stage.js("log.splice(0)")
        for text in CHANGED.get(kind, ()):
            ending = await stage.no("type", "#x", text=text)
            assert (ending.code, ending.effect) == (Code.INVALID_ARGUMENTS, "not_started"), (kind, text)
        assert await stage.js("x.value") == old
        assert await stage.js("log") == []


async def test_what_is_only_invalid_is_kept(stage):
    await stage.show("<input id=p pattern='[0-9]+' minlength=9 required><input id=n type=number max=3>"
                     "<textarea id=t maxlength=4></textarea>")  # fmt: skip
    for name, text in {"p": "abc", "n": "7", "t": "\U0001f600\U0001f600"}.items():
        await stage.do("type", "#" + name, text=text)
        assert await stage.js(f"{name}.value") == text
    assert (await stage.no("type", "#t", text="\U0001f600\U0001f600.")).code is Code.INVALID_ARGUMENTS


@pytest.mark.parametrize("text", ["a\x00", "\x1b[0m", "\x7f", "\ud83d", "x\udc00y"])
async def test_what_no_keyboard_types_is_refused(stage, text):
    await stage.show("<textarea id=x>old</textarea><div id=e contenteditable>old</div>")
    for selector in ("#x", "#e"):
        ending = await stage.no("type", selector, text=text)
        assert (ending.code, ending.effect) == (Code.INVALID_ARGUMENTS, "not_started")


async def test_editors(stage):
    await stage.show(f"""{LOG}<div id=e contenteditable>old <b>bold <a href=/gone>link</a></b><p>par</p></div>
      <div id=p contenteditable=plaintext-only>old</div><div id=f contenteditable></div>""")
    for name in ("e", "p", "f"):
        for text in ("new", "two  spaces", "one\ntwo", "", "\U0001f600 \u05e9\u05dc\u05d5\u05dd"):
            await stage.do("type", "#" + name, text=text)
            seen = await stage.js(
                f"{name}.innerText.trim().replaceAll('\\u00a0', ' ').replace(/\\n+/, '\\n')"
            )
            assert seen == text
    assert not any(line.startswith(("submit", "change")) for line in await stage.js("log"))


REACT_LIKE = """<input id=x><p id=state></p><script>
  // As React does: the last value it knows sits on the element, and an event that brings no news is ignored.
  const native = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
  let known = '', state = '';
  Object.defineProperty(x, 'value', { configurable: true,
    get() { return native.get.call(this) }, set(v) { known = '' + v; native.set.call(this, v) } });
  const render = () => { state = accept(state, native.get.call(x)); x.value = state; window.renders++ };
  window.renders = 0;
  addEventListener('input', () => { if (native.get.call(x) !== known) { %s } }, true);
  const accept = (old, now) => %s;
</script>"""


async def test_frameworks_notice(stage):
    for when in ("render()", "queueMicrotask(render)", "requestAnimationFrame(render)"):
        await stage.show(REACT_LIKE % (when, "now"))
        for text in ("first", "second"):
            await stage.do("type", "#x", text=text)
            assert await stage.js("[x.value, state]") == [text, text]
        assert await stage.js("renders") == 2
    for when in ("render()", "setTimeout(render)", "requestAnimationFrame(render)"):
        # A field that keeps the old, or makes something else of it: not completed, and as it was before.
        for accept in ("old", "now.toUpperCase()", "now.slice(0, 3)"):
            await stage.show(REACT_LIKE % (when, accept))
            ending = await stage.no("type", "#x", text="text")
            assert (ending.code, ending.effect) == (Code.CONFLICT, "unknown"), (when, accept)
            assert await stage.js("x.value") == ""


async def test_a_change_that_is_taken_back_is_not_completed(stage):
    await stage.show("<input id=x value=old onchange=\"this.value = 'other'\">")
    assert (await stage.no("type", "#x", text="new")).code is Code.CONFLICT
    await stage.show("<input id=x type=date onchange=\"setTimeout(() => this.value = '')\">")
    assert (await stage.no("type", "#x", text="2024-01-01")).code is Code.CONFLICT
