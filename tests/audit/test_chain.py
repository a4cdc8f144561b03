"""The line format, checked with nothing but SHA-384 and JSON."""

import hashlib
import json

import pytest
from tabwarden.errors import MalformedError
from tabwarden_adapters.audit.chain import GENESIS, MAX_RECORD_BYTES, read_line, seal_line

LINE, DIGEST = seal_line(1, GENESIS, b'"type":"x"')


def test_the_format_by_hand() -> None:
    body = '{"v":1,"seq":1,"prev":"' + "0" * 96 + '","type":"x"'
    digest = hashlib.sha384(body.encode()).hexdigest()
    assert LINE.decode() == f'{body},"hash":"{digest}"}}\n'
    assert digest == DIGEST
    assert json.loads(LINE) == {"v": 1, "seq": 1, "prev": "0" * 96, "type": "x", "hash": digest}


def test_a_text_that_imitates_the_end_of_a_record() -> None:
    text = json.dumps(f',"hash":"{"0" * 96}"}}')
    line, digest = seal_line(2, DIGEST, b'"type":%b' % text.encode())
    link = read_line(line)
    assert (link.sequence, link.previous, link.hash, link.hash_is_right) == (2, DIGEST, digest, True)


def test_every_changed_bit_shows() -> None:
    for at in range(len(LINE)):
        for bit in range(8):
            changed = bytearray(LINE)
            changed[at] ^= 1 << bit
            try:
                link = read_line(bytes(changed))
            except MalformedError:
                continue
            assert not link.hash_is_right, bytes(changed)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{}\n",
        LINE[:-1],
        LINE[:-2] + b"\n",
        b" " + LINE,
        LINE[:-2] + b" }\n",
        LINE + LINE,
        LINE.replace(b'"seq":1', b'"seq":01'),
        LINE.replace(b'"seq":1', b'"seq":0'),
        LINE.replace(b'"seq":1', b'"seq":-1'),
        LINE.replace(b'"seq":1', b'"seq":' + b"9" * 17),
        LINE.replace(b'"type":"x"', b'"type":"x'),
        LINE.replace(b'"x"', b'"' + b"x" * MAX_RECORD_BYTES + b'"'),
        LINE.replace(DIGEST.encode(), DIGEST.upper().encode()) if DIGEST.upper() != DIGEST else b"",
        LINE.replace(b'"x"', b"[" * 3000),
    ],
)
def test_what_is_no_record(line: bytes) -> None:
    with pytest.raises(MalformedError):
        read_line(line)
