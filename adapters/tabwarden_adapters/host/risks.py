# ruff: noqa: RUF001 - the table has letters on purpose that look like others
"""THE table of risky actions: what is asked again, whatever the site's mode. Pure, from facts to kinds.

The documentation's table and the tests come from `RISKS`: each example must carry its row's risk, each
lookalike must not. What is not known counts as risky.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from tabwarden_adapters.host.risk_names import DELETION, NAMES, PURCHASE, SPACELESS
from tabwarden_adapters.host.values import ApprovalKind

MAX_NAME_CHARACTERS = 2000  # no control's name is longer; a longer one is not searched but risky


class Deed(StrEnum):
    """What is about to be done."""

    TYPE = "type"
    PRESS = "press"
    NAVIGATE = "navigate"
    DOWNLOAD = "download"


class Risk(StrEnum):
    """Why it is asked about."""

    FOREIGN_FORM = "foreign-form"
    PURCHASE = "purchase"
    DELETION = "deletion"
    NEW_SITE = "new-site"
    DOWNLOAD = "download"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of one action. Origins are normalised (`web_origin`); None means: not known.

    `in_form`: whether the element belongs to a form. `form_origins`: where the form may submit to, with every
    button's own `formaction`. `name`: the accessible name of what is pressed, empty for one without a name.
    `target_origin`: where a navigation goes, also one that a press is known to cause.
    `visited`: the origins where this agent has been with approval.
    """

    deed: Deed
    page_origin: str
    in_form: bool | None = False
    form_origins: frozenset[str] | None = frozenset()
    name: str | None = ""
    target_origin: str | None = None
    downloads: bool = False
    visited: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RiskRow:
    """One row: what it is, and which kind of question it makes."""

    risk: Risk
    kind: ApprovalKind
    what: str
    examples: tuple[Facts, ...]
    lookalikes: tuple[Facts, ...]


def risks_of(facts: Facts) -> frozenset[Risk]:
    """Every risk of one action; empty when there is none."""
    found = set()
    if facts.deed in (Deed.TYPE, Deed.PRESS) and _foreign_form(facts):
        found.add(Risk.FOREIGN_FORM)
    if facts.deed is Deed.PRESS:
        if named(facts.name, PURCHASE):
            found.add(Risk.PURCHASE)
        if named(facts.name, DELETION):
            found.add(Risk.DELETION)
    if _new_site(facts):
        found.add(Risk.NEW_SITE)
    if facts.deed is Deed.DOWNLOAD or facts.downloads:
        found.add(Risk.DOWNLOAD)
    return frozenset(found)


def questions(risks: frozenset[Risk]) -> frozenset[ApprovalKind]:
    """The kinds of approval that these risks need."""
    return frozenset(row.kind for row in RISKS if row.risk in risks)


def _foreign_form(facts: Facts) -> bool:
    if facts.in_form is False:
        return False
    if facts.in_form is None or facts.form_origins is None:
        return True
    return bool(facts.form_origins - {facts.page_origin})


def _new_site(facts: Facts) -> bool:
    if facts.deed is Deed.NAVIGATE:
        return facts.target_origin is None or not _known(facts.target_origin, facts)
    return facts.target_origin is not None and not _known(facts.target_origin, facts)


def _known(origin: str, facts: Facts) -> bool:
    # Pages without an origin (data:, about:) are nobody's: never known, also not from one to the next.
    if origin == "null":
        return False
    return origin == facts.page_origin or origin in facts.visited


def named(name: str | None, group: str) -> bool:
    """Whether an accessible name says `purchase` or `deletion` in one of the languages of `NAMES`."""
    if name is None or len(name) > MAX_NAME_CHARACTERS:
        return True
    spaced, solid = _patterns(group)
    # An umlaut is written as two letters in German and as one elsewhere.
    forms = {normal_form(name), normal_form(name.translate(_UMLAUTS))}
    return any(spaced.search(f" {form} ") or solid.search(form.replace(" ", "")) for form in forms)


def normal_form(text: str) -> str:
    """Case, accents, width, styled letters, invisible characters and punctuation taken away (UAX #15, NFKD).

    Words are separated by one space. Single letters in a row are joined: `B U Y` reads as `buy`.
    """
    text = text.translate(_SPELLINGS)
    kept = []
    for one in unicodedata.normalize("NFKD", text).casefold():
        category = unicodedata.category(one)
        if category in ("Mn", "Me") and _drawn_on_latin(one):
            continue
        if category == "Cf" or one in _INVISIBLE:
            continue
        kept.append(one if category[0] in "LNM" or one == "'" else " ")
    words = " ".join("".join(kept).split())
    return re.sub(r"(?<!\S)(?:\w (?=\w(?!\S)))+\w(?!\S)", lambda spread: spread[0].replace(" ", ""), words)


def _drawn_on_latin(mark: str) -> bool:
    # Marks of European and Arabic letters are spelling; those of Indic and Thai letters are letters.
    return "\u0300" <= mark <= "\u036f" or "\u064b" <= mark <= "\u0670"


_INVISIBLE = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\uffa0")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "ae", "Ö": "oe", "Ü": "ue"})
# Letters that NFKD leaves whole, and marks and letters with several spellings.
_SPELLINGS = str.maketrans(
    {"ß": "ss", "ẞ": "ss", "ı": "i", "ł": "l", "Ł": "l", "ø": "o", "Ø": "o"}
    | {"’": "'", "`": "'", "\u02bc": "'", "ة": "ه", "أ": "ا", "إ": "ا", "آ": "ا"}
)


@lru_cache(maxsize=2)
def _patterns(group: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    spaced, solid = set(), set()
    for language, groups in NAMES.items():
        for entry in groups[group]:
            text = normal_form(entry.removesuffix("~"))
            if language in SPACELESS:
                solid.add(re.escape(text.replace(" ", "")))
            else:
                spaced.add(re.escape(text) + (r"\S*" if entry.endswith("~") else ""))
    return re.compile(f" (?:{'|'.join(sorted(spaced))})(?= )"), re.compile("|".join(sorted(solid)))


_SHOP, _BANK, _NEWS = "https://shop.test", "https://bank.test", "https://news.test"


def _presses(*names: str | None) -> tuple[Facts, ...]:
    return tuple(Facts(deed=Deed.PRESS, page_origin=_SHOP, name=name) for name in names)


def _form(deed: Deed, origins: frozenset[str] | None, in_form: bool | None = True) -> Facts:
    return Facts(deed=deed, page_origin=_SHOP, in_form=in_form, form_origins=origins)


def _go(target: str | None, page: str = _SHOP, visited: frozenset[str] = frozenset()) -> Facts:
    return Facts(deed=Deed.NAVIGATE, page_origin=page, target_origin=target, visited=visited)


# fmt: off
RISKS: tuple[RiskRow, ...] = (
    RiskRow(
        Risk.FOREIGN_FORM,
        ApprovalKind.RISK,
        "typing into, or pressing in, a form that may submit to another origin than the page's, or nobody"
        " knows where",
        (
            _form(Deed.TYPE, frozenset({_BANK})),
            _form(Deed.PRESS, frozenset({_SHOP, _BANK})),
            _form(Deed.TYPE, None),
            _form(Deed.TYPE, frozenset(), in_form=None),
            _form(Deed.TYPE, frozenset({"null"})),
            _form(Deed.TYPE, frozenset({"http://shop.test"})),
        ),
        (
            _form(Deed.TYPE, frozenset({_SHOP})),
            _form(Deed.TYPE, frozenset({_BANK}), in_form=False),
            Facts(deed=Deed.NAVIGATE, page_origin=_SHOP, target_origin=_SHOP, in_form=None),
        ),
    ),
    RiskRow(
        Risk.PURCHASE,
        ApprovalKind.RISK,
        "pressing what is named like a purchase, payment, order, booking or subscription, in 18 languages,"
        " or whose name nobody knows",
        _presses(
            "Buy now", "  BUY\u00a0NOW ", "Place your order", "Pay €12.00", "Ｂｕｙ",
            "Pur\u00adch\u3164as\u200be",
            "B U Y", "Jetzt kaufen", "Zahlungspflichtig bestellen", "Acheter", "S’abonner", "Pagar",
            "Reservar", "Zapłać", "Köp", "Satın al", "SATIN AL", "КУПИТЬ", "Купити", "شراء", "खरीदें",
            "구매하기", "購入する", "立即购买", "ชำระเงิน", None, "x" * 2001,
        ),
        _presses(
            "", "Buyer's guide", "Next", "Sort order", "Order by date", "Payroll report", "Renting tips",
            "Kaufhaus Plan", "Payout history", "Checklist", "Birth place",
        ),
    ),
    RiskRow(
        Risk.DELETION,
        ApprovalKind.RISK,
        "pressing what is named like deleting, removing, clearing or closing for good, in 18 languages,"
        " or whose name nobody knows",
        _presses(
            "Delete", "Delete file…", "Remove from list", "Empty trash", "Close my account", "Löschen",
            "LOESCHEN", "Konto schließen", "Supprimer", "Eliminar", "Borrar todo", "Elimina", "Excluir",
            "Verwijderen", "Ta bort", "Usuń", "Sil", "Удалить", "Видалити", "حذف", "हटाएं", "삭제하기",
            "削除", "删除", "ลบ", "d e l e t e", None,
        ),
        _presses("", "Deleted items", "Removable drives", "Trashy novels", "Undelete", "Silver"),
    ),
    RiskRow(
        Risk.NEW_SITE,
        ApprovalKind.NAVIGATE,
        "going to an origin where this agent was not before, by a call or by a press that is known to lead"
        " there",
        (
            _go(_NEWS),
            _go(None),
            _go("null", page="null"),
            _go("http://shop.test"),
            Facts(deed=Deed.PRESS, page_origin=_SHOP, target_origin=_NEWS),
        ),
        (
            _go(_SHOP),
            _go(_NEWS, visited=frozenset({_NEWS})),
            Facts(deed=Deed.PRESS, page_origin=_SHOP),
        ),
    ),
    RiskRow(
        Risk.DOWNLOAD,
        ApprovalKind.RISK,
        "anything that is known to save a file",
        (
            Facts(deed=Deed.DOWNLOAD, page_origin=_SHOP),
            Facts(deed=Deed.PRESS, page_origin=_SHOP, downloads=True),
            Facts(deed=Deed.NAVIGATE, page_origin=_SHOP, target_origin=_SHOP, downloads=True),
        ),
        (Facts(deed=Deed.PRESS, page_origin=_SHOP, name="Download our app"),),
    ),
)
# fmt: on
