"""The environment that README.md and docs/operations.md give does what they say."""

import re
from pathlib import Path

import pytest
from tabwarden_observability import setup_metrics, setup_tracing

ROOT = Path(__file__).resolve().parents[2]
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


def variables(document: str) -> list[tuple[str, str]]:
    """What the last columns of its tables set."""
    rows = [line for line in (ROOT / document).read_text().splitlines() if line.startswith("| ")]
    return re.findall(
        r"`(OTEL_[A-Z_]+)=([^`]+)`", "\n".join(row.rstrip("| ").rpartition("|")[2] for row in rows)
    )


@pytest.mark.parametrize("document", ["README.md", "docs/operations.md"])
async def test_each_row_exports_what_it_says(document, monkeypatch):
    found = variables(document)
    assert {name for name, _ in found} >= {TRACES, "OTEL_METRICS_EXPORTER"}
    for name, value in found:
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            patch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", "0")
            tracing, metrics = setup_tracing(), setup_metrics()
            told = (tracing.exporting, metrics.exporting, metrics.scrape_port is not None)
            if name == "OTEL_EXPORTER_OTLP_ENDPOINT":
                # Both, to a receiver that is not there: nothing waits for it.
                assert told == (True, True, False)
            else:
                assert told == (name == TRACES, name != TRACES, name != TRACES)
            await metrics.shutdown(timeout=0.2)
            await tracing.shutdown(timeout=0.2)


def test_addresses_are_whole_ones():
    """The standard takes the address for one signal as it is, and adds to the one for all of them."""
    for document in ("README.md", "docs/operations.md"):
        for name, value in variables(document):
            if name.startswith("OTEL_EXPORTER_OTLP"):
                assert value.endswith("/v1/traces") == (name == TRACES)
