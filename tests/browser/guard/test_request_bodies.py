"""Bodies as text: every spelling in which an inspector would know a word, and nothing that was not read."""

import base64

import msgspec
import pytest
from tabwarden_adapters.browser.cdp.generated import network
from tabwarden_adapters.browser.request_bodies import MAX_BODY_BYTES, body_size, body_text, has_body

FORM = "application/x-www-form-urlencoded"
BOUNDARY = "----WebKitFormBoundaryabcdefABCDEF0123"


def request(*parts: bytes | None, kind: str = "text/plain") -> network.Request:
    entries = [
        network.PostDataEntry(bytes=None if part is None else base64.b64encode(part).decode())
        for part in parts
    ]
    return network.Request(
        url="https://a.test/",
        method="POST",
        headers={"Content-type": kind},
        has_post_data=bool(parts) or None,
        post_data_entries=entries or None,
        initial_priority="High",
        referrer_policy="origin",
    )


def multipart(*fields: str, boundary: str = BOUNDARY) -> bytes:
    lines = [f'--{boundary}\r\nContent-Disposition: form-data; name="{one}\r\n' for one in fields]
    return ("".join(lines) + f"--{boundary}--\r\n").encode()


@pytest.mark.parametrize(
    ("sent", "kind", "seen"),
    [
        (b"project falcon", "text/plain", ["project falcon"]),
        ("proj\u00e9t".encode(), "", ["proj\u00e9t"]),
        (b"a=1&text=project+f%61lcon", FORM, ["a=1\ntext=project falcon"]),
        (b"a=1&text=project+f%61lcon", "text/plain", ["a=1\ntext=project falcon"]),
        (b'{"a": "project \\u0066alcon"}', "application/json", ["project falcon"]),
        (b'{"a": "one\\ntwo \\"x\\" \\\\ \\/"}', "application/json", ['one\ntwo "x" \\ /']),
        (b'"\\ud83e\\udd85 \\ud800"', "application/json", ["\U0001f985 \ufffd"]),
        (b"data=%7B%22a%22%3A%22project+%5Cu0066alcon%22%7D", FORM, ['{"a":"project falcon"}']),
        (b"100% of 5%fx + \xc3\xa9", "text/plain", ["100% of 5%fx + \u00e9"]),
        (b"100%e9", "text/plain", ["100\ufffd", "100%e9"]),
        (b"a\0b\0c\0", "application/octet-stream", ["a\0b\0c\0"]),
    ],
)
def test_spellings(sent: bytes, kind: str, seen: list[str]) -> None:
    text = body_text(request(sent, kind=kind))
    assert text is not None
    assert text.startswith(sent.decode())
    for one in seen:
        assert one in text


def test_forms_in_parts() -> None:
    sent = multipart('a"\r\n\r\none', 'token"; filename="x.txt"\r\nContent-Type: text/plain\r\n\r\ntwo\r\n')
    text = body_text(request(sent[:50], sent[50:], kind=f"multipart/form-data; boundary={BOUNDARY}"))
    assert text is not None
    # All of it but the boundary, which looks like a secret, and each value beside its name.
    assert BOUNDARY not in text
    assert text.startswith(sent.decode().replace(f"--{BOUNDARY}", ""))
    assert "\n\na=one\ntoken=two\r\n" in text


def test_a_boundary_of_a_pages_own_is_text_like_any() -> None:
    sent = multipart('a"\r\n\r\none', boundary="secret")
    text = body_text(request(sent, kind="multipart/form-data; Boundary=secret"))
    assert text is not None
    assert text.startswith(sent.decode())
    assert text.endswith("a=one")
    text = body_text(request(sent, kind="multipart/form-data; boundary="))
    assert text == sent.decode()


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ((b"\xff\xfe",), "text/plain"),
        ((b"a=%E9",), FORM + ";charset=x"),
        ((b"a", None, b"b"), "multipart/form-data"),
        ((None,), ""),
        ((b"x" * (MAX_BODY_BYTES + 4),), "text/plain"),
    ],
)
def test_what_cannot_be_read(parts: tuple[bytes | None, ...], kind: str) -> None:
    assert has_body(request(*parts, kind=kind))
    assert body_text(request(*parts, kind=kind)) is None


def test_what_chromium_says_is_there_but_does_not_show() -> None:
    bare = request()
    assert not has_body(bare)
    assert body_size(bare) == 0
    assert has_body(_with(bare, has_post_data=True))
    assert body_text(_with(bare, has_post_data=True)) is None
    broken = [network.PostDataEntry(bytes="not base64!")]
    assert body_text(_with(bare, has_post_data=True, post_data_entries=broken)) is None


def _with(one: network.Request, **changes: object) -> network.Request:
    return msgspec.structs.replace(one, **changes)
