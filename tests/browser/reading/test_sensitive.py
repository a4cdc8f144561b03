"""The table of sensitive elements, row by row, in a real page."""

import re
from pathlib import Path

import pytest
from tabwarden_adapters.browser.sensitive import SENSITIVE, table

from tests.browser.reading.probe import in_page, in_world

PARTS = ("dom.js", "sensitive.js")
SCRIPT = """
  return [...this.querySelectorAll("section")]
    .map((section) => sensitive(section.querySelector("[data-x]")));"""


@pytest.mark.parametrize("row", SENSITIVE, ids=lambda row: row.reason)
async def test_examples_are_found_and_lookalikes_are_not(agent, site, row):
    markup = [*row.examples, *row.lookalikes]
    site.pages["/"] = "<!doctype html>" + "".join(f"<section>{one}</section>" for one in markup)
    await agent.call("navigate", url=site.url())
    found = await in_world(agent, SCRIPT, parts=PARTS)
    expected = [row.reason] * len(row.examples) + [""] * len(row.lookalikes)
    assert dict(zip(markup, found, strict=True)) == dict(zip(markup, expected, strict=True))


@pytest.mark.parametrize("row", SENSITIVE, ids=lambda row: row.reason)
async def test_examples_are_absent(agent, site, row):
    examples = [re.sub(r"(<\w+)( data-x)", r"\1 value=SECRET\2", one) for one in row.examples]
    site.pages["/"] = "<!doctype html><p>before</p>" + "".join(
        f"<section>{one.replace('>y<', '>SECRET<')}</section>" for one in examples
    )
    await agent.call("navigate", url=site.url())
    text = (await agent.call("read"))["text"]
    assert text.startswith("before")
    assert "SECRET" not in text
    controls = (await agent.call("inspect"))["controls"]
    assert "SECRET" not in str(controls)
    marked = "return [...this.querySelectorAll('[data-x]')].map((one) => refs.of(this, one));"
    refs = await in_world(agent, marked, parts=("dom.js", "refs.js"))
    assert {control["ref"] for control in controls}.isdisjoint(refs)


async def test_once_a_password_always_a_password(agent, site):
    site.pages["/inner"] = "<input type=password data-x onclick='this.type = `text`'>"
    site.pages["/"] = """<!doctype html>
      <section><input data-x type=password><script>
        document.querySelector("input").type = "text";
      </script></section>
      <section><input data-x type=password></section>
      <section><input data-x type=password></section>
      <section><div data-x id=host></div></section>
      <section><iframe src=/inner></iframe></section>
      <section><input data-x></section>
      <a id=tabwardenOncePasswords></a>
      <script>
        const [, second, third] = document.querySelectorAll("input");
        second.removeAttribute("type");
        setTimeout(() => { third.type = "search"; });
        const shadow = host.attachShadow({mode: "open"});
        shadow.innerHTML = "<input type=password>";
      </script>"""
    await agent.call("navigate", url=site.url())
    await in_page(
        agent,
        """(() => {
          const inner = host.shadowRoot.querySelector("input");
          inner.dispatchEvent(new InputEvent("input", {bubbles: true, composed: true}));
          inner.type = "text";
          document.querySelector("iframe").contentDocument.querySelector("input").click();
        })()""",
    )
    script = """
      const host = this.getElementById("host");
      const frame = this.querySelector("iframe").contentDocument;
      return [...this.querySelectorAll("input"), host.shadowRoot.querySelector("input"),
        frame.querySelector("input")].map((one) => [one.type, sensitive(one)]);"""
    assert await in_world(agent, script, parts=PARTS) == [
        ["text", "password"],
        ["text", "password"],
        ["search", "password"],
        ["text", ""],
        ["text", "password"],
        ["text", "password"],
    ]


async def test_the_tree_around_says_what_a_field_is(agent, site):
    site.pages["/"] = """<!doctype html><secret-key></secret-key><x-field name=password></x-field>
      <x-box></x-box><script>
        for (const host of document.querySelectorAll("secret-key, x-field, x-box"))
          host.attachShadow({mode: "open"}).innerHTML = "<input>";
      </script>"""
    await agent.call("navigate", url=site.url())
    script = """return [...this.querySelectorAll("secret-key, x-field, x-box")]
      .map((host) => sensitive(host.shadowRoot.querySelector("input")));"""
    assert await in_world(agent, script, parts=PARTS) == ["token", "password", ""]


def test_the_documentation_has_the_table():
    text = (Path(__file__).parents[3] / "docs" / "reading.md").read_text("utf-8")
    assert table() in text


@pytest.mark.parametrize("where", ["page", "frame"])
async def test_examples_in_shadow_trees_are_absent(agent, site, where):
    """A frame of the page's own origin has classes of its own, whatever they are called."""
    examples = [
        re.sub(r"(<\w+)( data-x)", r"\1 value=SECRET\2", one).replace(">y<", ">SECRET<")
        for row in SENSITIVE
        for one in row.examples
    ]
    trees = "".join(f"<div class=tree><template>{one}</template></div>" for one in examples)
    hosts = "".join(
        f"<{host} class=tree><template><input value=SECRET></template></{host.split()[0]}>"
        for host in ("secret-input", "x-field name=card-number", "x-field aria-label=Password")
    )
    inner = f"""<!doctype html>{trees}{hosts}<p>after</p><script>
      for (const host of document.querySelectorAll(".tree")) {{
        const template = host.firstElementChild;
        host.attachShadow({{ mode: "open" }}).innerHTML = template.innerHTML;
        template.remove();
      }}
    </script>"""
    frame = "<!doctype html><iframe src=/inner width=700 height=9000></iframe>"
    site.pages.update({"/": inner if where == "page" else frame, "/inner": inner})
    await agent.call("navigate", url=site.url())
    text = (await agent.call("read"))["text"]
    assert "after" in text
    assert "SECRET" not in text
    controls = await agent.call("inspect")
    assert "SECRET" not in str(controls)
    assert "nextCursor" not in controls
