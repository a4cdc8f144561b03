"""Selecting and checking: the state asked for, told to the page once, and there after its handlers."""

# Markup in lines of its own.
# ruff: noqa: E501

from tabwarden.errors import Code

LOG = """<script>window.log = [];
for (const type of ['click', 'input', 'change'])
  document.addEventListener(type, (e) => { if (e.target.id) log.push(type + ' ' + e.target.id) }, true)</script>"""


async def test_one_existing_enabled_option_is_chosen(stage):
    await stage.show(
        LOG
        + """<select id=s><option value=a>one<option value=b>two<option>three<option value=d disabled>four
        <option value=e hidden>five<option value=f style="display:none">six<optgroup label=g disabled><option
        value=h>seven</optgroup><optgroup label=i hidden><option value=j>eight</optgroup><optgroup label=k><option
        value=l>nine</optgroup><option value=m>ten<option value=m>ten again<option value=n data-sensitive>no
        <optgroup data-private label=o><option value=p>no</optgroup></select>
        <select id=r size=4><option value=1>1<option value=2>2</select>"""
    )
    for value in ("b", "three", "l", "a"):
        assert await stage.do("select", "#s", value=value) == {}
        assert await stage.js("s.value") == value
        assert await stage.js("log.splice(0)") == ["input s", "change s"]
    assert await stage.do("select", "#s", value="a") == {}
    assert await stage.do("select", "#r", value="2") == {}
    assert await stage.js("log.splice(0)") == ["input r", "change r"]
    for value in ("d", "e", "f", "h", "j", "m", "n", "p", "z", "", "A"):
        await stage.denied("select", "#s", "target-option", value=value)
    assert await stage.js("[s.value, log]") == ["a", []]


async def test_a_choice_that_is_not_kept_is_not_completed(stage):
    for revert in ("this.value = 'a'", "setTimeout(() => this.value = 'a')", "this.options[1].remove()"):
        await stage.show(f'<select id=s onchange="{revert}"><option value=a>1<option value=b>2</select>')
        ending = await stage.no("select", "#s", value="b")
        assert (ending.code, ending.effect) == (Code.CONFLICT, "unknown")


async def test_checkboxes_are_set_not_toggled(stage):
    await stage.show(
        LOG
        + """<input type=checkbox id=c><label><input type=checkbox id=l style="opacity:0"> label</label>
        <label for=h>hidden one</label><input type=checkbox id=h style="position:absolute;left:-999px">
        <div role=checkbox id=d tabindex=0 aria-checked=false
          onclick="this.setAttribute('aria-checked', this.getAttribute('aria-checked') !== 'true')">aria</div>
        <button role=switch id=w aria-checked=mixed onclick="this.setAttribute('aria-checked', true)">switch</button>
        <script>c.indeterminate = true</script>"""
    )
    for name in ("c", "l", "h"):
        for checked in (True, True, False, False, True):
            assert await stage.do("check", "#" + name, checked=checked) == {}
            assert await stage.js(f"{name}.checked") is checked
        told = await stage.js("log.splice(0)")
        assert [line for line in told if line != f"click {name}"] == 3 * [f"input {name}", f"change {name}"]
    for checked in (True, True, False):
        await stage.do("check", "#d", checked=checked)
        assert await stage.js("d.ariaChecked") == str(checked).lower()
    await stage.do("check", "#w", checked=True)
    assert (await stage.no("check", "#w", checked=False)).code is Code.CONFLICT
    assert await stage.js("log") == ["click d", "click d", "click w", "click w"]


async def test_a_check_that_is_not_kept_is_not_completed(stage):
    for handler in (
        "onclick='return false'",
        "onchange='this.checked = !this.checked'",
        "onchange='requestAnimationFrame(() => this.checked = false)'",
        "onchange='this.disabled = true'",
    ):
        await stage.show(f"<input type=checkbox id=c {handler}>")
        ending = await stage.no("check", "#c", checked=True)
        assert (ending.code, ending.effect) == (Code.CONFLICT, "unknown"), handler


async def test_what_is_drawn_anew_is_looked_at_anew(stage):
    await stage.show("""<div id=root></div><script>
      let on = false;
      const render = () => { root.innerHTML = `<input type=checkbox id=c ${on ? 'checked' : ''}>`;
        c.onchange = () => { on = !on; render() } };
      render()</script>""")
    assert await stage.do("check", "#c", checked=True) == {}
    assert await stage.do("check", "#c", checked=False) == {}
    assert await stage.js("[on, c.checked]") == [False, False]
