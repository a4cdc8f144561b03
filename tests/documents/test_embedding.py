"""The documents' code runs as written."""

import re
from pathlib import Path
from typing import Any

import pytest
import trio
from tabwarden.actions import Arguments, Navigate, Read
from tabwarden.errors import ActionError, Code

from tests.browser.agent import Call
from tests.browser.host_contract.embedder import own_chromium

ROOT = Path(__file__).resolve().parents[2]


def code_blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def example(number: int) -> dict[str, Any]:
    """What one of the embedding examples defines."""
    namespace: dict[str, Any] = {"__name__": "example"}
    text = code_blocks("docs/embedding.md", "python")[number]
    exec(compile(text, "docs/embedding.md", "exec"), namespace)  # noqa: S102 - our own document
    return namespace


async def test_the_embedding_example_runs_as_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = example(0)
    await names["main"](tmp_path / "audit")
    assert "'title': 'Start'" in capsys.readouterr().out


async def test_the_example_of_an_own_browser_runs_as_written(tmp_path: Path) -> None:
    with trio.fail_after(100):
        async with own_chromium(tmp_path / "profile") as chromium, trio.open_nursery() as nursery:
            channels = [await chromium.open_tab()]
            adapters = await example(1)["my_actions"](nursery, channels, {"example.test"})
            (tab,) = await adapters["sessions"](Arguments(), Call("sessions"))
            assert (tab.title, tab.foreground) == ("", True)
            for name, arguments in {
                "read": Read(),
                "navigate": Navigate(url="https://elsewhere.test/"),
            }.items():
                with pytest.raises(ActionError) as caught:
                    await adapters[name](arguments, Call(name))
                assert caught.value.code is Code.DESTINATION_DENIED
            nursery.cancel_scope.cancel()


def test_the_embedding_examples_fit_on_a_screen() -> None:
    for text in code_blocks("docs/embedding.md", "python"):
        assert len(text.splitlines()) <= 44


def test_the_readme_names_both_commands_on_its_first_screen() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:40])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def test_every_link_between_documents_leads_somewhere() -> None:
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+\.md)\)", document.read_text()):
            assert (document.parent / target).is_file(), f"{document.name} links to {target}"


def test_the_policy_example_is_valid(tmp_path: Path) -> None:
    from tabwarden_adapters.cli.settings import load_settings
    from tabwarden_adapters.policy import StaticPolicy

    (example,) = code_blocks("docs/policy.md", "toml")
    file = tmp_path / "tabwarden.toml"
    file.write_text(example)
    settings = load_settings(file)
    StaticPolicy({"scopes": settings.scopes, "allowed_hosts": settings.allowed_hosts})


def test_the_protocol_document_names_every_code_that_a_reply_may_carry() -> None:
    from tabwarden.errors import STATUS, Code

    rows = dict(re.findall(r"^\| (\d{3}) \| (.*) \|$", (ROOT / "docs/protocol.md").read_text(), re.MULTILINE))
    never_sent = {Code.REVOKED, Code.DISCONNECTED}
    for code, status in STATUS.items():
        if code not in never_sent:
            assert f"`{code.value}`" in rows[str(status)], code
