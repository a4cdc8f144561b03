"""How much is found, and how often what is harmless: with the bundled catalogue, on thousands of samples.

`make dlp` runs it and prints the figures; loading the catalogue takes seconds of a core. Another corpus is
taken from the file that TABWARDEN_DLP_CORPUS names, one JSON object a line: {"secret": true, "text": "…"}.
"""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from tabwarden_adapters.dlp import Kingfisher, Scrubber
from tabwarden_adapters.dlp.detecting import Deadline, find, prepare
from tabwarden_adapters.dlp.folding import fold

from tests.dlp.samples import clean_lines, positives

CORPUS = os.environ.get("TABWARDEN_DLP_CORPUS")
RECALL, FALSE_HITS = 0.98, 0.005


@pytest.fixture(scope="module")
def catalogue() -> Kingfisher:
    prepare()
    made = Kingfisher()
    assert len(made) > 400
    return made


def test_recall_and_false_hits(catalogue, capsys):
    missed: dict[str, Counter[str]] = {"together": Counter(), "own": Counter(), "kingfisher": Counter()}
    count = 0
    for kind, text in positives(seed=11, each=50):
        count += 1
        missed["together"][kind] += not find(fold(text), catalogue, Deadline(30))
        missed["own"][kind] += not find(fold(text), None, Deadline(30))
        missed["kingfisher"][kind] += not catalogue.places(text.encode("ascii", "replace"), 30)
    lines = list(clean_lines(seed=12, count=24_000))
    hits = [line for line in lines if find(fold(line), catalogue, Deadline(30))]
    with capsys.disabled():
        for who, which in missed.items():
            print(f"\n{who}: {1 - which.total() / count:.2%} of {count} found; missed {+which}")  # noqa: T201
        print(f"false hits: {len(hits)} of {len(lines)} clean lines ({len(hits) / len(lines):.3%})")  # noqa: T201
    assert missed["together"].total() <= (1 - RECALL) * count
    assert len(hits) <= FALSE_HITS * len(lines), hits[:20]


def test_another_corpus(catalogue, capsys):
    """Of somebody else's samples, when TABWARDEN_DLP_CORPUS names a file of them."""
    if not CORPUS:
        return
    samples = [json.loads(line) for line in Path(CORPUS or "").read_text("utf-8").splitlines()]
    right: Counter[bool] = Counter()
    for sample in samples:
        right[sample["secret"]] += (
            bool(find(fold(sample["text"]), catalogue, Deadline(30))) is sample["secret"]
        )
    with capsys.disabled():
        for secret in (True, False):
            many = sum(sample["secret"] is secret for sample in samples)
            print(f"\n{'secrets found' if secret else 'clean left'}: {right[secret]} of {many}")  # noqa: T201


def test_comments_do_not_switch_it_off(catalogue):
    token = next(text for kind, text in positives(seed=1, each=1) if kind == "github-pat")
    for comment in ("kingfisher:ignore", "gitleaks:allow", "nosec", "betterleaks:allow"):
        assert catalogue.places(f"{token}  # {comment}".encode(), 9.0)


def test_a_log_with_the_catalogue(catalogue):
    scrub = Scrubber(catalogue, seconds=10.0)
    for _, text in positives(seed=13, each=2):
        assert "[" in scrub(text)
