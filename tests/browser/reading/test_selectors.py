"""The subset of CSS: what is refused, what is written anew, and that it still means the same."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser.selectors import ATTRIBUTES, Css, Ref, canonical_selector, identifier, target

from tests.browser.reading.probe import in_page, in_world

WRITTEN = {
    "a": "a",
    " #a ": "#a",
    "\\69nput": "input",
    "\\000069nput": "input",
    "\\49 NPUT": "INPUT",
    "#\\31 23": "#\\31 23",
    "#a\\:b\\.c": "#a\\:b\\.c",
    "#\\-": "#\\-",
    ".\\@x": ".\\@x",
    "#é中": "#é中",
    "*": "*",
    "*.x": ".x",
    "|a": "a",
    "a/**/ b": "a b",
    "a>b+c  d": "a > b + c d",
    "input[name='q']": 'input[name="q"]',
    "[NAME=q]": '[name="q"]',
    "[name='\\22 ]']": '[name="\\"]"]',
    "[title='a b']": '[title="a b"]',
    "[data-testid^=a][id$=b][class~=c][lang|=en][title*=e]": (
        '[data-testid^="a"][id$="b"][class~="c"][lang|="en"][title*="e"]'
    ),
    "[disabled]": "[disabled]",
    "li:nth-child(3):first-child": "li:nth-child(3):first-child",
    "td:NTH-of-type( 2 )": "td:nth-of-type(2)",
    "a:not(.x):not([hidden])": "a:not(.x):not([hidden])",
}
DENIED = (
    *("a, b", "a ~ b", "a::before", "a:before", "a::part(x)", "a:hover", "a:visited", "a:focus", "a:checked"),
    *("a:has(b)", "a:is(b)", "a:where(b)", "a:matches(b)", "a:not(b c)", "a:not(:hover)"),
    *("a:nth-child(2n)", "a:nth-child(odd)", "a:nth-child(+3)", "a:nth-child(0)", "a:nth-child(3 of b)"),
    *("a:contains('x')", "a:lang(en)", ":scope a", ":root", "a:host"),
    *("*|a", "svg|a", "[*|name]", "[x|name]", "[value=a]", "[value]", "[href^=h]", "[style*=x]", "[src]"),
    *("[\\76 alue^=a]", "[data-secret]", "[name=q i]", "[name!=q]", "[nonce]", "[content]", "[action]"),
    *("#a\\5c b", "#\\\\a", "[name='\\5c 61']", "#a\\0 b", "#\\d800", "a\nb", "[name='a\\a b']", "x\x85y"),
    *("é", "a\\ b", ".\\", "#" + "a" * 300, " ".join("a" * 25), "a" + ".b" * 49, "a" * 513),
)
MALFORMED = (
    *(
        "",
        " ",
        ">",
        "a >",
        "> a",
        "a[",
        "a[name",
        "[name=]",
        "a:not(",
        "..a",
        "#",
        "a{}",
        "<a>",
        "a)",
        "\ud800",
    ),
)


def test_it_is_written_anew():
    assert {text: canonical_selector(text) for text in WRITTEN} == WRITTEN
    assert [canonical_selector(text) for text in WRITTEN.values()] == list(WRITTEN.values())


@pytest.mark.parametrize("text", DENIED)
def test_what_is_outside_is_denied(text):
    with pytest.raises(ActionError) as caught:
        canonical_selector(text)
    # Some of it is no selector at all for one version of cssselect or another: refused all the same.
    assert caught.value.code in (Code.TARGET_DENIED, Code.INVALID_ARGUMENTS)


@pytest.mark.parametrize("text", MALFORMED)
def test_what_is_no_selector(text):
    with pytest.raises(ActionError) as caught:
        canonical_selector(text)
    assert caught.value.code is Code.INVALID_ARGUMENTS


def test_deep_nesting_ends():
    for text in (":is(" * 100 + "a", ":not(" * 100, "(" * 500, "[" * 500, ":has(" * 85 + "a" + ")" * 85):
        with pytest.raises(ActionError):
            canonical_selector(text)


def test_refs_are_told_from_selectors():
    assert target("r0123456789abcdef.12") == Ref("0123456789abcdef", 12)
    assert target("#a") == Css("#a")
    for text in ("r0123456789abcdef.0", "r0123.1", "r0123456789abcdef.1 a", "R0123456789abcdef.1", "r.1"):
        with pytest.raises(ActionError):
            target(text)
    assert Css("#a").argument() == {"css": "#a"}


names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\\\ufffd"), min_size=1
)


@given(names.filter(lambda name: len(name) < 60))
def test_any_id_can_be_written(name):
    written = "#" + identifier(name)
    assert canonical_selector(written) == written


@given(st.text(max_size=60) | st.text(alphabet="ab#.[]='\"\\:() >+~*|,0123456789-nidmae", max_size=40))
def test_anything_is_refused_or_written(text):
    try:
        written = canonical_selector(text)
    except ActionError:
        return
    assert canonical_selector(written) == written


def compound(chance):
    """A compound selector, as people write them."""
    tag = chance.choice(["", "", "a", "b", "p", "\\61", "*"])
    tests = [
        chance.choice(
            [
                "#" + chance.choice(["i\\:1", "\\31 2", "i3", "i\\.4", "é"]),
                "." + chance.choice(["c1", "c2", "\\32 c", "\\63 1"]),
                "[title='x y']",
                "[name^=n]",
                '[name$="\\"q"]',
                "[hidden]",
                "[class~=c1]",
                f":nth-child({chance.randint(1, 3)})",
                f":nth-of-type({chance.randint(1, 2)})",
                ":first-child",
                ":last-of-type",
                ":not(.c2)",
                ":not([name])",
            ]
        )
        for _ in range(chance.randint(0 if tag else 1, 2))
    ]
    return tag + "".join(tests)


async def test_the_page_finds_the_same_elements(agent, site):
    site.pages["/"] = "<!doctype html><body>"
    await agent.call("navigate", url=site.url())
    await in_page(
        agent,
        """(() => {
          let seed = 7;
          const next = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
          const parents = [document.body];
          for (let i = 0; i < 400; i += 1) {
            const element = document.createElement(["a", "b", "p"][next(3)]);
            if (next(3) === 0) element.id = ["i:1", "12", "i3", "i.4", "é"][next(5)];
            if (next(2) === 0) element.className = ["c1", "c2", "2c", "c1 c2"][next(4)];
            if (next(4) === 0) element.setAttribute("name", ["n1", 'n"q', "m"][next(3)]);
            if (next(5) === 0) element.title = "x y";
            if (next(9) === 0) element.hidden = true;
            parents[next(parents.length)].append(element);
            parents.push(element);
          }
        })()""",
    )
    chance = random.Random(11)
    texts = []
    for _ in range(600):
        text = compound(chance)
        for _ in range(chance.randint(0, 2)):
            text += chance.choice([" ", " > ", "+", "  "]) + compound(chance)
        texts.append(text)
    pairs = [(text, canonical_selector(text)) for text in texts]
    script = """
      const found = (selector) => [...this.querySelectorAll(selector)];
      const different = [];
      let matches = 0;
      for (const [text, written] of a0) {
        const [one, other] = [found(text), found(written)];
        matches += one.length;
        const same = one.length === other.length && one.every((element, i) => element === other[i]);
        if (!same) different.push(text);
      }
      return { matches, different };"""
    result = await in_world(agent, script, pairs)
    assert result["different"] == []
    assert result["matches"] > 1_000


def test_no_attribute_that_holds_a_value_or_an_address():
    assert ATTRIBUTES.isdisjoint(("value", "href", "src", "style", "action", "content", "srcdoc", "nonce"))
