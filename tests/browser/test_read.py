"""What a read returns of a real page, and what it leaves out."""

from tabwarden.errors import Code

from tests.browser.agent import Call

HIDDEN = {
    "display": "<p style='display:none'>NO</p>",
    "attribute": "<p hidden>NO</p>",
    "until-found": "<div hidden=until-found>NO</div>",
    "visibility": "<p style='visibility:hidden'>NO</p>",
    "collapse": "<p style='visibility:collapse'>NO</p>",
    "opacity": "<div style='opacity:0'><p>NO</p></div>",
    "opacities": "<div style='opacity:.3'><p style='opacity:.3'>NO</p></div>",
    "filter": "<p style='filter:opacity(0)'>NO</p>",
    "size": "<div style='width:0;height:0;overflow:hidden'>NO</div>",
    "one pixel": "<div style='position:absolute;width:1px;height:1px;overflow:hidden'>NO</div>",
    "clip": "<div style='position:absolute;clip:rect(0,0,0,0)'>NO</div>",
    "inset": "<div style='clip-path:inset(50%)'>NO</div>",
    "circle": "<div style='clip-path:circle(0)'>NO</div>",
    "left": "<div style='position:absolute;left:-9999px'>NO</div>",
    "top": "<div style='position:absolute;top:-9999px'>NO</div>",
    "indent": "<div style='text-indent:-9999px;overflow:hidden'>NO</div>",
    "fixed": "<div style='position:fixed;left:200vw'>NO</div>",
    "cut off": "<div style='overflow:hidden;height:20px;width:200px;position:relative'>"
    "<div style='position:absolute;top:300px'>NO</div></div>",
    "scale": "<div style='transform:scale(0)'>NO</div>",
    "font": "<p style='font-size:0'>NO</p>",
    "tiny": "<p style='font-size:1px'>NO</p>",
    "transparent": "<p style='color:transparent'>NO</p>",
    "same colour": "<p style='color:#fff'>NO</p>",
    "nearly": "<div style='background:#222'><p style='color:#232323'>NO</p></div>",
    "content": "<div style='content-visibility:hidden'>NO</div>",
    "details": "<details><summary>more</summary>NO</details>",
    "dialog": "<dialog>NO</dialog>",
    "script": "<script>'NO'</script><style>NO{}</style><noscript>NO</noscript><template>NO</template>",
    "comment": "<!-- NO -->",
    "attributes": "<img alt=NO title=NO><a title=NO href='/NO'></a><meta name=NO>",
    "input": "<input value=NO><input type=button value=NO><input placeholder=NO><textarea>NO</textarea>",
    "choices": "<select><option>NO</option></select><datalist><option>NO</option></datalist>",
    "editable": "<div contenteditable><b>NO</b></div><div role=textbox>NO</div>",
    "password": "<p id=user-password>NO</p><div class='apiKey'><b>NO</b></div><p data-testid=otp>NO",
    "code": "<output autocomplete=one-time-code>NO</output><p name=csrf_token>NO</p><p data-sensitive>NO</p>",
    "shadow": "<div id=host></div><script>document.getElementById('host').attachShadow({mode:'open'})"
    ".innerHTML='<p style=display:none>NO</p>'</script>",
    "frame": "<iframe srcdoc='<p hidden>NO'></iframe>",
}

SHOWN = """
<h1>Title</h1>
<p>one <b>two</b><i>three</i>  four
   five</p><p aria-hidden=true>six</p>
<ul><li>seven<li>eight</ul>
<table><tr><td>nine</td><td>ten</td></tr></table>
<pre>a  b
c</pre>
<div style='visibility:hidden'>NO<span style='visibility:visible'>eleven</span></div>
<details open><summary>twelve</summary>thirteen</details>
<div style='height:40px;overflow:auto'><p style='margin-top:300px'>fourteen</p></div>
<div style='margin-top:3000px;content-visibility:auto'>fifteen</div>
<div style='background:#000;color:#fff'>sixteen</div>
<div style='background-image:linear-gradient(#000,#000);color:#fff'>seventeen</div>
<button>eighteen</button> <label>nineteen <input value=NO></label>
<p id=author class=token>twenty</p>
<div id=host><span slot=s>twenty-one</span></div>
<script>document.getElementById('host').attachShadow({mode:'open'}).innerHTML =
  '<p>from the shadow: <slot name=s></slot></p>'</script>
<div style='display:contents'>twenty-two</div>
a<br>b
"""
TEXT = (
    "Title\n\none twothree four five\n\nsix\n\nseven\neight\nnine\tten\na  b\nc\neleven\ntwelve\nthirteen\n\n"
    "fourteen\n\nfifteen\nsixteen\nseventeen\neighteen nineteen\n\ntwenty\n\nfrom the shadow: twenty-one\n\n"
    "twenty-two a\nb"
)


async def test_what_shows_is_read_and_what_does_not_is_not(agent, site):
    site.pages["/shown"] = SHOWN
    await agent.call("navigate", url=site.url("/shown"))
    call = Call("read")
    result = await agent.call("read", call)
    assert result == {"text": TEXT, "origin": site.url(""), "untrusted": True}
    assert call.trace.children == ["cdp.runtime"]
    assert call.effects == []
    read = {}
    for name, markup in HIDDEN.items():
        site.pages["/hidden"] = f"<!doctype html><body><p>before</p>{markup}<p>after</p>"
        await agent.call("navigate", url=site.url("/hidden"))
        read[name] = (await agent.call("read"))["text"]
    assert {name: text for name, text in read.items() if "NO" in text} == {}
    assert all(text.startswith("before") and text.endswith("after") for text in read.values())


async def test_invisible_characters_are_taken_out(agent, site):
    site.pages["/"] = "<p>a\u200bb\u202ec\u2066d\u00ade\U000e0041\U000e0042f\ufe0f</p><p>\U0001f600</p>"
    site.pages["/lone"] = (
        "<p id=p></p><script>p.textContent = 'x\\ud800y'; document.title = '\\udc00'</script>"
    )
    await agent.call("navigate", url=site.url())
    assert (await agent.call("read"))["text"] == "abcdef\n\n\U0001f600"
    await agent.call("navigate", url=site.url("/lone"))
    assert (await agent.call("read"))["text"] == "x\ufffdy"


async def test_a_long_page_comes_in_windows(agent, site):
    # Characters, not UTF-16 units: none of these may be cut in two.
    words = " ".join(f"{number}\U0001f600" for number in range(4000))
    site.pages["/"] = f"<p>{words}</p>"
    await agent.call("navigate", url=site.url())
    parts, offset = [], 0
    while True:
        result = await agent.call("read", offset=offset)
        parts.append(result["text"])
        if "nextOffset" not in result:
            break
        assert len(result["text"]) == 10_000
        offset = result["nextOffset"]
    assert "".join(parts) == words
    assert len(parts) == len(words) // 10_000 + 1
    assert await agent.call("read", offset=10**6) == {**result, "text": ""}


async def test_a_page_cannot_speak_for_the_script(agent, site):
    site.pages["/"] = """<p>true</p><script>
      for (const name of Object.getOwnPropertyNames(Document.prototype))
        try { Object.defineProperty(Document.prototype, name, {get() { return 'NO' }}) } catch {}
      Node.prototype.__defineGetter__('childNodes', () => []);
      Array.prototype.join = String.prototype.replace = () => 'NO';
      window.getComputedStyle = () => ({display: 'none'});
      document.getElementsByTagName = null;
      globalThis.tabwardenShown = {changes: 99, visible: false};
      document.dispatchEvent(new Event('visibilitychange'));
    </script>"""
    await agent.call("navigate", url=site.url())
    assert (await agent.call("read"))["text"] == "true"
    assert (await agent.call("sessions"))[0]["foreground"]


async def test_a_page_that_goes_elsewhere_is_not_read(agent, site):
    site.pages.update(
        {
            "/": "<p>here</p><script>onclick = () => history.pushState(0, '', '/moved')</script>",
            "/secret": "secret",
        }
    )
    await agent.call("navigate", url=site.url())
    agent.forbidden.add("127.0.0.1")
    assert await agent.fails("read") is Code.DESTINATION_DENIED
    agent.forbidden.clear()
    ended = Call("read")
    ended.ended = Code.DEADLINE
    assert await agent.fails("read", ended) is Code.DEADLINE
    assert await agent.fails("read", sessionId="00000000-0000-0000-0000-000000000000") is Code.UNKNOWN_SESSION
