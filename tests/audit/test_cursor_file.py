"""The file that remembers what was shipped."""

from pathlib import Path

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.audit import Head
from tabwarden_adapters.audit.shipping import open_cursor

from tests.support.places import PRIVATE, Place


def test_a_cursor_is_its_destinations_and_one_shippers(tmp_path: Path) -> None:
    path = tmp_path / "shipping" / "cursor.json"
    with open_cursor(path, "unix:///a") as cursor:
        assert cursor.head is None
        cursor.save(Head(7, "ab" * 48))
        with pytest.raises(ConfigurationError, match="another shipper uses"), open_cursor(path, "unix:///a"):
            pass
    with open_cursor(path, "unix:///a") as cursor:
        assert cursor.head == Head(7, "ab" * 48)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(ConfigurationError, match="another destination"), open_cursor(path, "unix:///b"):
        pass


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"\xff",
        b"x" * 5000,
        b'{"format":"tabwarden-audit-cursor-v1","to":"x","sequence":-1,"hash":"%b"}' % (b"0" * 96),
        b'{"format":"tabwarden-audit-cursor-v1","to":"x","sequence":1,"hash":"%b\\n"}' % (b"0" * 96),
        b'{"format":"tabwarden-audit-cursor-v2","to":"x","sequence":1,"hash":"%b"}' % (b"0" * 96),
    ],
)
def test_what_is_no_cursor(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "cursor.json"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(ConfigurationError, match="ship the log from its beginning"), open_cursor(path, "x"):
        pass


@pytest.mark.parametrize("place", PRIVATE, ids=lambda place: place.__name__)
def test_what_may_be_in_the_place_of_a_cursor(tmp_path: Path, place: Place) -> None:
    place(tmp_path / "cursor.json")
    with pytest.raises(ConfigurationError) as caught, open_cursor(tmp_path / "cursor.json", "x"):
        pass
    assert PRIVATE[place] in str(caught.value) or "is not a regular file" in str(caught.value)


def test_a_cursor_that_cannot_be_written(tmp_path: Path) -> None:
    with open_cursor(tmp_path / "shipping" / "c", "x") as cursor:
        (tmp_path / "shipping" / "c").mkdir()
        with pytest.raises(ConfigurationError, match="cannot write the cursor"):
            cursor.save(Head(1, "0" * 96))
        assert cursor.head is None
        assert list((tmp_path / "shipping").iterdir())  # and no temporary file beside these two
        assert {one.name for one in (tmp_path / "shipping").iterdir()} == {"c", "c.lock"}
