"""Shadow trees, slots and frames; names that a page gives to shadow what we ask for."""

from tests.browser.reading.probe import in_page

PAGE = """<!doctype html><p>one</p>
<div id=host><b slot=s>three</b><i>unslotted NO</i></div>
<div id=closed></div>
<iframe srcdoc='<p>four</p><iframe srcdoc="<p>five</p>" height=60></iframe>' height=150></iframe>
<iframe src='/inner' height=60></iframe>
<iframe srcdoc='NO' style='display:none'></iframe>
<iframe srcdoc='NO' style='position:absolute;left:-5000px'></iframe>
<iframe src='OTHER' height=30></iframe>
<iframe sandbox src='/inner' height=30></iframe>
<iframe src='data:text/html,NO' height=30></iframe>
<iframe src='https://hidden.localhost/' style='opacity:0'></iframe>
<p>seven</p>
<script>
  host.attachShadow({mode: "open"}).innerHTML =
    "<p>two</p><slot name=s></slot><div id=in></div><span style='display:none'>NO</span>";
  host.shadowRoot.getElementById("in").attachShadow({mode: "open"}).innerHTML = "<p>deep</p>";
  closed.attachShadow({mode: "closed"}).innerHTML = "<p>NO</p>";
</script>"""


async def test_what_is_open_is_read_and_what_is_not_is_named(agent, site):
    other = site.url("/inner", "other.localhost")
    site.pages.update({"/": PAGE.replace("OTHER", other + "?secret=1"), "/inner": "<p>six</p>"})
    await agent.call("navigate", url=site.url())
    result = await agent.call("read")
    words = ["one", "two", "three", "deep", "four", "five", "six", "seven"]
    assert result["text"].split() == words
    # Of a frame that is sandboxed nothing is known but what it was told to load.
    assert result["framesNotRead"] == [site.url("", "other.localhost"), site.url(""), "frame"]
    assert (await agent.call("inspect"))["framesNotRead"] == result["framesNotRead"]


async def test_a_frame_that_goes_elsewhere_is_not_read(agent, site):
    site.pages.update({"/": "<iframe src='/inner'></iframe><p>here</p>", "/inner": "<p>inner</p>"})
    await agent.call("navigate", url=site.url())
    assert (await agent.call("read"))["text"] == "inner\n\nhere"
    other = site.url("/inner", "other.localhost")
    await in_page(
        agent,
        f"""new Promise((done) => {{
          const frame = document.querySelector("iframe");
          frame.onload = done;
          frame.src = "{other}";
        }})""",
    )
    result = await agent.call("read")
    assert (result["text"], result["framesNotRead"]) == ("here", [site.url("", "other.localhost")])


async def test_names_of_fields_shadow_nothing(agent, site):
    keys = "id childNodes nodeType localName getAttribute hasAttribute shadowRoot parentNode labels"
    fields = "".join(f"<input name={key} value=v>" for key in keys.split())
    names = "documentElement body defaultView createRange location getElementById querySelectorAll"
    images = "".join(f"<img name={key} id={key}><form name={key}></form>" for key in names.split())
    ids = "tabwardenRefs tabwardenOncePasswords tabwardenShown getComputedStyle innerWidth Node Element dom"
    elements = "".join(f"<a id={key}></a>" for key in ids.split())
    site.pages["/"] = f"<!doctype html>{elements}<form>{fields}<p>inside</p></form>{images}<p>outside</p>"
    await agent.call("navigate", url=site.url())
    assert (await agent.call("read"))["text"] == "inside\n\noutside"
    controls = (await agent.call("inspect"))["controls"]
    assert [control["selector"] for control in controls] == [f'input[name="{key}"]' for key in keys.split()]
    assert (await agent.call("sessions"))[0]["foreground"]
