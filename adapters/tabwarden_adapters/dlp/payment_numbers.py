"""Numbers of payment cards (ISO/IEC 7812) and bank accounts (IBAN, ISO 13616), by issuer and check digit."""

import re
from collections.abc import Iterator
from typing import Final

import re2
from stdnum import iban, luhn, numdb

from tabwarden_adapters.dlp.faults import TooManyPlaces
from tabwarden_adapters.dlp.keyword_values import TOO_MANY
from tabwarden_adapters.dlp.re2_set import options

_LATIN1: Final = options(latin1=True)
# Digits enough for a card, with one blank, line break, dash or dot between some of them.
_CHAIN: Final = re2.compile(rb"[0-9](?:[ \n.-]?[0-9]){13,}", _LATIN1)
_GROUP: Final = re.compile(rb"[0-9]+")
# Issuer prefixes, with the lengths that they use: those of the networks' published ranges.
_ISSUERS: Final = (
    (re.compile(r"4"), (16, 19)),  # Visa
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),  # Mastercard
    (re.compile(r"3[47]"), (15,)),  # American Express
    (re.compile(r"6011|65|64[4-9]|62"), (16, 17, 18, 19)),  # Discover, UnionPay
    (re.compile(r"35(?:2[89]|[3-8])"), (16, 17, 18, 19)),  # JCB
    (re.compile(r"30[0-5]|3095|3[689]"), (14, 16)),  # Diners Club
    (re.compile(r"50(?:18|20|38)|5[678]|6(?:304|390|759|76[1-3])"), (16, 17, 18, 19)),  # Maestro
    (re.compile(r"220[0-4]"), (16, 17, 18, 19)),  # Mir
    (re.compile(r"9792"), (16,)),  # Troy
    (re.compile(r"60|8[12]|508"), (16,)),  # RuPay
)
_SHORTEST, _LONGEST = 14, 19  # digits
_FORMS: Final = ((4, 4, 4, 4), (4, 4, 4, 4, 1), (4, 4, 4, 4, 2), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4))
_FEWEST: Final = 3  # groups
_ROW: Final = 6  # groups of four and more: a card, and a year or two
_ANNOUNCED: Final = 48
_ANNOUNCE: Final = re.compile(rb"(?i)card|karte|carte|tarjeta|visa|master|amex|express|\bpan\b|credit|debit")
_HASH: Final = 24  # digits of the shortest hash that is written out
_HEX: Final = re.compile(rb"[0-9a-fA-F]*")
_HEX_BEFORE: Final = re.compile(rb"[0-9a-fA-F]*$")
_BETWEEN: Final = (b" ", b"\n", b"-", b".")
_WRITTEN: Final = re.compile(rb"[^A-Za-z0-9]")


def _lengths() -> dict[str, int]:
    """Country -> how long its IBANs are (ISO 13616's registry, in python-stdnum)."""
    part = re.compile(r"([0-9]+)!")
    return {
        entry[1]: 4 + sum(int(length) for length in part.findall(entry[3]["bban"]))
        for entry in numdb.get("iban").prefixes
    }


_LENGTHS: Final = _lengths()
_IBAN: Final = re2.compile(rf"\b(?i:({'|'.join(sorted(_LENGTHS))}))[ -]?[0-9]{{2}}".encode("ascii"), _LATIN1)


def card_numbers(text: bytes) -> list[tuple[int, int]]:
    """Where card numbers stand, in bytes (one byte a character). Raises `TooManyPlaces`."""
    found: list[tuple[int, int]] = []
    count = 0
    for chain in _CHAIN.finditer(text):
        groups = [one.span() for one in _GROUP.finditer(text, *chain.span())]
        count += len(groups)
        if count > TOO_MANY:
            raise TooManyPlaces
        found += [
            place
            for place in groups
            if _SHORTEST <= place[1] - place[0] <= _LONGEST and _in_one_piece(text, *place)
        ]
        if len(groups) >= _FEWEST:
            for alike in _alike(text, groups):
                found += _in_groups(text, alike)
    return found


def _in_one_piece(text: bytes, start: int, end: int) -> bool:
    if not _is_card(text[start:end].decode("ascii")):
        return False
    if text[start - 1 : start] == b"." and text[start - 2 : start - 1].isdigit():
        return False  # the digits of a fraction
    # Digits in the middle of a long hexadecimal number are that number's.
    before = _HEX_BEFORE.search(text[max(0, start - _HASH) : start])
    after = _HEX.match(text, end, end + _HASH)
    return len(before.group() if before else b"") + len(after.group() if after else b"") + end - start < _HASH


def _alike(text: bytes, groups: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Groups that the same character keeps apart."""
    alike = groups[:1]
    for number, group in enumerate(groups[1:]):
        between = text[groups[number][1]]
        if len(alike) > 1 and between != text[alike[0][1]]:
            yield alike
            alike = [groups[number]]
        alike.append(group)
    if len(alike) > 1:
        yield alike


def _in_groups(text: bytes, groups: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cards are written 4-4-4-4, with up to three digits more, 4-6-5 or 4-6-4. A long row of numbers is a
    table, unless all of it is cards, or a word before it says so."""
    sizes = tuple(end - start for start, end in groups)
    places = []
    for first in range(len(sizes) - _FEWEST + 1):
        if sizes[first] != 4:
            continue
        for form in _FORMS:
            last = first + len(form)
            if sizes[first:last] == form:
                number = b"".join([text[start:end] for start, end in groups[first:last]])
                if _is_card(number.decode("ascii")):
                    places.append((groups[first][0], groups[last - 1][1]))
    if not places or sum(size >= 4 for size in sizes) <= _ROW:
        return places
    ahead = text[max(0, groups[0][0] - _ANNOUNCED) : groups[0][0]]
    whole = len(groups) % 4 == 0 and {groups[at][0] for at in range(0, len(groups), 4)} <= {
        start for start, _ in places
    }
    return places if whole or _ANNOUNCE.search(ahead) else []


def _is_card(number: str) -> bool:
    return (
        len(set(number)) >= 2
        and any(len(number) in lengths and prefix.match(number) for prefix, lengths in _ISSUERS)
        and bool(luhn.is_valid(number))
    )


def account_numbers(text: bytes) -> list[tuple[int, int]]:
    """Where IBANs stand, in bytes (one byte a character). Raises `TooManyPlaces`."""
    found: list[tuple[int, int]] = []
    at = count = 0
    while (match := _IBAN.search(text, at)) is not None:
        at = match.start() + 1
        length = _LENGTHS[match.group(1).decode("ascii").upper()]
        count += 1
        if count > TOO_MANY:
            raise TooManyPlaces
        end = _end(text, match.start(), length)
        # Without the country's own check digits inside: what looks like an account is held to be one.
        written = _WRITTEN.sub(b"", text[match.start() : end]).decode("ascii")
        one_case = written.isupper() or written.islower()
        if end and one_case and iban.is_valid(written, check_country=False):
            found.append((match.start(), end))
            at = end
    return found


def _end(text: bytes, start: int, length: int) -> int:
    """The end of `length` letters and digits from `start` on; 0 when other characters are among them."""
    seen = gap = 0
    for at in range(start, min(len(text), start + 2 * length)):
        one = text[at : at + 1]
        if one.isalnum():
            seen, gap = seen + 1, 0
            if seen == length:
                return at + 1
        elif one not in _BETWEEN or gap:
            return 0
        else:
            gap = 1
    return 0
