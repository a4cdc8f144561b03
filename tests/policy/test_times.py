"""RFC 3339 and milliseconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabwarden_adapters.policy.times import parse_time, write_time


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2027-01-01T01:00:00.250+01:00", 1798761600250),
        ("1969-12-31T23:59:59Z", None),
        ("2027-01-01T24:00:01Z", None),
        ("2027-01-01T00:00:00z", None),
        ("2027-01-01T00:00:00+25:00", None),
        ("٢٠٢٧-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("", None),
    ],
)
def test_times(text: str, milliseconds: int | None) -> None:
    assert parse_time(text) == milliseconds


@given(st.integers(0, 4_000_000_000).map(lambda seconds: seconds * 1000))
def test_times_come_back(milliseconds: int) -> None:
    assert parse_time(write_time(milliseconds)) == milliseconds
