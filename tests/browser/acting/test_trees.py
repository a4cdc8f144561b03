"""Targets in open shadow trees, in slots and in frames of the page's origin; by what `inspect` calls them."""

# Markup in lines of its own.
# ruff: noqa: E501

HEAR = 'onclick="top.log.push(this.id)"'
INNER = f"""<button id=b {HEAR}>frame button</button><input id=t aria-label='frame text'>
<label><input type=checkbox id=c>frame check</label>
<select id=s aria-label='frame choice'><option value=1>1<option value=2>2</select><p style='height:2000px'></p>
<button id=far {HEAR}>frame far</button>"""


async def refs(stage):
    controls, cursor = [], 0
    while True:
        page = await stage.agent.call("inspect", cursor=cursor)
        controls += page["controls"]
        if "nextCursor" not in page:
            return {control["name"]: control["ref"] for control in controls}
        cursor = page["nextCursor"]


async def test_shadow_trees_and_slots(stage):
    await stage.show(f"""<script>window.log = []</script><p style="height:1500px"></p>
      <div id=h><button slot=s id=slotted {HEAR}>slotted</button><span slot=l>label text</span></div>
      <script>h.attachShadow({{mode: 'open'}}).innerHTML = `<button id=deep {HEAR}><slot name=l></slot></button>
        <div style="padding:20px"><slot name=s></slot></div><div id=i></div><input id=t aria-label="deep text">`;
      const inner = h.shadowRoot.getElementById('i').attachShadow({{mode: 'open'}});
      inner.innerHTML = `<input type=checkbox id=c aria-label="deeper check">`</script>""")
    assert await stage.do("click", "#slotted") == {}
    named = await refs(stage)
    assert await stage.do("click", named["label text"]) == {}
    await stage.do("type", named["deep text"], text="into the shadow")
    await stage.do("check", named["deeper check"], checked=True)
    assert await stage.js("log") == ["slotted", "deep"]
    assert await stage.js("h.shadowRoot.getElementById('t').value") == "into the shadow"
    assert await stage.js("h.shadowRoot.getElementById('i').shadowRoot.getElementById('c').checked")


async def test_a_cover_in_a_shadow_tree_covers(stage):
    await stage.show("""<div id=h><button id=x slot=s>1</button></div><script>
      h.attachShadow({mode: 'open'}).innerHTML = `<slot name=s></slot>
      <div style="position:fixed;inset:0"></div>`</script>""")
    await stage.denied("click", "#x", "target-covered")


async def test_frames_of_the_same_origin(stage):
    stage.site.pages["/inner"] = INNER
    for style in (
        "",
        "border:9px solid;padding:7px",
        "transform:scale(1.5);transform-origin:0 0",
        "margin-top:2000px",
    ):
        await stage.show(f"""<script>window.log = []</script>
          <iframe id=f src=/inner style="width:300px;height:200px;{style}"></iframe>""")
        named = await refs(stage)
        await stage.do("click", named["frame button"])
        await stage.do("click", named["frame far"])
        await stage.do("type", named["frame text"], text="in the frame")
        await stage.do("check", named["frame check"], checked=True)
        await stage.do("select", named["frame choice"], value="2")
        assert await stage.js("log") == ["b", "far"], style
        state = "(({t, c, s}) => [t.value, c.checked, s.value])(f.contentWindow)"
        assert await stage.js(state) == ["in the frame", True, "2"], style


async def test_a_frame_that_cannot_be_reckoned_with_is_denied(stage):
    stage.site.pages["/inner"] = INNER
    await stage.show("<script>log = []</script><iframe src=/inner></iframe>")
    named = await refs(stage)
    for style, rule in {"transform: rotate(9deg)": "target-unseen", "opacity: .01": "target-unseen"}.items():
        await stage.js(f"document.querySelector('iframe').style = '{style}'")
        await stage.denied("click", named["frame button"], rule)
    await stage.js("document.querySelector('iframe').remove()")
    assert (await stage.no("click", named["frame button"])).effect == "not_started"
