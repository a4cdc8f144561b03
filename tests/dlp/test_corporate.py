"""A company's own rules: what they find, what is refused, and that no expression can hang."""

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.dlp import DETECTORS, NO_RULES, Result, compile_rules
from tabwarden_adapters.dlp.findings import CARD, CREDENTIAL, Finding
from tabwarden_adapters.dlp.folding import fold
from tabwarden_adapters.dlp.judging import judge
from tabwarden_adapters.policy.document import DlpRule
from tabwarden_adapters.policy.text_rules import DETECTORS as NAMES_IN_POLICIES
from tabwarden_adapters.policy.text_rules import check_text_rules

from tests.dlp.support import EVERYWHERE, matches, rule


def test_words_as_they_stand():
    falcon = [rule("words", "Project Falcon", "C++", "Größe 7")]
    assert matches(falcon, "PROJECT\n  falcon, project falcon project falcon") == [
        "PROJECT\n  falcon",
        "project falcon",
        "project falcon",
    ]
    assert matches(falcon, "projects falcon, project falcons, xproject falcon, project falcon2") == []
    assert matches(falcon, "c++ and grÖSSE 7? GRÖßE 7!") == ["c++", "GRÖßE 7"]
    assert matches(falcon, "Pro\u200bject\u00a0Fal\u00adcon \uff23\uff0b\uff0b") == [
        "Pro\u200bject\u00a0Fal\u00adcon",
        "\uff23\uff0b\uff0b",
    ]
    assert matches([rule("words", ".*")], "anything .* else") == [".*"]


def test_patterns():
    staff = [rule("pattern", r"EMP-\d{6}", r"^internal:.*$")]
    assert matches(staff, "é EMP-123456, EMP-\u200b654321") == ["EMP-123456", "EMP-\u200b654321"]
    assert matches(staff, "a\ninternal: x\nb") == ["internal: x"]
    assert matches([rule("pattern", r"\bx")], "éx yx x") == ["x", "x"]


def test_directions_are_kept_apart():
    inward = [rule("words", "secret plan", directions=("to-model",))]
    assert matches(inward, "the secret plan", "to-model") == ["secret plan"]
    assert matches(inward, "the secret plan", "from-page") == []


REFUSED = [
    (rule("pattern", "(a"), "dlp[0].values[0]: is no RE2 expression"),
    (rule("pattern", "a(?=b)"), "dlp[0].values[0]: is no RE2 expression"),
    (rule("pattern", r"(a)\1"), "dlp[0].values[0]: is no RE2 expression"),
    (rule("pattern", "ok", "a)(b"), "dlp[0].values[1]: is no RE2 expression"),
    (rule("pattern", "a*"), "dlp[0].values[0]: matches an empty text"),
    (rule("pattern", "a{2000}"), "dlp[0].values[0]: is no RE2 expression"),
    (rule("pattern", r"\pL{15}"), "dlp[0].values[0]: is too large"),
    (rule("pattern", "\ud800"), "dlp[0].values[0]: has a lone surrogate"),
    (rule("words", "\u200b"), "dlp[0].values[0]: has no"),
    (rule("detector", "cards"), "dlp[0].values[0]: there is no detector 'cards'"),
    (rule("detector", CREDENTIAL, sensitive=True), "dlp[0].values[0]: credentials are always denied"),
    (rule("detector", CARD, CREDENTIAL, action="mask"), "dlp[0].values[1]: credentials are always denied"),
]


@pytest.mark.parametrize(("wrong", "message"), REFUSED)
def test_what_cannot_be_used_is_refused_by_its_field(wrong, message):
    with pytest.raises(ConfigurationError) as error:
        compile_rules([wrong])
    assert str(error.value).startswith(message.replace("has no", "has n"))


@pytest.mark.parametrize(("wrong", "message"), REFUSED)
def test_a_policy_is_refused_for_it_too(wrong, message):
    """The two rooms do not know each other; what one takes, the other can use."""
    written = DlpRule(**{name: getattr(wrong, name) for name in wrong.__slots__})
    with pytest.raises(ConfigurationError) as error:
        check_text_rules([written])
    assert str(error.value).startswith(message)


def test_more_than_can_be_looked_for():
    many = [rule("pattern", *[r"\pL{7}x"] * 30, id=f"r-{number}") for number in range(3)]
    for check in (compile_rules, check_text_rules):
        with pytest.raises(ConfigurationError, match=r"^dlp\[1\]\.values\[\d+\]: more than"):
            check(many)
    assert set(NAMES_IN_POLICIES) == DETECTORS


def test_an_expression_that_would_hang_others_does_not():
    slow = [rule("pattern", r"(x+x+)+y", r"(a|a)*b", r"(\w+\s?)*!")]
    assert matches(slow, "x" * 20_000) == []


def test_many_rules_at_once():
    rules = [rule("words", f"codename {number}", id=f"r-{number}") for number in range(500)]
    compiled = compile_rules(rules)
    hits = compiled.find(fold("a codename 7 b codename 499 c codename 77777"), "from-page")
    assert [one.id for one, _ in hits] == ["r-7", "r-499"]
    assert not compiled.quick
    assert NO_RULES.quick


HIT = Finding(0, 4, CARD)


@pytest.mark.parametrize(
    ("detector", "readable", "result", "masks"),
    [
        (None, False, Result.BLOCKED, 0),
        ({"action": "deny"}, True, Result.BLOCKED, 0),
        ({"sensitive": True}, False, Result.CLASSIFIED, 0),
        ({"sensitive": True}, True, Result.CLASSIFIED, 0),
        ({"action": "mask"}, True, Result.CLEAN, 1),
        ({"action": "mask", "sensitive": True}, False, Result.CLEAN, 1),
        ({"action": "mask", "sensitive": True}, True, Result.CLASSIFIED, 0),
        ({"directions": ("to-page",), "action": "mask"}, True, Result.BLOCKED, 0),
    ],
)
def test_what_a_rule_makes_of_a_class(detector, readable, result, masks):
    rules = compile_rules([] if detector is None else [rule("detector", CARD, **detector)])
    made = judge([HIT], [], rules, "from-page", sensitive_read=readable)
    assert (made.result, len(made.masks)) == (result, masks)
    assert made.passes is (result is Result.CLEAN or (result is Result.CLASSIFIED and readable))


def test_the_strictest_of_several_rules_holds():
    rules = compile_rules(
        [
            rule("detector", CARD, sensitive=True),
            rule("detector", CARD, id="r-2", action="mask"),
            rule("words", "x"),
        ]
    )
    assert judge([HIT], [], rules, "from-page", sensitive_read=True).masks == (HIT,)
    strict = compile_rules([rule("detector", CARD, sensitive=True), rule("detector", CARD, id="r-2")])
    assert judge([HIT], [], strict, "from-page", sensitive_read=True).result is Result.BLOCKED


def test_credentials_are_blocked_whatever_rules_say():
    every = compile_rules([rule("detector", *sorted(DETECTORS - {CREDENTIAL}), sensitive=True)])
    for direction in EVERYWHERE:
        made = judge([Finding(0, 1, CREDENTIAL), HIT], [], every, direction, sensitive_read=True)
        assert (made.result, made.classes[0], made.passes) == (Result.BLOCKED, CREDENTIAL, False)
