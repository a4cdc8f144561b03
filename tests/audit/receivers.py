"""Takes apart what a receiver is sent, by the specifications and not by our code."""

import re
from dataclasses import dataclass


def parse_cef(line: str) -> tuple[list[str], dict[str, str]]:
    """The seven fields of the header, and the extension. Each key may stand once."""
    assert "\n" not in line
    assert "\r" not in line
    assert line.startswith("CEF:0|")
    header: list[str] = []
    rest, part = line, ""
    while len(header) < 7:
        character, rest = rest[0], rest[1:]
        if character == "\\":
            assert rest[0] in "\\|", rest[:10]
            part, rest = part + rest[0], rest[1:]
        elif character == "|":
            header.append(part)
            part = ""
        else:
            part += character
    found: dict[str, str] = {}
    places = list(re.finditer(r"(?:^| )([A-Za-z0-9_]+)=", rest))
    for at, place in enumerate(places):
        end = places[at + 1].start() if at + 1 < len(places) else len(rest)
        assert place[1] not in found, place[1]
        found[place[1]] = _unescape_extension(rest[place.end() : end])
    return header, found


def _unescape_extension(text: str) -> str:
    assert re.fullmatch(r"(?:[^\\=]|\\[\\=nr])*", text), text
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "r": "\r"}.get(match[1], match[1]), text)


@dataclass
class Message:
    """One syslog message of RFC 5424."""

    priority: int
    time: str
    host: str
    app: str
    process: str
    id: str
    sd_id: str
    parameters: dict[str, str]
    text: bytes


_HEADER = re.compile(
    rb"<(\d{1,3})>1 (-|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z)"
    rb" ([!-~]{1,255}) ([!-~]{1,48}) ([!-~]{1,128})"
    rb' ([!-~]{1,32}) \[([!#-<>-\\^-~]{1,32})((?: [!#-<>-\\^-~]{1,32}="(?:[^"\\\]]|\\["\\\]])*")*)\](?: |$)'
)


def parse_syslog(message: bytes) -> Message:
    match = _HEADER.match(message)
    assert match, message
    priority = int(match[1])
    assert priority <= 191
    assert match[1] == b"%d" % priority
    parameters = {
        name.decode(): re.sub(rb"\\(.)", rb"\1", value).decode()
        for name, value in re.findall(rb' ([^ =]+)="((?:[^"\\\]]|\\.)*)"', match[8])
    }
    names = [group.decode() for group in match.groups()[1:7]]
    return Message(priority, *names, parameters, message[match.end() :])


def split_frames(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole messages by octet counting (RFC 6587), and what is left."""
    frames = []
    while match := re.match(rb"([1-9]\d*) ", data):
        end = match.end() + int(match[1])
        if len(data) < end:
            break
        frames.append(data[match.end() : end])
        data = data[end:]
    assert not data or re.match(rb"[1-9]\d{0,5}($| )", data), data[:40]
    return frames, data
