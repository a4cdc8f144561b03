"""`tabwarden audit export`, `tail` and `ship` in every format, as a user runs them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.audit import durable_audit_log
from tabwarden_adapters.audit.shipping import OtlpDestination
from tabwarden_adapters.cli import audit_work
from tabwarden_adapters.cli.audit_ship import ShipSettings, default_cursor, destination

from tests.audit.receivers import parse_cef
from tests.audit.support import denied, fill
from tests.audit.syslog_server import syslog_server
from tests.cli.running import LIMIT_S, environment, tabwarden


@contextmanager
def running(home: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tabwarden_adapters.cli", "audit", "ship", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_killed_and_started_again(tmp_path: Path) -> None:
    """At any moment; here twice. Nothing is lost, and an orderly end leaves nothing to send again."""
    folder, cursor = tmp_path / "log", tmp_path / "shipping" / "cursor"
    async with durable_audit_log(folder) as log, syslog_server("unix", tmp_path) as server:
        command = ("--to", server.to, "--format", "cef", "--audit", str(folder), "--cursor", str(cursor))
        with trio.fail_after(LIMIT_S):
            for number in range(1, 3):
                log.note(denied(str(number)))
                await log.flush()
                with running(tmp_path, *command) as process:
                    await server.until(number)
                    process.kill()
                    await trio.to_thread.run_sync(process.wait)
            log.note(denied("3"))
            await log.flush()
            with running(tmp_path, *command) as process:
                await server.until(3)
                process.send_signal(signal.SIGTERM)
                out, said = await trio.to_thread.run_sync(process.communicate)
            assert (process.returncode, out) == (0, b"")
            assert [json.loads(line) for line in said.splitlines()] == [{"shipping": "connected"}]
        assert set(server.sequences) == {1, 2, 3}
        assert json.loads(cursor.read_bytes())["sequence"] == 3
        fields = parse_cef(server.messages[-1].text.decode())[1]
        assert (fields["flexString1"], fields["cs6"]) == ("3", "scopes.not-enabled")


async def test_formats_and_the_namespace_of_the_settings(tmp_path: Path) -> None:
    await fill(tmp_path / "log", 2)
    config = tmp_path / "tabwarden.toml"
    config.write_text('audit = "log"\n[audit_export]\necs_namespace = "safetynet"\n')
    at = ("--config", str(config))

    def asked(*arguments: str) -> list[str]:
        return tabwarden(tmp_path, "audit", *arguments, *at).out.splitlines()

    exported = await trio.to_thread.run_sync(asked, "export", "--format", "ecs")
    assert [json.loads(line)["safetynet"]["agent"]["outcome"] for line in exported] == ["denied", "denied"]
    named = ("tail", "--format", "ecs", "-n", "1", "--ecs-namespace", "other")
    (tailed,) = await trio.to_thread.run_sync(asked, *named)
    assert json.loads(tailed)["other"]["agent"]["rule"] == "scopes.not-enabled"
    lines = [line.decode() for line in audit_work.export(tmp_path / "log", "cef")]
    assert [parse_cef(line.removesuffix("\n"))[1]["externalId"] for line in lines] == ["1", "2"]
    assert audit_work.ecs_namespace(None, config) == "safetynet"
    assert audit_work.ecs_namespace(None, None) == "tabwarden"
    config.write_text('[audit_export]\necs_namespace = "agent"\n')
    with pytest.raises(ConfigurationError, match="cannot be agent"):
        audit_work.ecs_namespace(None, config)


def test_a_mistake_is_one_typed_line(tmp_path: Path) -> None:
    done = tabwarden(tmp_path, "audit", "ship", "--to", "unix:///x", "--audit", str(tmp_path / "absent"))
    assert (done.status, done.failure["code"], done.out) == (1, "configuration", "")
    assert "there is no audit log" in done.failure["message"]


def test_what_is_asked_wrongly(tmp_path: Path) -> None:
    for settings, words in (
        (ShipSettings(to="udp://x:514"), "--to must be"),
        (ShipSettings(to="unix:///x", format="xml"), "is not one of"),
        (ShipSettings(to="unix:///x", ca=tmp_path), "tls:// only"),
        (ShipSettings(to="unix:///x", sd_id="x"), "--sd-id"),
        (ShipSettings(to="unix:///x", format="ecs", namespace="host"), "cannot be host"),
        (ShipSettings(to="otlp", format="ecs"), "--format is not for otlp"),
        (ShipSettings(to="otlp", ca=tmp_path), "--ca is not for otlp"),
        (ShipSettings(to="otlp", sd_id="a@1"), "--sd-id is not for otlp"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            destination(settings)


def test_otlp(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    assert isinstance(destination(ShipSettings(to="otlp")), OtlpDestination)
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with pytest.raises(ConfigurationError, match="OTEL_SDK_DISABLED"):
        destination(ShipSettings(to="otlp"))


def test_each_log_and_destination_has_a_cursor_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    places = {default_cursor(tmp_path / log, to) for log in "ab" for to in ("otlp", "tcp://x:1")}
    assert len(places) == 4
    assert {place.parent for place in places} == {tmp_path / ".local" / "state" / "tabwarden" / "shipping"}
