"""What lies in the view now does not cover what is elsewhere on a scrolling page; what stays there does."""

OPAQUE = "background:#fff;height:3000px"


async def test_what_comes_later_covers_nothing_but_its_own_place(agent, site):
    site.pages["/"] = (
        "<!doctype html><header style='background:#fff;height:60px'>top <button id=t>go</button></header>"
        f"<main style='{OPAQUE}'>main</main><button id=e>end</button>"
    )
    site.pages["/many"] = "<!doctype html>" + "<button style='width:20%;height:2em'>b</button>" * 400
    await agent.call("navigate", url=site.url())
    assert (await agent.call("read"))["text"] == "top go\nmain\nend"
    assert [control["name"] for control in (await agent.call("inspect"))["controls"]] == ["go", "end"]
    await agent.call("navigate", url=site.url("/many"))
    result = await agent.call("inspect")
    assert result["nextCursor"] == 100
    assert result["controls"][0]["selector"] == "button:nth-of-type(1)"


async def test_a_layer_that_stays_covers_all_and_what_lies_under_it_does_not_cover_it(agent, site):
    fixed = "position:fixed;inset:0;background:#fff"
    site.pages["/over"] = (
        f"<!doctype html><p>under</p><main style='{OPAQUE}'>too</main><div style='{fixed}'>over</div>"
    )
    site.pages["/under"] = (
        f"<!doctype html><body style=margin:0><div style='{fixed};z-index:-1'>under</div>"
        f"<main style='{OPAQUE}'>over</main>"
    )
    await agent.call("navigate", url=site.url("/over"))
    assert (await agent.call("read"))["text"] == "over"
    await agent.call("navigate", url=site.url("/under"))
    assert (await agent.call("read"))["text"] == "over"
