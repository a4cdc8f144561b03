"""Strict JSON: what RFC 8259 leaves open is decided here, and nothing but MalformedError comes out."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tabwarden.errors import MalformedError
from tabwarden.protocol.codec import parse_json

from tests.protocol.corpus import JSON_PARSING, json_cases

# What RFC 8259 leaves to the implementation (`i_`), and why. True: accepted.
DECIDED = {
    # Too small is 0, as everywhere.
    "i_number_double_huge_neg_exp.json": True,
    "i_number_real_underflow.json": True,
    # Beyond +/-2^53 the two ends would not agree on the number.
    "i_number_huge_exp.json": False,
    "i_number_neg_int_huge_exp.json": False,
    "i_number_pos_double_huge_exp.json": False,
    "i_number_real_neg_overflow.json": False,
    "i_number_real_pos_overflow.json": False,
    "i_number_too_big_neg_int.json": False,
    "i_number_too_big_pos_int.json": False,
    "i_number_very_big_negative_int.json": False,
    # A lone surrogate has no UTF-8.
    "i_object_key_lone_2nd_surrogate.json": False,
    "i_string_1st_surrogate_but_2nd_missing.json": False,
    "i_string_1st_valid_surrogate_2nd_invalid.json": False,
    "i_string_incomplete_surrogate_and_escape_valid.json": False,
    "i_string_incomplete_surrogate_pair.json": False,
    "i_string_incomplete_surrogates_escape_valid.json": False,
    "i_string_invalid_lonely_surrogate.json": False,
    "i_string_invalid_surrogate.json": False,
    "i_string_inverted_surrogates_U+1D11E.json": False,
    "i_string_lone_second_surrogate.json": False,
    # Not UTF-8, or UTF-8 of something that is no scalar value.
    "i_string_UTF-16LE_with_BOM.json": False,
    "i_string_UTF-8_invalid_sequence.json": False,
    "i_string_UTF8_surrogate_U+D800.json": False,
    "i_string_invalid_utf-8.json": False,
    "i_string_iso_latin_1.json": False,
    "i_string_lone_utf8_continuation_byte.json": False,
    "i_string_not_in_unicode_range.json": False,
    "i_string_overlong_sequence_2_bytes.json": False,
    "i_string_overlong_sequence_6_bytes.json": False,
    "i_string_overlong_sequence_6_bytes_null.json": False,
    "i_string_truncated-utf-8.json": False,
    "i_string_utf16BE_no_BOM.json": False,
    "i_string_utf16LE_no_BOM.json": False,
    # Deeper than 16, and a byte-order mark.
    "i_structure_500_nested_arrays.json": False,
    "i_structure_UTF-8_BOM_empty_object.json": False,
}

# Valid by RFC 8259 and refused all the same: two keys alike, or a number beyond +/-2^53.
STRICTER = {
    "y_number.json",
    "y_number_real_capital_e.json",
    "y_number_real_exponent.json",
    "y_number_real_fraction_exponent.json",
    "y_object_extreme_numbers.json",
    "y_object_duplicated_key.json",
    "y_object_duplicated_key_and_value.json",
}


def accepted(data: bytes) -> bool:
    """False when refused by MalformedError; anything else that is raised fails the test."""
    try:
        parse_json(data)
    except MalformedError:
        return False
    return True


@pytest.mark.parametrize("name", json_cases("n"))
def test_corpus_must_be_refused(name: str) -> None:
    assert not accepted((JSON_PARSING / name).read_bytes())


@pytest.mark.parametrize("name", json_cases("i"))
def test_corpus_left_open(name: str) -> None:
    assert accepted((JSON_PARSING / name).read_bytes()) is DECIDED[name]


@pytest.mark.parametrize("name", json_cases("y"))
def test_corpus_valid(name: str) -> None:
    data = (JSON_PARSING / name).read_bytes()
    assert accepted(data) is (name not in STRICTER)
    if name not in STRICTER:
        assert parse_json(data) == json.loads(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"null", None),
        (b" \t\r\n[] \t\r\n", []),
        (b'{"a":{"b":[1,-2,0.5]},"c":{"b":"x"}}', {"a": {"b": [1, -2, 0.5]}, "c": {"b": "x"}}),
        (b'[{"a":1},{"a":1}]', [{"a": 1}, {"a": 1}]),
        (b'"\\ud83d\\ude00 \\u0000 \\/"', "\U0001f600 \x00 /"),
        ('"\U0001f600\ufeff\ufffd"'.encode(), "\U0001f600\ufeff\ufffd"),
        (b'{"":0}', {"": 0}),
        (b"9007199254740992", 2**53),
        (b"-9007199254740992", -(2**53)),
        (b"9007199254740992.0", 2.0**53),
        (b"-9007199254740992.0", -(2.0**53)),
        (b"[" + b",".join([b"[]", b"{}"] * 200) + b"]", [[], {}] * 200),
        (b"1e15", 1e15),
        (b"1e-400", 0.0),
        (b"[" * 16 + b"]" * 16, [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]),
        (b'"' + b"[{" * 100 + b'"', "[{" * 100),
        (b'["\\"[[[[[[[[[[[[[[[[[[[[", "\\\\", [1]]', ['"' + "[" * 20, "\\", [1]]),
    ],
)
def test_accepts(data: bytes, value: object) -> None:
    result = parse_json(data)
    assert result == value
    assert type(result) is type(value)


def test_minus_zero_is_zero() -> None:
    """`-0` is the integer 0 and `-0.0` the real one: nothing tells them apart from 0 afterwards."""
    assert parse_json(b"[-0,-0.0,-0e5,0]") == [0, 0.0, 0.0, 0]
    assert type(parse_json(b"-0")) is int


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a":1,"a":1}', "duplicate key"),
        (b'{"a":1,"b":2,"a":null}', "duplicate key"),
        (b'{"x":[{"y":{"a":1,"a":2}}]}', "duplicate key"),
        (b'{"a":1,"\\u0061":2}', "duplicate key"),
        ('{"\U0001f600":1,"\\ud83d\\ude00":2}'.encode(), "duplicate key"),
        (b'{"":1,"":2}', "duplicate key"),
        (b"NaN", "not a number"),
        (b"[-Infinity]", "not a number"),
        (b'{"a":Infinity}', "not a number"),
        (b"9007199254740993", "number range"),
        (b"-9007199254740993", "number range"),
        (b"1e400", "number range"),
        (b"-1e400", "number range"),
        (b"1e16", "number range"),
        (b"9007199254740994.0", "number range"),
        (b"9" * 100_000, "number range"),
        (b"-" + b"1" * 100_000, "number range"),
        (b"9" * 100_000 + b".5", "number range"),
        (b"1" + b"0" * 100_000 + b"e1", "number range"),
        (b"[" * 17 + b"]" * 17, "depth"),
        (b'{"a":' * 17 + b"1" + b"}" * 17, "depth"),
        (b"[" * 100_000, "depth"),
        (b"[" * 100_000 + b"]" * 100_000, "depth"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "depth"),
        (b'[{"[":' * 50_000, "depth"),
        (b'["\\"",' + b"[" * 17, "depth"),
        (b'["[[[[]]]]\\\\",' + b"[" * 17, "depth"),
        (b"1 2", "trailing bytes"),
        (b"{}{}", "trailing bytes"),
        (b"[]\x00", "trailing bytes"),
        (b"null,", "trailing bytes"),
        (b"[]]", "trailing bytes"),
        ("[]\u00a0".encode(), "trailing bytes"),
        ("\u2003[]".encode(), "json"),
        (b"\x0b[]", "json"),
        (b"\xef\xbb\xbf{}", "json"),
        (b"\xff\xfe[\x00]\x00", "json"),
        (b"", "json"),
        (b" ", "json"),
        (b'"\\ud800"', "json"),
        (b'"\\udc00"', "json"),
        (b'"\\ude00\\ud83d"', "json"),
        (b'"a\\uDBFFb"', "json"),
        (b'{"\\ud800":1}', "json"),
        (b'[[{"k":{"x\\udfff":[]}}]]', "json"),
        (b'[[{"k":["\\udfff"]}]]', "json"),
        (b'"\xed\xa0\x80"', "json"),
        (b'"\xc0\x80"', "json"),
        (b'"\xf4\x90\x80\x80"', "json"),
        (b'"\x00"', "json"),
        (b'"\n"', "json"),
        (b'"\\x41"', "json"),
        (b'"\\u004"', "json"),
        (b'"\\u+041"', "json"),
        (b'"abc', "json"),
        (b'"\\', "json"),
        (b"'a'", "json"),
        (b"{a:1}", "json"),
        (b"[1,]", "json"),
        (b'{"a":1,}', "json"),
        (b"[,1]", "json"),
        (b"// c\n1", "json"),
        (b"/**/1", "json"),
        (b"+1", "json"),
        (b"01", "trailing bytes"),
        (b"-", "json"),
        (b".5", "json"),
        (b"1.", "trailing bytes"),
        (b"1e", "trailing bytes"),
        (b"0x10", "trailing bytes"),
        ("\u0661".encode(), "json"),
        ("1\u0661".encode(), "trailing bytes"),
        (b"nan", "json"),
        (b"True", "json"),
        (b"undefined", "json"),
    ],
)
def test_refuses(data: bytes, why: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse_json(data)
    assert str(caught.value) == why
    assert caught.value.__cause__ is None
    # The text of the library's own error would quote what was sent.
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(-(2.0**53), 2.0**53),
    st.text(max_size=12),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(TREES, st.booleans())
def test_what_is_valid_comes_back(value: Any, escape: bool) -> None:
    data = json.dumps(value, ensure_ascii=escape).encode()
    if depth(value) <= 16:
        assert parse_json(data) == value
    else:
        assert not accepted(data)


@given(st.integers(0, 40), st.sampled_from([b"[", b'{"a":', b'{"[{":', b'["]]]",']))
def test_depth_is_counted_outside_strings(levels: int, opening: bytes) -> None:
    closing = b"}" if opening.startswith(b"{") else b"]"
    assert accepted(opening * levels + b"0" + closing * levels) is (levels <= 16)


@given(st.binary(max_size=60))
@example(b'{"a":1e999}')
def test_arbitrary_bytes_raise_nothing_else(data: bytes) -> None:
    accepted(data)


TOKENS = [
    *"{}[],:a01-.eE+ ",
    '"',
    "\\",
    "\\u",
    "\\ud83d",
    "\\ude00",
    "null",
    "true",
    "NaN",
    '"a"',
    '"b"',
    "1e999",
    "-0",
]


@given(st.lists(st.sampled_from(TOKENS), max_size=24))
def test_arbitrary_tokens_raise_nothing_else_and_never_differ_from_json(tokens: list[str]) -> None:
    data = "".join(tokens).encode()
    if accepted(data):
        assert parse_json(data) == json.loads(data)


# Each is a family that a careless scanner walks in quadratic time.
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "quotes": lambda n: b'"' * n,
    "unclosed strings": lambda n: b'["a' + b'\\"' * (n // 2),
    "backslashes": lambda n: b'"' + b"\\" * n,
    "brackets in an unclosed string": lambda n: b'["' + b"[" * n,
    "brackets after an odd quote": lambda n: b"[]" * 20 + b'"' + b"[\\" * (n // 2),
    "closing brackets": lambda n: b"[" + b"]" * n,
    "digits": lambda n: b"1" * n,
    "fraction": lambda n: b"0." + b"1" * n,
    "exponent": lambda n: b"1e" + b"1" * n,
    "white space": lambda n: b" " * n + b"x",
    "many keys": lambda n: b"{" + b",".join(b'"%d":0' % i for i in range(n // 8)) + b"}",
    "surrogates": lambda n: b'"' + b"\\ud83d\\ude00" * (n // 12) + b'"',
}


def seconds(data: bytes) -> float:
    best = 1e9
    for _ in range(3):
        start = time.thread_time()
        accepted(data)
        best = min(best, time.thread_time() - start)
    return best


@pytest.mark.parametrize("family", sorted(HOSTILE))
def test_time_is_linear(family: str) -> None:
    """Sixteen times the bytes: about sixteen times the CPU time, where quadratic would be 256 times."""
    make = HOSTILE[family]
    assert seconds(make(800_000)) < 70 * seconds(make(50_000)) + 0.05


@settings(max_examples=30)
@given(st.integers(17, 400))
def test_integers_of_any_length_are_looked_at_by_length(digits: int) -> None:
    assert not accepted(b"1" * digits)
    assert not accepted(b"-" + b"1" * digits)
