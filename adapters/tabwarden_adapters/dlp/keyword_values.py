"""Values that look random beside a word that says what they are: `api_token = "…"`, `password: …`.

Alone, randomness means little: hashes, identifiers and pictures are random too. So a word must stand before
the value, and the value must be one that people do not write as a name.
"""

import math
import re
from collections import Counter
from typing import Final

import re2

from tabwarden_adapters.dlp.faults import TooManyPlaces
from tabwarden_adapters.dlp.re2_set import options

_CHOSEN: Final = (
    r"passw(?:or)?d|passwort|passwd|passphrase|passcode|pwd|contrase.a|mot de passe|kennwort"
    r"|\b_?pass\b|_pass\b"
)
_ISSUED: Final = (
    r"secret|token|api[ _.-]?key|access[ _.-]?key|private[ _.-]?key|signing[ _.-]?key|encryption[ _.-]?key"
    r"|auth[ _.-]?key|credentials?|apikey|accesskey|sas[ _.-]?key|shared[ _.-]?key|bearer"
    r"|unseal key ?[0-9]?|_pat\b"
)
_KEY: Final = r"[_-]key|[a-z]Key"
_TAIL: Final = r"[A-Za-z0-9_.-]{0,24}"  # the rest of a name: `token_for_ci`
_JOIN: Final = (
    r"[\"'`\])]{0,3}[ \t]{0,30}(?:=>|:=|={1,3}|:{1,2}|>|,|\|| is | lautet |\n)[ \t]{0,30}"
    r"(?:b|r|f|u)?[\"'`]{0,3}"
)
_VALUE: Final = r"([^\s\"'`<>,;]{8,400})"
_EXPRESSION: Final = re2.compile(
    f"(?:(?i:({_CHOSEN})|({_ISSUED}))|({_KEY}))({_TAIL}){_JOIN}{_VALUE}".encode(), options(latin1=True)
)
# Flags of command lines, where only a blank stands between.
_FLAG: Final = re2.compile(
    rb"(?:^|[\s'\"])--?[A-Za-z-]{0,20}(?i:passw(?:or)?d|token|secret|api-?key)[ \t]+['\"]?"
    rb"([^\s\"'`<>,;|]{8,400})",
    options(latin1=True),
)
_TRIGGER: Final = re2.compile(f"(?i:{_CHOSEN}|{_ISSUED})|{_KEY}".encode(), options(latin1=True))
_TOKEN: Final = re2.compile(rb"[A-Za-z0-9_+/=.~%!*$^&#@\]()?;:-]+", options(latin1=True))
_UUID: Final = re2.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", options(latin1=True))
# Words and abbreviations, one after the other, each perhaps with a number at its end: a name, no secret.
_NAME: Final = re2.compile(rb"[A-Za-z]*[0-9]{0,5}(?:[_./:#@+-]+[A-Za-z]*[0-9]{0,5})*", options(latin1=True))
# Names of things about a secret, which are none: `credentialsId`, `secret_length`, `publicToken`.
_ABOUT: Final = re2.compile(
    rb"(?i:id|ids|name|url|uri|length|type|count|file|path|format|version|size|digest|algorithm|class)$",
    options(latin1=True),
)
_PUBLIC: Final = re2.compile(rb"(?i:public)[ _-]?[A-Za-z]{0,6}$", options(latin1=True))
_DIGEST: Final = re2.compile(rb"(?i:sha|md)[0-9]{1,3}[=:-]", options(latin1=True))
_DIGIT: Final = re.compile(rb"[0-9]")
_LETTER: Final = re.compile(rb"[A-Za-z]")
_ANNOUNCED: Final = 24  # characters before the word that say what kind it is
_WORD_AND_NUMBER: Final = re2.compile(rb"[A-Za-z]{4,}[0-9]{2,5}[!?.#$*]?", options(latin1=True))
_FILLER: Final = (b"xxxx", b"****", b"....", b"example", b"placeholder", b"changeme", b"your", b"redacted")
_QUOTES: Final = (b'"', b"'", b"`")
_REFERENCES: Final = (b"${", b"{{", b"$(", b"%(", b"<%", b"#{", b"{", b"%s")  # to where a value is kept
TOO_MANY: Final = 20_000  # places in one text: more is no text for people


def keyword_values(text: bytes) -> list[tuple[int, int]]:
    """Where values that look secret stand, in bytes (one byte a character). Raises `TooManyPlaces`."""
    if _TRIGGER.search(text) is None:
        return []
    found = []
    for count, match in enumerate(_EXPRESSION.finditer(text)):
        if count >= TOO_MANY:
            raise TooManyPlaces
        start, _ = match.span(5)
        password, secret = match.span(1)[0] >= 0, match.span(2)[0] >= 0
        value = match.group(5)
        begin = match.span()[0]
        if _ABOUT.search(match.group(4)) or _PUBLIC.search(text[max(0, begin - _ANNOUNCED) : begin]):
            continue
        while value and value[-1:] in b".,;:)]}!?":
            value = value[:-1]
        if text[start - 1 : start] in _QUOTES:
            if value.startswith(_REFERENCES):
                continue
        elif value[:1] in b"$({[%<" or b"(" in value:
            continue
        if _looks_secret(value, password=password, named=secret):
            found.append((start, start + len(value)))
    for match in _FLAG.finditer(text):
        if match.group(1)[:1] not in b"$({[%<-" and _looks_secret(match.group(1), password=True, named=True):
            found.append(match.span(1))
    return found


def _looks_secret(value: bytes, *, password: bool, named: bool) -> bool:
    lower = value.lower()
    if any(filler in lower for filler in _FILLER):
        return False
    if _DIGEST.match(value) is not None:
        return False
    if _DIGIT.search(value) is None or _LETTER.search(value) is None:
        return False
    if password:
        # What people choose: letters and a digit, often a word and a year.
        if entropy(value) < 2.5 or b"pass" in lower:
            return False
        return _NAME.fullmatch(value) is None or _WORD_AND_NUMBER.fullmatch(value) is not None
    token = _TOKEN.search(value)
    if token is None:
        return False
    value = token.group()
    if _DIGIT.search(value) is None or _LETTER.search(value) is None or _NAME.fullmatch(value) is not None:
        return False
    if _UUID.fullmatch(value) is not None:
        return named
    bits = entropy(value)
    if len(value) >= 20:
        return bits >= 3.0
    return named and len(value) >= 12 and bits >= 3.0


def entropy(value: bytes) -> float:
    """Shannon's, in bits a byte."""
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
