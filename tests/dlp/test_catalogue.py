"""The bundled scanner, with a rule of our own in place of the bundled ones, which take seconds to load."""

import pytest
from tabwarden_adapters.dlp import Kingfisher
from tabwarden_adapters.dlp.faults import TooSlow

RULES = """
rules:
  - name: a word
    id: custom.word
    pattern: '(zq[0-9]{4,6})'
    min_entropy: 0.0
    confidence: high
    examples: ['zq1234']
"""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    file = tmp_path_factory.mktemp("rules") / "rules.yml"
    file.write_text(RULES)
    return Kingfisher([str(file)], builtins=False)


def test_places(catalogue):
    assert len(catalogue) == 1
    assert catalogue.places(b"a zq1234 b zq99999", 9.0) == [(2, 8), (11, 18)]
    assert catalogue.places(b"", 9.0) == []


def test_no_comment_has_a_line_left_out(catalogue):
    for comment in ("kingfisher:ignore", "gitleaks:allow", "nosec", "betterleaks:allow", "trufflehog:ignore"):
        assert catalogue.places(f"x = zq1234  # {comment}".encode(), 9.0), comment


@pytest.mark.parametrize("head", [b"PK\x03\x04", b"%PDF-1.4\n", b"SQLite format 3?", b"<style>", b"\x00"])
def test_text_is_text_whatever_it_begins_with(catalogue, head):
    assert catalogue.places(head + b" zq1234 ", 9.0)


def test_one_that_takes_too_long(catalogue):
    with pytest.raises(TooSlow):
        catalogue.places(b"a" * 10_000_000, 1e-9)
