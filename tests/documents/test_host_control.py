"""docs/host-control.md: its example runs as written, and its tables are the code's."""

import re
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden_adapters.host import (
    RISKS,
    Answer,
    ApprovalKind,
    ErrorCode,
    HostPolicy,
    HostProblem,
    LogEntry,
    SiteMode,
)
from tabwarden_adapters.host.errors import ERRORS

from tests.documents.test_embedding import ROOT, code_blocks

DOCUMENT = "docs/host-control.md"
SITE = "https://example.test"


def rows(first: str) -> list[list[str]]:
    """The rows of the table whose heading starts with `first`."""
    text = (ROOT / DOCUMENT).read_text()
    table = re.search(rf"^\| {first} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in table[1].splitlines()]


async def test_the_example_of_a_host_runs_as_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = code_blocks(DOCUMENT, "python")
    assert len(text.splitlines()) <= 40
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(text, DOCUMENT, "exec"), names)  # noqa: S102 - our own document
    questions: list[str] = []

    async def ask(question: str) -> str:
        questions.append(question)
        return "yes"

    home = tmp_path / "home"
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(names["host"], {SITE: "ask"}, ask, home)
            policy = HostPolicy(home, answer_s=10)
            while await policy.site_mode(SITE) is SiteMode.OFF:
                assert policy.problem in (HostProblem.NO_FILE, None)
            assert await policy.site_mode("https://other.test") is SiteMode.OFF
            assert await policy.approve(ApprovalKind.SITE, SITE, "Read the news") is Answer.YES
            assert await policy.wait_for_user("Log in", SITE) is True
            assert "A1" not in await policy.excluded_targets()
            assert await policy.log(LogEntry("page", SITE, "pay with 4111111111111111", 5, 1)) is True
            assert await policy.open_tab(SITE) is False
            nursery.cancel_scope.cancel()
    assert not (home / "host.json").exists()
    assert await policy.site_mode(SITE) is SiteMode.OFF
    assert questions == [
        f"{SITE}: may the agent do this? It says: Read the news",
        f"{SITE}: please do this yourself: Log in",
    ]
    assert "sent to the model: pay with [card]" in capsys.readouterr().out


def test_the_tables_are_the_codes() -> None:
    refusals = {code: int(status) for status, code, _ in rows("status")}
    assert refusals == {code.value: ERRORS[code][0] for code in ErrorCode}
    assert [name for name, _ in rows("problem")] == [problem.name for problem in HostProblem]
    assert rows("risk") == [[row.risk.value, row.kind.value, row.what] for row in RISKS]
