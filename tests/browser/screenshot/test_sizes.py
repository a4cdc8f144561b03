"""A picture fits a reply, whatever is in it; a page that is too much to look at gives none."""

# Markup in lines of its own.
# ruff: noqa: E501

import io
import os

import pytest
import trio
from PIL import Image
from tabwarden.actions import ACTIONS
from tabwarden.authority.projection import encode
from tabwarden.errors import ActionError, Code
from tabwarden.protocol.seal import MAX_PLAINTEXT
from tabwarden_adapters.browser.cdp.command import Command
from tabwarden_adapters.browser.masking import MASK, Painter
from tabwarden_adapters.browser.shot import Shot

from tests.browser.agent import Call
from tests.browser.screenshot.conftest import Look
from tests.browser.screenshot.test_masks import SECRET


def png(image: Image.Image) -> bytes:
    held = io.BytesIO()
    image.save(held, "PNG", compress_level=1)
    return held.getvalue()


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), os.urandom(width * height * 3))


async def painted(shot: Shot) -> Look:
    picture = await Painter(None).finish(shot, Call("screenshot"))
    return Look(
        {"image": picture.image, "width": picture.width, "height": picture.height, "kind": picture.media_type}
    )


async def test_a_plain_page_is_a_png(camera):
    await camera.show(f"<p>plain</p>{SECRET}")
    result = (await camera.take()).result
    assert result["mediaType"] == "image/png"
    assert (result["origin"], result["untrusted"]) == (camera.site.url("", "127.0.0.1"), True)
    assert set(result) <= set(ACTIONS["screenshot"].result.__struct_encode_fields__)


@pytest.mark.parametrize("size", [(780, 437), (1920, 1080)])
async def test_what_does_not_fit_is_made_coarser_then_smaller(size):
    look = await painted(Shot(png(noise(*size)), ((0, 0, 99, 99),), 1))
    assert look.result["kind"] == "image/webp"
    assert len(encode(look.result)) < MAX_PLAINTEXT - 1024
    assert 0.3 * size[0] <= look.image.width <= size[0]
    # Masked before it was made smaller.
    assert look.image.convert("RGB").getpixel((3, 3)) == pytest.approx(MASK, abs=8)


async def test_a_large_screen_is_scaled_down():
    look = await painted(Shot(png(Image.new("RGB", (3840, 2160), "white")), (), 0))
    assert (look.image.width, look.image.height) == (2048, 1152)


async def test_masks_are_whole_pixels_and_stay_inside():
    white = png(Image.new("RGB", (100, 50), "white"))
    look = await painted(
        Shot(white, ((10.4, 5.6, 20.2, 7.1), (-9, -9, 1, 1), (98.5, 48.5, 999, 999), (70, 9, 60, 5)), 3)
    )
    rgb = look.image.convert("RGB")
    masked = {(x, y) for x in range(100) for y in range(50) if rgb.getpixel((x, y)) == MASK}
    assert {(10, 5), (21, 8), (0, 0), (99, 49)} <= masked
    assert {(9, 5), (22, 8), (65, 7), (50, 25)}.isdisjoint(masked)


@pytest.mark.parametrize("data", [b"", b"GIF89a", png(Image.new("RGB", (9, 9)))[:-30]])
async def test_what_is_no_picture_is_a_failure(data):
    with pytest.raises(ActionError) as raised:
        await painted(Shot(data, (), 0))
    assert raised.value.code is Code.FAILURE


async def test_too_many_pixels():
    with pytest.raises(ActionError) as raised:
        await painted(Shot(png(Image.new("1", (9000, 9000))), (), 0))
    assert raised.value.code is Code.RESULT_TOO_LARGE


LARGE = {
    "many": "<script>document.body.innerHTML = '<i></i>'.repeat(70000)</script>",
    "deep": "<script>let at = document.body; for (let i = 0; i < 1200; i++) { const p = document.createElement('i'); at.append(p); at = p }</script>",
    "many secrets": "<script>document.body.innerHTML = '<i data-private style=\"float:left\">x</i>'.repeat(4200)</script><style>body { font-size: 4px; line-height: 4px }</style>",
}


@pytest.mark.parametrize("page", LARGE)
async def test_a_page_that_is_too_much_gives_none_and_goes_on(camera, page):
    await camera.show("<body>" + LARGE[page])
    if page == "many secrets":
        await camera.tab.session.call(
            Command(
                "Emulation.setDeviceMetricsOverride",
                {"width": 1600, "height": 1200, "deviceScaleFactor": 1, "mobile": False},
                None,
            )
        )
    with trio.fail_after(60):
        assert (await camera.fails()).code is Code.RESULT_TOO_LARGE
        assert await camera.js("new Promise((done) => setTimeout(() => done(7)))") == 7
