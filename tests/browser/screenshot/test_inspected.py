"""What a content inspector finds is masked where it is drawn; what is nowhere in particular is no picture."""

# Markup in lines of its own.
# ruff: noqa: E501

import pytest
from tabwarden.errors import ActionError, Code

from tests.browser.screenshot.conftest import PLAIN, Inspector

PLACES = {
    "text": "<p class=s>a hit here</p>",
    "field": "<input class=s value='a hit'>",
    "placeholder": "<input class=s placeholder='a hit'>",
    "button": "<input type=button class=s value='a hit'>",
    "choice": "<select class=s><option selected>a hit<option>b</select>",
    "spread over elements": "<p class=s>a h<b>i</b><i><u>t</u></i> here</p>",
    "style sheet": "<style>#q::before { content: 'a hit' }</style><p id=q class=s></p>",
    "attribute shown": "<style>#q::before { content: attr(title) }</style><p id=q class=s title='a hit'></p>",
    "open tree": "<div id=h></div><script>h.attachShadow({mode: 'open'}).innerHTML = '<p style=\"background:red;color:red\">a hit</p>'</script>",
    "closed tree": "<div id=h></div><script>h.attachShadow({mode: 'closed'}).innerHTML = '<p style=\"background:red;color:red\">a hit</p>'</script>",
    "frame": "<iframe srcdoc='<p style=\"background:red;color:red\">a hit'></iframe>",
    "long text": f"<pre class=s style='height:90px;overflow:auto;white-space:pre-wrap'>{'words and words ' * 300}\na hit</pre><script>document.querySelector('pre').scrollTop = 1e6</script>",
    "svg": "<svg width=200 height=60><text x=5 y=40 font-size=40 fill=red>a hit</text></svg>",
}


@pytest.mark.parametrize("finds", ["denied", "known"])
async def test_a_hit_is_masked(camera, finds):
    inspector = Inspector("hit")
    if finds == "known":
        inspector.raises = None
    camera.inspected(inspector)
    # Where it is drawn does not depend on how it was found.
    for place, markup in list(PLACES.items())[: 3 if finds == "known" else None]:
        style = "<style>.t, .t::placeholder { color: red }</style>"
        await camera.show(f"<p class=p>fine</p>{markup.replace('class=s', 'class=t')}{style}")
        painted = (await camera.raw()).tinged()
        assert painted > 20, place
        look = await camera.take()
        # The letters are gone; a background of the whole block may stay.
        assert look.tinged() == 0 or ("red;color:red" in markup and look.tinged() < painted), place
        assert look.near(PLAIN) > 5_000, place
        assert look.result["masked"] == 1, place


async def test_without_a_hit_nothing_is_masked(camera):
    inspector = Inspector("hit")
    camera.inspected(inspector)
    await camera.show("<p>one <b>two</b></p><p>three</p><input value=four><p style='display:none'>five</p>")
    look = await camera.take()
    assert look.result["masked"] == 0
    seen = "|".join(inspector.seen)
    assert all(word in seen for word in ("one two", "three", "four"))
    assert "five" not in seen


async def test_secrets_are_not_given_to_the_inspector(camera):
    inspector = Inspector()
    camera.inspected(inspector)
    await camera.show("<p>seen</p><p data-private>s3cret</p><input type=password value=s3cret>")
    await camera.take()
    assert "s3cret" not in "|".join(inspector.seen)


async def test_what_is_spread_over_blocks_is_no_picture(camera):
    camera.inspected(Inspector("4111\n1111", "abcdef"))
    await camera.show("<p>4111</p><p>1111</p>")
    assert (await camera.fails()).code is Code.CONTENT_DENIED
    await camera.show(
        "<span style='display:inline-block'>abc</span><span style='display:inline-block'>def</span>"
    )
    assert (await camera.fails()).code is Code.CONTENT_DENIED


async def test_a_hit_that_is_put_elsewhere_is_no_picture(camera):
    camera.inspected(Inspector("hit"))
    await camera.show(
        "<style>#q::after { content: 'a hit'; position: fixed; left: 300px; top: 300px }</style><p id=q>b</p>"
    )
    assert (await camera.fails()).code is Code.CONTENT_DENIED


@pytest.mark.parametrize(
    "raised", [ActionError(Code.FAILURE), ActionError(Code.NOT_AVAILABLE), ValueError("x")], ids=repr
)
async def test_an_inspector_that_cannot_say_makes_no_picture(camera, raised):
    inspector = Inspector("hit")
    inspector.raises = raised
    camera.inspected(inspector)
    await camera.show("<p>a hit</p>")
    with pytest.raises(type(raised)) as caught:
        await camera.take()
    assert caught.value is raised
