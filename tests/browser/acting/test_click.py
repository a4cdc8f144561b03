"""Clicks: one real click on the target, and what it may and may not set off."""

# Markup in lines of its own.
# ruff: noqa: E501

import trio
from tabwarden.errors import Code
from tabwarden_adapters.browser.cdp.generated import page

LOG = """<script>window.log = [];
for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'dblclick'])
  document.addEventListener(type, (e) => log.push(`${type} ${e.target.id} ${e.isTrusted} ${e.detail}`), true)
</script>"""


async def test_one_click_is_what_a_mouse_does(stage):
    await stage.show(f"{LOG}<button id=x>go</button>")
    for _ in range(2):  # at once again, and still no double click
        assert await stage.do("click", "#x") == {}
    assert await stage.js("log") == 2 * [
        "pointerdown x true 0", "mousedown x true 1", "pointerup x true 0", "mouseup x true 1", "click x true 1"
    ]  # fmt: skip


async def test_links_forms_and_history(stage):
    stage.site.pages.update(
        {"/two": "two<a id=b href='javascript:history.back()'>back</a>", "/three": "three"}
    )
    await stage.show("one<a id=l href=/two>two</a><form action=/three><button id=s>send</button></form>")
    assert await stage.do("click", "#l") == {}
    assert (await stage.agent.call("read"))["text"].startswith("two")
    assert await stage.do("click", "#b") == {}
    await stage.at("/page")
    assert (await stage.agent.call("read"))["text"].startswith("one")
    assert await stage.do("click", "#s") == {}
    assert (await stage.agent.call("read"))["text"] == "three"


async def test_a_slow_page_is_not_waited_for_long(stage):
    hold = trio.Event()

    async def slow():
        await hold.wait()
        return 200, {}, "slow"

    stage.site.pages["/slow"] = slow
    await stage.show("<a id=l href=/slow>slow</a>")
    with trio.fail_after(8):
        assert await stage.do("click", "#l") == {}
    hold.set()


async def test_labels_and_their_controls(stage):
    await stage.show("""<label id=a>one <input type=checkbox id=c></label><label id=b for=r>two</label>
      <input type=radio id=r><label id=n for=t>three</label><input id=t>""")
    for selector in ("#a", "#b", "#n"):
        assert await stage.do("click", selector) == {}
    assert await stage.js("[c.checked, r.checked, document.activeElement.id]") == [True, True, "t"]


async def test_popups_are_named(stage):
    stage.site.pages["/popup"] = "<title>popup</title>popped"
    first = stage.agent.host.get_context(None).session_id
    for markup in (
        "<a id=x target=_blank href=/popup>go</a>",
        "<a id=x target=_blank rel=opener href=/popup>go</a>",
        "<button id=x onclick=\"window.open('/popup')\">go</button>",
        "<button id=x onmousedown=\"window.open('/popup')\">go</button>",
        "<button id=x onclick=\"window.open('/popup', '', 'noopener')\">go</button>",
    ):
        await stage.show(markup)
        result = await stage.do("click", "#x")
        (opened,) = result.pop("openedSessions")
        assert result == {}, markup
        assert opened in [tab["id"] for tab in await stage.agent.call("sessions")]
        await stage.agent.call("tabs:close", sessionId=opened)
        await stage.agent.call("tabs:activate", sessionId=first)
    await stage.show("<button id=x onclick=\"for (const a of ['/popup', '']) window.open(a)\">go</button>")
    assert len((await stage.do("click", "#x"))["openedSessions"]) >= 1


async def test_dialogs_are_dismissed_and_told(stage):
    await stage.show("""<button id=x onclick="document.title = [confirm('a'), prompt('b', 'c'), alert('d')]">1</button>
      <button id=y onmousedown="alert('e')" onmouseup="alert('f')">2</button><a id=l href=/page?2>3</a>
      <input id=t oninput="confirm('g')"><input id=c type=checkbox onchange="if (!confirm('h')) this.checked = false">
      <script>onbeforeunload = (e) => e.preventDefault()</script>""")
    assert await stage.do("click", "#x") == {"dialogsDismissed": 3}
    assert await stage.js("document.title") == "false,,"
    assert await stage.do("click", "#y") == {"dialogsDismissed": 2}
    assert await stage.do("type", "#t", text="x") == {"dialogsDismissed": 1}
    assert (await stage.no("check", "#c", checked=True)).code is Code.CONFLICT
    assert await stage.do("click", "#l") == {"dialogsDismissed": 1}  # the page asked to stay, and stays
    assert await stage.js("location.search") == ""


async def test_a_dialog_in_one_tab_leaves_the_others_alone(stage):
    await stage.show("<p>other</p>")
    other = stage.agent.host.get_context(None).session_id
    await stage.agent.call("tabs:create", url=stage.site.url("/page"))
    await stage.show(
        "<button id=x onclick=\"for (let i = 0; i < 20; i++) alert('a'.repeat(1e5))\">1</button>", "/a"
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.do, "click", "#x")
        for _ in range(5):
            assert (await stage.agent.call("read", sessionId=other))["text"] == "other"


async def test_no_chooser_opens_and_nothing_is_downloaded(stage):
    stage.site.pages["/file"] = (200, {"Content-Disposition": "attachment; filename=x.bin"}, "x")
    await stage.show("""<button id=x onclick="f.click()">1</button><button id=y onclick="f.showPicker()">2</button>
      <a id=d href=/file download>3</a><a id=d2 href=/file>4</a><input id=f type=file hidden>""")
    with stage.tab.session.subscribe(page.FileChooserOpened) as choosers:
        for selector in ("#x", "#y"):
            assert await stage.do("click", selector) == {}
            with trio.fail_after(5):
                await anext(choosers)  # told to us in place of being opened
    assert await stage.js("f.files.length") == 0
    for selector in ("#d", "#d2"):
        assert await stage.do("click", selector) == {}
    assert await stage.js("location.pathname") == "/page"


async def test_choosers_work_again_for_the_next_document(stage):
    await stage.show("<button id=x>1</button>")
    await stage.do("click", "#x")
    actor = stage.agent.host._actor
    assert stage.tab in actor._without_choosers
    await stage.show("<button id=x>1</button>", "/next")
    assert stage.tab not in actor._without_choosers


async def test_menus_that_act_on_the_press(stage):
    # A menu that opens under the pointer at the press and takes the release, as some component libraries do.
    await stage.show("""<button id=x style="width:200px">menu</button><script>
      x.onpointerdown = (e) => { e.preventDefault(); m.hidden = false }</script>
      <div id=m hidden style="position:fixed;inset:0;background:#eee"
        onmouseup="document.title = 'chosen'" onclick="document.title = 'chosen'">item</div>""")
    assert await stage.do("click", "#x") == {}
    assert await stage.js("[m.hidden, document.title]") == [False, ""]


async def test_hover_that_moves_things_is_waited_for(stage):
    await stage.show("""<div id=w style="height:20px;width:300px" onmouseenter="this.style.height = '90px'">
      <button id=x onclick="document.title = 'hit'">1</button></div>
      <style>#w:hover #x { margin-top: 60px }</style>""")
    assert await stage.do("click", "#x") == {}
    assert await stage.js("document.title") == "hit"
