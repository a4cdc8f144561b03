"""Which element an action may be about: exactly one, there, seen, enabled, not secret, and really hit."""

# Markup in lines of its own.
# ruff: noqa: E501

import dataclasses

from tabwarden.errors import Code

HEAD = "<!doctype html><body><style>*{margin:0}</style>"

# markup with an element `x`, and the rule that denies a click on it
CLICK = {
    "<p class=x>1</p>": "target-none",
    "<p id=x>1</p><p id=x>2</p>": "target-several",
    "<input id=x type=password>": "target-sensitive",
    "<input id=x type=file>": "target-sensitive",
    "<input id=x type=hidden>": "target-sensitive",
    "<input id=x autocomplete='section-a one-time-code'>": "target-sensitive",
    "<div class=api-key><button id=x>copy</button></div>": "target-sensitive",
    "<label id=x for=p>Go</label><input id=p type=password>": "target-sensitive",
    "<label><span id=x>Go</span> <input type=file></label>": "target-sensitive",
    "<button id=x disabled>1</button>": "target-disabled",
    "<button disabled><b id=x>1</b></button>": "target-disabled",
    "<button id=x aria-disabled=true>1</button>": "target-disabled",
    "<div aria-disabled=TRUE><button id=x>1</button></div>": "target-disabled",
    "<fieldset disabled><button id=x>1</button></fieldset>": "target-disabled",
    "<fieldset disabled><legend>1</legend><legend><button id=x>2</button></legend></fieldset>": "target-disabled",
    "<div inert><button id=x>1</button></div>": "target-disabled",
    "<label id=x>1 <input type=checkbox disabled></label>": "target-disabled",
    "<p id=x hidden>1</p>": "target-unseen",
    "<p id=x style='visibility:hidden'>1</p>": "target-unseen",
    "<div style='display:none'><p id=x>1</p></div>": "target-unseen",
    "<div style='opacity:.3'><p id=x style='opacity:.3'>1</p></div>": "target-unseen",
    "<p id=x style='filter:opacity(5%)'>1</p>": "target-unseen",
    "<div id=x style='width:0;height:0;overflow:hidden'>1</div>": "target-unseen",
    "<div style='content-visibility:hidden'><p id=x>1</p></div>": "target-unseen",
    "<p id=x style='transform:scale(0)'>1</p>": "target-unseen",
    "<details><summary>1</summary><p id=x>2</p></details>": "target-unseen",
    "<dialog><p id=x>1</p></dialog>": "target-unseen",
    "<p id=x style='position:absolute;left:-999px;width:99px'>1</p>": "target-out-of-view",
    "<p id=x style='position:fixed;top:200vh;width:99px'>1</p>": "target-out-of-view",
    "<p id=x style='pointer-events:none'>1</p>": "target-covered",
    "<p id=x style='clip-path:circle(0)'>1</p>": "target-covered",
    "<p id=x>1</p><div style='position:fixed;inset:0'></div>": "target-covered",
    "<p id=x>1</p><iframe style='position:fixed;inset:0;width:100%;height:100%'></iframe>": "target-covered",
    "<p id=x>1</p><dialog id=d>2</dialog><script>d.showModal()</script>": "target-covered",
    "<div id=x style='width:90px'><button style='width:100%'>1</button></div>": "target-covered",
    "<div id=x><a href=/><b>1</b></a></div><style>#x,a{display:block;width:90px}</style>": "target-covered",
    "<div style='overflow:hidden;height:9px;width:99px'><p style='height:99px'></p><p id=x>1</p></div>": None,
    "<select id=x><option>1</select>": "target-kind",
    "<input id=x type=date>": "target-kind",
    "<input id=x type=color>": "target-kind",
    "<label id=x>1 <select><option>2</select></label>": "target-kind",
    "<iframe id=x></iframe>": "target-kind",
    "<a id=x href='mailto:a@b.test'>1</a>": "target-kind",
    "<a href='tel:1'><b id=x>1</b></a>": "target-kind",
    "<a id=x href='file:///etc/hostname'>1</a>": "target-kind",
    "<form><input type=password value=y><button id=x>log in</button></form>": "target-submits-secrets",
    "<form><input autocomplete=cc-number value=4><input id=x type=submit></form>": "target-submits-secrets",
    "<input form=f type=password value=y><form id=f><button><b id=x>1</b></button></form>": "target-submits-secrets",
    "<p id=x>1</p><style>@keyframes m{to{margin-left:300px}}#x{animation:m 9s linear infinite}</style>":
        "target-moving",
}  # fmt: skip

ALLOWED = (
    "<button id=x>1</button>",
    "<a id=x href='#here'>1</a>",
    "<a id=x href='javascript:void 0'>1</a>",
    "<p id=x>1 <a href=/>2</a></p>",
    "<b id=x><i><u>1</u></i></b>",
    "<fieldset disabled><legend><button id=x>1</button></legend></fieldset>",
    "<input id=x type=radio>",
    "<input id=x>",
    "<label id=x>1 <input type=checkbox></label>",
    "<div style='opacity:.5'><p id=x>1</p></div>",
    "<div style='margin-top:9000px'><p id=x>1</p></div>",
    "<div style='width:9000px'><p id=x style='margin-left:8000px'>1</p></div>",
    "<div style='height:50px;overflow:auto'><p style='height:900px'></p><p id=x>1</p></div>",
    "<div style='position:sticky;top:0;height:80px;background:#eee'></div><p style='height:3000px'></p><p id=x>1</p>"
    "<p style='height:3000px'></p>",
    "<div style='position:fixed;bottom:0;height:80px;width:100%;background:#eee'></div>"
    "<p style='height:3000px'></p><p id=x>1</p><p style='height:3000px'></p>",
    "<p id=x style='transform:rotate(30deg) scale(1.5);margin:90px;width:200px'>1</p>",
    "<div style='zoom:1.5'><p style='zoom:.5;height:50px'></p><p id=x>1</p></div>",
    "<style>html{zoom:2}</style><p style='height:90px'></p><p id=x>1</p>",
    "<div style='position:relative'><p id=x style='width:200px'>1</p>"
    "<i style='position:absolute;left:80px;top:0;width:40px;height:40px'></i></div>",
    "<form><input name=q value=1><input type=hidden name=csrf_token value=2><button id=x type=button>1</button></form>",
    "<form onsubmit='return false'><input type=password><input name=username value=me><button id=x>1</button></form>",
    "<svg id=x width=50 height=50><rect width=50 height=50 /></svg>",
    "<span id=x>1<br>2</span>",
    "<details><summary id=x>1</summary>2</details>",
)
HEAR = "<script>addEventListener('click', (e) => { if (e.isTrusted && x.contains(e.target)) document.title = 'hit' })</script>"


MOVES = """new Promise((moves) => requestAnimationFrame(function look() {
    parseFloat(getComputedStyle(x).marginLeft) > 0 ? moves(true) : requestAnimationFrame(look)
}))"""


async def test_what_is_denied_is_denied_before_anything_begins(stage):
    for markup, rule in CLICK.items():
        await stage.show(HEAD + markup + HEAR)
        if rule == "target-moving":
            # Until its first frame is there, an animation stands still.
            await stage.js(MOVES)
        if rule is None:
            await stage.do("click", "#x")
        else:
            ending = await stage.no("click", "#x")
            denied = (ending.code, ending.rule, ending.effect)
            assert denied == (Code.TARGET_DENIED, rule, "not_started"), markup
            assert await stage.js("document.title") == "", markup


async def test_what_can_be_hit_is_clicked_once(stage):
    for markup in ALLOWED:
        await stage.show(HEAD + markup + HEAR)
        assert await stage.do("click", "#x") == {}, markup
        assert await stage.js("document.title") == "hit", markup


async def test_what_each_action_works_on(stage):
    await stage.show(
        HEAD
        + """<button id=b>1</button><div id=d>2</div><input id=r type=radio><input id=c type=checkbox>
        <select id=m multiple><option>1</select><input id=ro readonly value=1><div id=ar contenteditable
        aria-readonly=true>2</div><textarea id=dis disabled></textarea><div contenteditable><p id=in>3</p></div>
        <label id=l><input type=checkbox>4</label><input id=range type=range><input id=sub type=submit>
        <button id=sw role=switch aria-readonly=true>5</button><a id=tog role=switch href=#>6</a>"""
    )
    for selector in ("#b", "#d", "#r", "#c", "#m", "#in", "#l", "#sub"):
        await stage.denied("type", selector, "target-kind", text="1")
    for selector in ("#ro", "#ar"):
        await stage.denied("type", selector, "target-readonly", text="1")
    await stage.denied("type", "#dis", "target-disabled", text="1")
    for selector in ("#b", "#d", "#m", "#c", "#ro"):
        await stage.denied("select", selector, "target-kind", value="1")
    for selector in ("#b", "#d", "#r", "#m", "#l", "#range", "#tog"):
        await stage.denied("check", selector, "target-kind", checked=True)
    await stage.denied("check", "#sw", "target-readonly", checked=True)


async def test_selectors_are_the_conservative_ones(stage):
    await stage.show(HEAD + "<button id='a:b.1'>1</button><button>2</button>")
    assert await stage.do("click", "#a\\:b\\.1") == {}
    for selector in ("button, #x", "*:has(b)", "::before", "button:hover", "[onclick]", "a ~ b"):
        assert (await stage.no("click", selector)).code is Code.TARGET_DENIED
    assert (await stage.no("click", "!")).code is Code.INVALID_ARGUMENTS
    ending = await stage.no("click", "r0123456789abcdef.1")
    assert (ending.code, ending.effect) == (Code.STALE_REF, "not_started")


async def test_only_the_interactive_tab_in_front_is_acted_upon(stage, monkeypatch):
    await stage.show(HEAD + "<button id=x>1</button>")
    agent = stage.agent
    first = agent.host.get_context(None).session_id
    await agent.call("tabs:create", url=stage.site.url("/page"))
    for action, arguments in {"click": {}, "type": {"text": "1"}, "select": {"value": "1"}}.items():
        ending = await stage.no(action, "#x", sessionId=first, **arguments)
        assert (ending.code, ending.effect) == (Code.CONFLICT, "not_started")
    assert (await stage.no("scroll", sessionId=first, y=1)).code is Code.CONFLICT
    assert await stage.do("click", "#x") == {}
    await agent.call("tabs:activate", sessionId=first)
    captured = agent.host.get_context

    def behind_a_panel(session_id):
        return dataclasses.replace(captured(session_id), interactive=False)

    monkeypatch.setattr(agent.host, "get_context", behind_a_panel)
    ending = await stage.no("click", "#x")
    assert (ending.code, ending.rule, ending.effect) == (
        Code.TARGET_DENIED, "tab-not-interactive", "not_started",
    )  # fmt: skip


async def test_forbidden_pages_are_not_acted_upon(stage):
    await stage.show(HEAD + "<button id=x>1</button>")
    stage.agent.forbidden.add("127.0.0.1")
    assert (await stage.no("click", "#x")).code is Code.DESTINATION_DENIED
