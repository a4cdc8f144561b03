"""`serve` and its clients, on a real Chromium."""

import json
import os
import signal
import stat
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tabwarden_adapters.audit import Pin, Pins, read_records, verify_log

from tests.cli.running import LIMIT_S, serving, tabwarden
from tests.observability.collector import Collector


def chromium_processes(profile_of: int) -> list[str]:
    """Command lines of the processes that `profile_of` started and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "stat").read_text()
        except OSError:
            continue
        if b"tabwarden-chromium-" in command and f" {profile_of} " in environment:
            found.append(command.decode(errors="replace"))
    return found


def test_serve_call_and_stop(tmp_path: Path) -> None:
    with serving(tmp_path, "--scope", "sessions", "--scope", "read") as (ready, process):
        assert ready["ready"] is True
        descriptor = Path(ready["connection"])
        assert stat.S_IMODE(descriptor.stat().st_mode) == 0o600
        assert b"token" not in descriptor.read_bytes()

        listed = tabwarden(tmp_path, "sessions")
        assert listed.status == 0
        assert [tab["foreground"] for tab in listed.result] == [True]

        denied = tabwarden(tmp_path, "call", "navigate", "--arg", "url=http://127.0.0.1:1/")
        assert denied.status == 1
        assert denied.failure["code"] == "policy-denied"
        assert denied.failure["status"] == 403

        piped = tabwarden(tmp_path, "call", "--request", "-", text='{"action":"sessions","args":{}}')
        assert piped.result == listed.result

        examined = tabwarden(tmp_path, "doctor", "--json")
        found = {finding["check"]: finding for finding in examined.result}
        assert found["connection"]["ok"] is True

        second = tabwarden(tmp_path, "serve", "--headless")
        assert second.status == 1
        assert second.failure["code"] == "configuration"

        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT_S)
        assert process.returncode == 0
        assert not descriptor.exists()
        assert chromium_processes(process.pid) == []
    found = verify_log(ready["audit"], pins=Pins((Pin(**ready["audit_keys"]),)))
    assert found.ok, found.fault
    assert found.signed == found.records
    outcomes = [
        record.members["agent"]["outcome"]
        for record in read_records(ready["audit"])
        if "agent" in record.members
    ]
    assert outcomes == ["authorized", "completed", "denied", "authorized", "completed"]


def test_a_killed_brokers_descriptor_opens_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, "--scope", "sessions") as (ready, process):
        os.kill(process.pid, signal.SIGKILL)
        process.wait(LIMIT_S)
        left = tabwarden(tmp_path, "sessions")
        assert left.status == 1
        assert left.failure["code"] == "unreachable"
    # The next broker takes over the folder and the log where the killed one left them.
    with serving(tmp_path, "--scope", "sessions") as (again, _):
        assert again["connection"] == ready["connection"]
        assert tabwarden(tmp_path, "sessions").status == 0


def test_no_secret_is_on_a_command_line_or_in_the_output(tmp_path: Path) -> None:
    with serving(tmp_path, "--scope", "sessions") as (ready, process):
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert b"token" not in command
        assert "token" not in json.dumps(ready)


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *_: object) -> None:
        pass


def test_traces_and_metrics_of_a_call_reach_a_collector(tmp_path: Path) -> None:
    site = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=site.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{site.server_port}/"
    try:
        with Collector() as collector:
            variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
            arguments = ("--scope", "navigate", "--allow-host", f"127.0.0.1:{site.server_port}")
            with serving(tmp_path, *arguments, variables=variables) as (_, process):
                went = tabwarden(tmp_path, "call", "navigate", "--arg", f"url={url}")
                assert went.status == 0, went.err
                process.send_signal(signal.SIGTERM)
                assert process.wait(LIMIT_S) == 0
            assert "agent.request" in {span.name for span in collector.spans}
            points = [
                {pair.key: pair.value.string_value for pair in point.attributes}
                for request in collector.metric_requests
                for resource in request.resource_metrics
                for scope in resource.scope_metrics
                for metric in scope.metrics
                if metric.name == "tabwarden.egress.connections"
                for point in metric.sum.data_points
            ]
            assert {"server.address": "127.0.0.1", "tabwarden.egress.outcome": "connected"} in points
    finally:
        site.shutdown()
        site.server_close()
        thread.join()
