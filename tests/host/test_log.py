"""What engines say that their models were sent: scrubbed again, counted, bounded."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden_adapters.host import HostLimits, LogCounts, LogEntry, SeenLog
from tabwarden_adapters.host.values import LogBody, milliseconds

from tests.host.support import FakeHost, ask, limits, never, serving, until

SITE = "https://shop.test"
SECRET = "sk-12345"


def entry(text: str = "Hello", **changed: Any) -> dict[str, Any]:
    return {"type": "page", "origin": SITE, "text": text, "tokens": 2, "at": 1_800_000_000_000} | changed


async def scrub(text: str) -> str:
    return text.replace(SECRET, "[KEY]")


async def test_a_clean_entry_is_kept_and_passed_on(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host, scrubber=scrub) as server:
        body = entry(meta={"tool": "read", "n": [1]}, unknown="ignored")
        assert await ask(server, "POST", "/log", body) == (200, {})
        ((number, kept),) = server.log.after(0)
        assert number == 1
        assert kept == host.entries[0]
        assert kept == LogEntry("page", SITE, "Hello", 2, 1_800_000_000_000, {"tool": "read", "n": [1]}, True)
        assert "Hello" not in repr(kept)
        assert server.statistics().log == LogCounts(taken=1)


async def test_what_the_engines_own_filter_missed_is_scrubbed_and_counted(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host, scrubber=scrub) as server:
        await ask(server, "POST", "/log", entry(f"key {SECRET}."))
        await ask(server, "POST", "/log", entry(meta={SECRET: {"deep": [f"x{SECRET}"]}}))
        kept = [one for _, one in server.log.after(0)]
        assert [one.text for one in kept] == ["key [KEY].", "Hello"]
        assert kept[1].meta == {"[KEY]": {"deep": ["x[KEY]"]}}
        assert [one.clean for one in kept] == [False, False]
        assert SECRET not in repr(kept) + json.dumps([one.meta for one in kept]) + str(host.entries)
        assert server.statistics().log == LogCounts(taken=2, unclean=2)


async def test_without_a_scrubber_no_text_is_kept(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host, scrubber=None) as server:
        assert await ask(server, "POST", "/log", entry(SECRET, meta={"x": SECRET})) == (200, {})
        (kept,) = host.entries
        assert (kept.text, kept.meta, kept.clean, kept.tokens) == (None, None, None, 2)
        assert server.statistics().log == LogCounts(taken=1, withheld=1)


async def _raises(text: str) -> str:
    raise ValueError(text)


async def _group(text: str) -> str:
    raise ExceptionGroup(text, [ValueError(text)])


async def _no_text(text: str) -> Any:
    return None


@pytest.mark.parametrize("scrubber", [_raises, _group, _no_text])
async def test_a_scrubber_that_fails_means_no_text(
    tmp_path: Path, scrubber: Any, caplog: pytest.LogCaptureFixture
) -> None:
    host = FakeHost()
    async with serving(tmp_path, host, scrubber=scrubber) as server:
        assert await ask(server, "POST", "/log", entry(SECRET)) == (200, {})
        assert [one.text for one in host.entries] == [None]
        assert server.statistics().log.withheld == 1
    assert SECRET not in caplog.text


async def test_a_scrubber_that_hangs_is_answered_without(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host, scrubber=never, limits=limits(answer_s=0.05)) as server:
        assert (await ask(server, "POST", "/log", entry(SECRET)))[0] == 504
        assert not server.log.after(0)


async def test_meta_that_is_no_object_after_scrubbing_is_dropped(tmp_path: Path) -> None:
    async def cut(text: str) -> str:
        return text[:9]

    async with serving(tmp_path, scrubber=cut) as server:
        await ask(server, "POST", "/log", entry(meta={"a": "bcdefgh"}))
        ((_, kept),) = server.log.after(0)
        assert (kept.text, kept.meta, kept.clean) == ("Hello", None, False)


async def test_the_ring_is_bounded_in_number_and_in_characters() -> None:
    log = SeenLog(scrub, HostLimits(log_entries=3, log_characters=100))
    for at in range(5):
        await log.take(LogBody(type="x", origin=SITE, text=str(at), tokens=1, at=1.0), SITE, 1)
    assert [(number, one.text) for number, one in log.after(0)] == [(3, "2"), (4, "3"), (5, "4")]
    assert [number for number, _ in log.after(4)] == [5]
    await log.take(LogBody(type="x", origin=SITE, text="y" * 70, tokens=1, at=1.0), SITE, 1)
    assert [number for number, _ in log.after(0)] == [6]
    await log.take(LogBody(type="x", origin=SITE, text="y" * 200, tokens=1, at=1.0), SITE, 1)
    assert log.after(0) == []
    assert log.counts == LogCounts(taken=7, dropped=7)
    assert log._characters == 0


async def test_a_screen_can_wait_for_the_next_entry(tmp_path: Path) -> None:
    seen: list[str | None] = []

    async with serving(tmp_path, scrubber=scrub) as server, trio.open_nursery() as nursery:

        async def screen() -> None:
            last = 0
            while True:
                await server.log.wait(last)
                for number, one in server.log.after(last):
                    last = number
                    seen.append(one.text)

        nursery.start_soon(screen)
        for text in ("a", "b"):
            await ask(server, "POST", "/log", entry(text))
            await until(lambda text=text: seen and seen[-1] == text)
        nursery.cancel_scope.cancel()
    assert seen == ["a", "b"]


async def test_when_it_was_in_both_of_the_ways_that_engines_write_it(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        for at in (
            1_800_000_000_000,
            1_800_000_000_000.5,
            "2027-01-15T08:00:00Z",
            "2027-01-15T09:00:00+01:00",
        ):
            assert (await ask(server, "POST", "/log", entry(at=at)))[0] == 200
        assert {one.at_ms for one in host.entries} == {1_800_000_000_000}
    assert milliseconds("2027-01-15T08:00:00") == 1_800_000_000_000
    with pytest.raises(ValueError, match="isoformat"):
        milliseconds("tomorrow")
    assert milliseconds("0001-01-01T00:00:00+23:59") == 0


async def test_an_entrys_own_words_cannot_steer_a_terminal(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        await ask(server, "POST", "/log", entry(type="a\x1b[2J\u202e", origin="about:blank"))
        assert (host.entries[0].type, host.entries[0].origin) == ("a\ufffd[2J\ufffd", "null")
