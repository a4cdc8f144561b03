"""What an inspection lists: visible, non-sensitive controls that can be found again."""

from tabwarden_adapters.browser.selectors import target

from tests.browser.reading.probe import in_page, in_world

LONG = "y" * 129
PAGE = f"""<!doctype html>
<a href='/x'>Go <b>there</b></a><a>no link</a>
<button id=push>Push<span hidden> NO</span></button><button disabled>Off</button>
<fieldset disabled><button>Off too</button></fieldset><div inert><button>Inert</button></div>
<label>Full name <input name=full value=Ann></label>
<input aria-label='Search here' type=search>
<input placeholder=Age type=number value=7><input title=Day type=date>
<input type=submit><input type=button value=Do>
<label style='position:relative'>
<input type=checkbox checked style='opacity:0;position:absolute'>Fancy</label>
<label><input type=radio name=r>One</label>
<span id=lb>Label<script>NO</script></span>
<div role=switch aria-checked=true aria-labelledby=lb tabindex=0>Sw</div>
<textarea>text</textarea><div contenteditable aria-label=Note>edit <b>me</b></div>
<details><summary>More</summary><button>NO</button></details>
<button aria-label='a&#x202e;b'>x</button>
<button><img alt=Picture width=20 height=20></button>
<input value='{"v" * 1001}' aria-label=Big><input value='a&#x200b;b' aria-label=Odd>
<p style='display:none'><button>NO</button></p><p style='opacity:0'><button>NO</button></p>
<button style='position:absolute;left:-900px'>NO</button>
<div style='position:relative'><button>NO</button>
<div style='position:absolute;inset:0;background:#fff'></div></div>
<input type=password value=NO><input type=hidden value=NO><input type=file><input name=otp value=NO>
<div class=host></div><iframe srcdoc='<button>Framed</button>'></iframe>
<script>
  document.querySelector(".host").attachShadow({{mode: "open"}}).innerHTML = "<button>Shady</button>";
</script>"""
EXPECTED = [
    ("link", "Go there", {}),
    ("button", "Push", {}),
    ("button", "Off", {"disabled": True}),
    ("button", "Off too", {"disabled": True}),
    ("button", "Inert", {"disabled": True}),
    ("textbox", "Full name", {"value": "Ann"}),
    ("searchbox", "Search here", {"value": ""}),
    ("spinbutton", "Age", {"value": "7"}),
    ("textbox", "Day", {"value": ""}),
    ("button", "Submit", {}),
    ("button", "Do", {}),
    ("checkbox", "Fancy", {"checked": True}),
    ("radio", "One", {"checked": False}),
    ("switch", "Label", {"checked": True}),
    ("textbox", "", {"value": "text"}),
    ("textbox", "Note", {"value": "edit me"}),
    ("button", "More", {}),
    ("button", "ab", {}),
    ("button", "Picture", {}),
    ("textbox", "Big", {}),
    ("textbox", "Odd", {}),
    ("button", "Shady", {}),
    ("button", "Framed", {}),
]


async def found(agent, text):
    """The elements that a selector or ref means, by their refs, and whether it was stale."""
    script = """
      const found = find(this, a0);
      return { refs: found.elements.map((one) => refs.of(this, one)), stale: found.stale };"""
    argument = target(text).argument()
    return await in_world(agent, script, argument, parts=("dom.js", "refs.js", "find.js"))


async def test_what_is_listed(agent, site):
    site.pages["/"] = PAGE
    await agent.call("navigate", url=site.url())
    result = await agent.call("inspect")
    controls = result.pop("controls")
    assert result == {"origin": site.url(""), "untrusted": True}
    told = [
        (one["role"], one["name"], {k: v for k, v in one.items() if k in ("value", "checked", "disabled")})
        for one in controls
    ]
    assert told == EXPECTED
    for control in controls:
        for text in (control["ref"], control["selector"]):
            assert await found(agent, text) == {"refs": [control["ref"]], "stale": False}
    # Asked again, everything has the same name.
    assert (await agent.call("inspect"))["controls"] == controls


async def test_options(agent, site):
    many = "".join(f"<option value=v{number}>V{number}" for number in range(30))
    site.pages["/"] = f"""<!doctype html>
      <select id=a><option value=a>A<option selected value=b>B<option hidden value=c>C
        <option disabled value=d>D
        <optgroup label=G><option value=e label=E>x</optgroup>
        <optgroup label=H hidden><option value=f>F</optgroup>
        <optgroup disabled><option value=g>G</optgroup><option value={LONG}>long
        <option value='{LONG[:128]}'>fits<option value='x&#x202e;y'>odd<option id=password value=h>H
        <option style='display:none' value=i>I</select>
      <select id=b>{many}</select><select id=c multiple><option selected>1<option selected>2</select>
      <select id=d><option selected value={LONG}>long</select>"""
    await agent.call("navigate", url=site.url())
    first, second, third, fourth = (await agent.call("inspect"))["controls"]
    assert first["options"] == [
        {"value": "a", "label": "A"},
        {"value": "b", "label": "B", "selected": True},
        {"value": "e", "label": "E"},
        {"value": LONG[:128], "label": "fits"},
    ]
    assert first["value"] == "b"
    assert [option["value"] for option in second["options"]] == [f"v{number}" for number in range(20)]
    assert (third["role"], len(third["options"]), "value" in third) == ("listbox", 2, False)
    assert (fourth["options"], "value" in fourth) == ([], False)


async def test_windows_of_controls(agent, site):
    site.pages["/"] = "<!doctype html>" + "".join(f"<button>{number}</button>" for number in range(250))
    await agent.call("navigate", url=site.url())
    names, cursors, cursor = [], [], 0
    while cursor is not None:
        result = await agent.call("inspect", cursor=cursor)
        names += [control["name"] for control in result["controls"]]
        cursor = result.get("nextCursor")
        cursors.append(cursor)
    assert names == [str(number) for number in range(250)]
    assert cursors == [100, 200, None]
    assert (await agent.call("inspect", cursor=10**6))["controls"] == []


async def test_a_ref_means_one_element_of_one_document(agent, site):
    site.pages["/"] = "<!doctype html><button>one</button><button>two</button>"
    await agent.call("navigate", url=site.url())
    one, two = [control["ref"] for control in (await agent.call("inspect"))["controls"]]
    await in_page(agent, "document.querySelector('button').remove(); history.pushState(0, '', '/#x')")
    assert await found(agent, one) == {"refs": [], "stale": True}
    assert await found(agent, two) == {"refs": [two], "stale": False}
    assert (await found(agent, two.partition(".")[0] + ".99"))["stale"]
    await agent.call("reload")
    assert (await found(agent, two))["stale"]
    again = [control["ref"] for control in (await agent.call("inspect"))["controls"]]
    assert set(again).isdisjoint((one, two))
