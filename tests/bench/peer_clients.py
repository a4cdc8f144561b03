"""What an agent author would use instead, attached to a Chromium that runs already: one kept HTTP connection
each, and nothing between the call and the socket but the standard library."""

import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PLAYWRIGHT_MCP = Path("build/peers/node_modules/@playwright/mcp/cli.js")
CHROMEDRIVER = "chromedriver"
SAID_LINES = 50  # until a peer has said where it listens
END_S = 5


def peers_missing() -> str:
    """Why there is nothing to compare with; empty when there is."""
    lacking = [
        name
        for name, there in (
            ("@playwright/mcp", PLAYWRIGHT_MCP.is_file() and shutil.which("node")),
            (CHROMEDRIVER, shutil.which(CHROMEDRIVER)),
        )
        if not there
    ]
    return f"{' and '.join(lacking)} not installed: run `make bench`" if lacking else ""


class _Peer:
    """A process of the peer's, and a connection to it."""

    def __init__(self, argv: list[str], where: re.Pattern[str]) -> None:
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
        )
        try:
            self.port = self._said(where)
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._end()

    def ask(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> str:
        """One request and its whole answer. Raises `RuntimeError` for any status but success."""
        data = None if body is None else json.dumps(body)
        more = {"Content-Type": "application/json"} if data is not None else {}
        self._connection.request(method, path, data, {**more, **(headers or {})})
        self.answer = self._connection.getresponse()
        text = self.answer.read().decode()
        if not 200 <= self.answer.status < 300:
            raise RuntimeError(f"a peer answered {self.answer.status} to {method} {path}")
        return text

    def _said(self, where: re.Pattern[str]) -> int:
        assert self._process.stdout is not None
        for _ in range(SAID_LINES):
            if found := where.search(self._process.stdout.readline()):
                return int(found[1])
        raise RuntimeError(f"{self._process.args!r} did not say where it listens")

    def _end(self) -> None:
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class PlaywrightMcp(_Peer):
    """Playwright's MCP server over HTTP (Model Context Protocol, streamable HTTP transport)."""

    def __init__(self, debugging_port: int) -> None:
        browser = f"http://127.0.0.1:{debugging_port}"
        argv = ["node", str(PLAYWRIGHT_MCP), "--cdp-endpoint", browser, "--host", "127.0.0.1", "--port", "0"]
        argv += ["--allowed-hosts", "*"]  # it listens on loopback only
        super().__init__(argv, re.compile(r"http://(?:127\.0\.0\.1|localhost):(\d+)"))
        self._headers = {"Accept": "application/json, text/event-stream"}
        self._numbers = iter(range(1, 1_000_000))
        self._method(
            "initialize",
            protocolVersion="2025-03-26",
            capabilities={},
            clientInfo={"name": "tabwarden-bench", "version": "1"},
        )
        self._headers["Mcp-Session-Id"] = self.answer.headers["Mcp-Session-Id"]
        self.ask("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, self._headers)

    def tabs(self) -> str:
        """What it says of the tabs."""
        result = self._method("tools/call", name="browser_tabs", arguments={"action": "list"})
        if result.get("isError"):
            raise RuntimeError("listing tabs failed")
        return str(result["content"][0]["text"])

    def _method(self, method: str, **params: object) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        text = self.ask("POST", "/mcp", message, self._headers)
        for line in _data(text):
            answer = json.loads(line)
            if answer.get("id") == message["id"]:
                result = answer["result"]
                assert isinstance(result, dict)
                return result
        raise RuntimeError(f"no answer to {method}")


def _data(text: str) -> Iterator[str]:
    if text.startswith("{"):
        yield text
    for line in text.splitlines():
        if line.startswith("data:"):
            yield line.removeprefix("data:")


class Chromedriver(_Peer):
    """chromedriver (W3C WebDriver)."""

    def __init__(self, debugging_port: int) -> None:
        super().__init__([CHROMEDRIVER, "--port=0"], re.compile(r"successfully on port (\d+)"))
        options = {"debuggerAddress": f"127.0.0.1:{debugging_port}"}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        self._session = json.loads(self.ask("POST", "/session", wanted))["value"]["sessionId"]

    def show(self, url: str) -> None:
        """Navigate."""
        self.ask("POST", f"/session/{self._session}/url", {"url": url})

    def title(self) -> str:
        """The page's title."""
        return str(json.loads(self.ask("GET", f"/session/{self._session}/title"))["value"])
