"""The inspector where text leaves and enters: no window, title or answer lets a secret through, or half."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tabwarden.errors import Code
from tabwarden_adapters.dlp import compile_rules, start_inspector

from tests.browser.agent import Call
from tests.browser.host_contract.fake_host import ADDRESS, ONE, FakeHost, changed, effect, open_host
from tests.dlp.samples import SELF_EVIDENT, private_key
from tests.dlp.support import FakeCatalogue, rule

WINDOW = 10_000
TOKEN = SELF_EVIDENT[6].make(random.Random(1))
PLAN = rule("words", "secret plan", sensitive=True)
STAFF = rule("pattern", r"EMP-\d{6}", id="staff", action="mask")


@dataclass
class Page:
    """Implements `Page`: `whole` is what it shows, read as our script reads it."""

    whole: str
    url: str = ADDRESS

    async def run(self, script: str, arguments: Sequence[Any], operation: Any, /) -> Any:
        _, offset, limit, _ = arguments
        part = self.whole[offset : offset + limit]
        following = offset + limit if len(self.whole) > offset + limit else None
        return {"text": part, "next": following, "frames": [], "cut": False}


class Host(FakeHost):
    """A host with a real inspector."""

    inspector: Any

    def adapters(self, **changes: Any) -> Any:
        return super().adapters(**{"inspect": self.inspector, **changes})

    def shows(self, whole: str) -> None:
        self.change = changed(page=Page(whole))


@pytest.fixture
async def host(nursery):
    inspector = start_inspector(
        nursery,
        compile_rules([PLAN, STAFF]),
        may_read_sensitive=lambda caller: caller.principal_id == "reader",
        make=FakeCatalogue,
    )
    assert await inspector.settled()
    made = Host(allowed_hosts={"allowed.test"})
    made.inspector = inspector
    return made


async def windows(host: Host) -> list[str]:
    out, offset = [], 0
    while offset is not None:
        window = await host.call("read", offset=offset)
        out.append(window["text"])
        assert len(window["text"]) <= WINDOW
        offset = window.get("nextOffset")
    return out


@pytest.mark.parametrize("length", [0, 1, 4096, 9999, 10_000, 10_001, 14_096, 14_097, 20_000, 35_000])
async def test_windows_are_those_without_an_inspector(host, length):
    whole = "".join(chr(97 + number % 26) if number % 7 else " " for number in range(length))
    host.shows(whole)
    assert await windows(host) == [whole[at : at + WINDOW] for at in range(0, length, WINDOW)] or [""]
    plain = open_host()
    plain.change = changed(page=Page(whole))
    mine = await host.call("read", offset=5000)
    assert mine == await plain.call("read", offset=5000)


@pytest.mark.parametrize("secret", [TOKEN, private_key(random.Random(2))], ids=["token", "key"])
async def test_a_secret_across_a_cut_is_in_neither_window(host, secret):
    for before in (1, 4, len(secret) // 2, len(secret) - 1):
        host.shows("x" * (WINDOW - before - 1) + "\n" + secret + "\n" + "y" * 8000)
        for offset in (0, WINDOW):
            error = await host.fails("read", offset=offset)
            assert (error.code, error.rule) == (Code.CONTENT_DENIED, "dlp.credential")
    host.shows("x" * 3 * WINDOW + secret)
    assert (await host.call("read"))["text"] == "x" * WINDOW


async def test_masks_across_a_cut(host):
    host.shows("x" * (WINDOW - 4) + " EMP-123456 " + "y" * 50)
    assert [text.strip("xy") for text in await windows(host)] == [
        " ███",
        "███████ ",
    ]


async def test_who_may_read_what_is_sensitive(host):
    host.shows("the secret plan")
    error = await host.fails("read")
    assert (error.code, error.rule) == (Code.CONTENT_DENIED, "dlp.corporate:r-1")
    reader = Call("read")
    reader.caller = type(reader.caller)("reader", 1)
    assert (await host.call("read", reader))["text"] == "the secret plan"


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("type", {"selector": "#send", "text": f"my {TOKEN}"}),
        ("navigate", {"url": f"https://allowed.test/?k={TOKEN}"}),
        ("navigate", {"url": "https://allowed.test/?k=" + TOKEN.replace("_", "%5f")}),
        ("ai", {"prompt": f"what is {TOKEN}?"}),
    ],
)
async def test_nothing_is_done_with_a_secret(host, action, arguments):
    call = Call(action)
    error = await host.fails(action, call, **arguments)
    assert (error.code, error.rule, effect(error, call)) == (Code.CONTENT_DENIED, "dlp.credential", False)
    assert host.done == []


async def test_titles(host):
    host.tabs[ONE].title = f"Mail {TOKEN}"
    assert [one["title"] for one in await host.call("sessions")] == ["", "Title"]
    host.tabs[ONE].title = "x" * 250 + TOKEN
    assert [one["title"] for one in await host.call("sessions")] == ["", "Title"]
    host.tabs[ONE].title = "Staff EMP-123456 " + "x" * 300
    assert (await host.call("sessions"))[0]["title"].startswith("Staff ██████████ xxx")


async def test_answers(host):
    host.instead["ai"] = f"it is {TOKEN}"
    error = await host.fails("ai", prompt="what is it?")
    assert (error.code, error.rule) == (Code.CONTENT_DENIED, "dlp.credential")
    host.instead["ai"] = "EMP-123456 wrote it"
    assert (await host.call("ai", prompt="who?"))["text"] == "██████████ wrote it"
