import os

import pytest

from tests.observability.collector import Collector


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    """No test sees the developer's own OTEL_* variables or proxies."""
    for name in list(os.environ):
        if name.startswith("OTEL_") or name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def collector():
    with Collector() as running:
        yield running
