"""Addresses before anything is asked about them."""

import pytest
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.browser.text import cut_title, visible_text, visible_title
from tabwarden_adapters.browser.urls import destination, origin, web_href


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("http://good.test", "http://good.test/"),
        ("HTTPS://Good.Test:443/a/../b?q#f", "https://good.test/b?q#f"),
        ("https://good.test\\@evil.test/", "https://good.test/@evil.test/"),
        ("https://good.test./x", "https://good.test/x"),
        ("http://good.test%2e/", "http://good.test/"),
        ("\thttp://good.test/\n", "http://good.test/"),
        ("ht\ntp://good.test/", "http://good.test/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://bücher.test/", "http://xn--bcher-kva.test/"),
        ("http:good.test", "http://good.test/"),
    ],
)
def test_what_is_sent_on_is_the_normal_form(text, href):
    assert web_href(text) == href
    assert web_href(href) == href


@pytest.mark.parametrize(
    "text",
    [
        "",
        "good.test",
        "//good.test/",
        "http://",
        "http:///",
        "http://a b/",
        "http://a../",
        "http://../",
        "http://./",
        "http://user@good.test/",
        "http://:word@good.test/",
        "http://good.test@evil.test/",
        "ftp://good.test/",
        "file:///etc/passwd",
        "data:text/html,x",
        "blob:http://good.test/1",
        "javascript:alert(1)",
        "java\nscript:alert(1)",
        "view-source:http://good.test/",
        "chrome://settings/",
        "about:blank",
        "filesystem:http://good.test/",
        "http://good.test/\ud800",
    ],
)
def test_everything_else_is_refused(text):
    with pytest.raises(ActionError) as caught:
        web_href(text)
    assert caught.value.code is Code.INVALID_ARGUMENTS
    assert destination(text) is None


def test_origins():
    assert origin("https://good.test:8443/a") == "https://good.test:8443"


def test_text_that_does_not_show_is_taken_out():
    assert visible_text("a\u200bb\u202ec\u00add\U000e0041\U000e0020e\ufe0f\x00\tf\n") == "abcde\tf\n"
    assert visible_title("  a\n b\u2066 " + "x" * 500) == "a b " + "x" * 252


def test_no_half_of_a_long_word_is_left_of_a_title():
    assert cut_title("Mail abcd1234efgh", 14) == "Mail "
    assert cut_title("Mail abcd1234 efgh", 13) == "Mail abcd1234"
    assert cut_title("Mail abcd1234", 13) == "Mail abcd1234"
    assert cut_title("title " * 100, 256) == ("title " * 100)[:256]
    assert cut_title("\u4e16" * 300, 79) == "\u4e16" * 79
