"""That `make mutants` still removes what it says: it is run by hand, and lines move meanwhile."""

import ast
import json

import pytest

from tests.mutants.__main__ import MUTANTS, REPOSITORY, Mutant

ALL: list[Mutant] = json.loads(MUTANTS.read_text())


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant["id"])
def test_a_mutant_fits_its_file_once_and_makes_another_program(mutant: Mutant) -> None:
    text = (REPOSITORY / mutant["file"]).read_text()
    assert text.count(mutant["original"]) == 1
    changed = text.replace(mutant["original"], mutant["replacement"])
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))


def test_each_has_a_name_of_its_own() -> None:
    assert len({mutant["id"] for mutant in ALL}) == len(ALL)
