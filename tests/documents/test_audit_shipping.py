"""What docs/audit-shipping.md tells people to do is possible."""

import re
import shlex
from pathlib import Path

import pytest
from tabwarden_adapters.audit import EXPORTS, export_in
from tabwarden_adapters.audit.shipping import SD_ID, parse_address
from tabwarden_adapters.cli.settings import load_settings

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "audit-shipping.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_settings(tmp_path: Path) -> None:
    (example,) = blocks("toml")
    file = tmp_path / "tabwarden.toml"
    file.write_text(example)
    assert load_settings(file).audit_export.namespace == "safetynet"


def test_commands() -> None:
    commands = [shlex.split(line[2:]) for block in blocks("console") for line in block.splitlines()]
    shipped = [words for words in commands if "ship" in words]
    assert len(shipped) == 4
    for words in shipped:
        parse_address(words[words.index("--to") + 1])
    for words in commands:
        if "--format" in words:
            export_in(words[words.index("--format") + 1])


def test_names() -> None:
    assert SD_ID in TEXT
    for name in EXPORTS:
        assert f"`{name}`" in TEXT


@pytest.mark.parametrize("block", blocks("yaml"))
def test_examples_have_no_tabs(block: str) -> None:
    """YAML allows none."""
    assert "\t" not in block
    assert "audit-*.jsonl" in block or "rfc6587" in block
