"""The table of risky actions."""

import pytest
from tabwarden_adapters.host import NAMES, RISKS, ApprovalKind, Deed, Facts, Risk, risks_of
from tabwarden_adapters.host.risk_names import DELETION, PURCHASE
from tabwarden_adapters.host.risks import RiskRow, named, normal_form, questions

SHOP = "https://shop.test"


def test_every_risk_has_one_row() -> None:
    assert [row.risk for row in RISKS] == list(Risk)


@pytest.mark.parametrize("row", RISKS, ids=lambda row: row.risk.value)
def test_examples_carry_their_rows_risk_and_lookalikes_do_not(row: RiskRow) -> None:
    assert row.examples
    assert row.lookalikes
    for facts in row.examples:
        assert row.risk in risks_of(facts), facts
        assert row.kind in questions(risks_of(facts))
    for facts in row.lookalikes:
        assert row.risk not in risks_of(facts), facts


@pytest.mark.parametrize("language", NAMES)
@pytest.mark.parametrize("group", [PURCHASE, DELETION])
def test_every_entry_is_found_alone_and_in_a_sentence(language: str, group: str) -> None:
    for entry in NAMES[language][group]:
        words = entry.removesuffix("~")
        assert normal_form(words), entry
        for name in (words, words.upper(), f"  {words}!", f"✓ {words} (2)", f"«{words}»", words.title()):
            assert named(name, group), (entry, name)
    assert set(NAMES[language]) == {PURCHASE, DELETION}
    assert all(entry and entry == entry.strip() for entry in NAMES[language][group])


def test_ordinary_controls_are_not_risky() -> None:
    ordinary = [
        "Next", "Back", "Search", "Menu", "Sign in", "Log in", "OK", "Close", "Save", "Add to cart",
        "Show more",
        "Weiter", "Zurück", "Suche", "Anmelden", "Suivant", "Rechercher", "Siguiente", "Buscar",
        "Avanti", "Cerca",
        "Далее", "Поиск", "次へ", "検索", "下一步", "搜索", "다음", "التالي", "आगे", "ถัดไป",
        "İleri", "Dalej", "Nästa",
        "Cancel", "Edit", "Play", "Settings", "1", "…", "🛒",
    ]  # fmt: skip
    for name in ordinary:
        assert risks_of(Facts(deed=Deed.PRESS, page_origin=SHOP, name=name)) == frozenset(), name


def test_typing_is_not_judged_by_a_name_and_a_clean_press_has_no_risk() -> None:
    assert risks_of(Facts(deed=Deed.TYPE, page_origin=SHOP, name="Delete")) == frozenset()
    own = frozenset({SHOP})
    clean = Facts(deed=Deed.PRESS, page_origin=SHOP, name="Next", in_form=True, form_origins=own)
    assert risks_of(clean) == frozenset()


def test_several_risks_at_once() -> None:
    facts = Facts(
        deed=Deed.PRESS,
        page_origin=SHOP,
        name="Delete and buy again",
        in_form=True,
        form_origins=None,
        target_origin="https://pay.test",
        downloads=True,
    )
    assert risks_of(facts) == frozenset(Risk)
    assert questions(risks_of(facts)) == {ApprovalKind.RISK, ApprovalKind.NAVIGATE}
    assert questions(frozenset()) == frozenset()


def test_what_is_not_known_counts_as_risky() -> None:
    unknown = Facts(deed=Deed.PRESS, page_origin=SHOP, name=None, in_form=None)
    assert risks_of(unknown) == {Risk.FOREIGN_FORM, Risk.PURCHASE, Risk.DELETION}


def test_long_names_cost_nothing() -> None:
    # 2,000 characters are searched; the patterns have no nested repetition.
    for hostile in ("b " * 1000, "kundig" * 300, " " * 2000, "\u0301" * 2000, "a b" * 600):
        named(hostile, PURCHASE)
        named(hostile, DELETION)
    assert named("x" * 2001, PURCHASE)
