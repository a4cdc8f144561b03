"""Log lines keep no secret, and are never a reason to fail."""

import random

from tabwarden_adapters.dlp import Scrubber
from tabwarden_adapters.dlp.scrubber import CUT, WITHHELD

from tests.dlp.samples import NUMBERS, SELF_EVIDENT
from tests.dlp.support import FakeCatalogue


def test_each_is_replaced():
    chosen = random.Random(1)
    scrub = Scrubber()
    for kind in [*SELF_EVIDENT, *NUMBERS]:
        made = kind.make(chosen)
        line = scrub(f"failed for {made}: again")
        assert made not in line
        assert line.startswith("failed for ")
        assert line.endswith(": again")
    assert scrub("tab 3 closed after 12 ms") == "tab 3 closed after 12 ms"
    one = SELF_EVIDENT[6].make(chosen)
    assert scrub(f"é{one[:9]}\u200b{one[9:]} and {one}") == "é[credential] and [credential]"


def test_a_catalogue_is_asked_too():
    assert Scrubber(FakeCatalogue("sesame"))("open sesame now") == "open [credential] now"


def test_what_cannot_be_looked_through_is_left_out():
    catalogue = FakeCatalogue()
    catalogue.instead = RuntimeError("text")
    assert Scrubber(catalogue)("a line") == WITHHELD
    assert Scrubber(seconds=0.0)("a line") == WITHHELD
    assert Scrubber()("lone \ud800 surrogate") == "lone \ud800 surrogate"


def test_a_long_line_is_cut_and_no_secret_with_it():
    one = SELF_EVIDENT[6].make(random.Random(2))
    for at in range(60, 101):
        line = Scrubber(characters=100)("." * at + one + "." * 400)
        assert line.endswith(CUT)
        assert one[:4] not in line
        assert len(line) <= 100 + len("[credential]") + len(CUT)
