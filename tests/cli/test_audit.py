"""`tabwarden audit`, as a user runs it; what needs no process of its own is asked of its functions."""

import errno
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from tabwarden.errors import AuditUnavailable, ConfigurationError, HostReason
from tabwarden_adapters.audit import (
    AuditLogDamaged,
    LogReader,
    ProofRefused,
    durable_audit_log,
    parse_head,
    parse_pins,
    read_records,
)
from tabwarden_adapters.audit.chain import GENESIS, seal_line
from tabwarden_adapters.cli import audit_tail, audit_work
from tabwarden_adapters.cli.audit_files import AuditFiles
from tabwarden_adapters.cli.plain import plain, plain_json
from tabwarden_adapters.cli.serve import _Teller
from tabwarden_adapters.cli.settings import load_settings

from tests.audit.signed import rechain, run
from tests.audit.support import FaultyFiles, denied, fill, segments
from tests.cli.running import LIMIT_S, environment, tabwarden

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
EVIL = "\x1b]0;x\x07\x9b2J\u202e\x7f\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    trio.run(run, tmp_path / "log", 6)
    return tmp_path / "log"


def evil_log(directory: Path) -> None:
    """By somebody who can write the folder, and wants to write to the reader's terminal."""
    text = (
        json.dumps(EVIL, ensure_ascii=False)
        .replace("\n", "\\n")
        .replace("\x1b", "\\u001b")
        .replace("\x07", "\\u0007")
    )
    members = (
        f'"type":"agent","wall_ms":{10**17},"agent":{{"outcome":{text},"rule":{text}}},"x":{{{text}:{text}}}'
    )
    first, digest = seal_line(1, GENESIS, members.encode())
    second, _ = seal_line(2, digest, f'"type":{text},{text}:{{{text}:{text}}}'.encode())
    directory.mkdir(mode=0o700)
    path = directory / "audit-0000000000000001.jsonl"
    path.write_bytes(first + second)
    path.chmod(0o600)


def test_a_day_with_the_command(tmp_path: Path, log: Path) -> None:
    at = ("--audit", str(log))
    pins, proof, head = (tmp_path / name for name in ("pins.json", "proof.json", "head.txt"))
    pins.write_text(tabwarden(tmp_path, "audit", "keys", *at).out)
    head.write_text(audit_work.head(log)["head"])
    proof.write_text(json.dumps(audit_work.prove(log, 3)))
    good = tabwarden(tmp_path, "audit", "verify", *at, "--keys", str(pins), "--known-head", str(head))
    assert (good.status, good.result["ok"], good.result["keys"]) == (0, True, "pinned")
    assert (good.result["first"], good.result["last"], good.result["signed_through"]) == (1, 7, 7)
    assert audit_work.verify_proof(proof, pins)["record"]["seq"] == 3
    exported = tabwarden(tmp_path, "audit", "export", "--format", "jsonl", *at)
    assert exported.out.encode() == segments(log)[0].read_bytes()

    rechain(log, but=4)
    bad = tabwarden(tmp_path, "audit", "verify", *at)
    assert (bad.status, bad.result["ok"], bad.result["fault"]["kind"]) == (1, False, "rewritten")
    assert "records 1 to 7" in bad.result["fault"]["text"]


def test_a_mistake_is_one_typed_line(tmp_path: Path) -> None:
    done = tabwarden(tmp_path, "audit", "verify", "--audit", str(tmp_path / "absent"))
    assert (done.status, done.failure["code"], done.out) == (1, "configuration", "")
    assert "give its folder with --audit" in done.failure["message"]


def test_damage_ends_an_export_with_its_place(log: Path) -> None:
    path = segments(log)[0]
    path.write_bytes(path.read_bytes().replace(b'"r3"', b'"r9"'))
    lines = audit_work.export(log, "jsonl")
    got = []
    with pytest.raises(AuditLogDamaged, match="line 5"):
        got.extend(lines)
    for work in (audit_work.head, audit_work.keys):
        with pytest.raises(AuditLogDamaged, match="altered"):
            work(log)


def test_what_is_asked_wrongly(tmp_path: Path, log: Path) -> None:
    absent, unsigned = tmp_path / "absent", tmp_path / "unsigned"
    trio.run(fill, unsigned, 1)
    proof, foreign = tmp_path / "proof", tmp_path / "foreign"
    proof.write_text(json.dumps(audit_work.prove(log, 1)))
    foreign.write_text(
        json.dumps({"format": "tabwarden-audit-pins-v1", "keys": [{"key_id": "0" * 96, "since": 1}]})
    )
    (tmp_path / "empty").mkdir(mode=0o700)
    mistakes = [
        (lambda: list(audit_work.export(log, "\x1bxml")), "is not one of: cef, ecs, jsonl"),
        (lambda: audit_work.verify(log, "7", None), "cannot read 7"),
        (lambda: audit_work.verify(log, str(proof), None), "larger than 4 KiB"),
        (lambda: audit_work.verify(log, None, absent), "cannot read"),
        (lambda: audit_work.verify(log, None, proof), "unknown field"),
        (lambda: audit_work.prove(log, 0), "counted from 1"),
        (lambda: audit_work.prove(log, 8), "not signed yet"),
        (lambda: audit_work.prove(unsigned, 1), "no checkpoint"),
        (lambda: audit_work.keys(unsigned), "is not signed"),
        (lambda: audit_work.head(tmp_path / "empty"), "no record yet"),
        (lambda: audit_work.head(absent), "there is no audit log"),
        (lambda: audit_work.verify_proof(proof, None), "--keys"),
    ]
    for ask, words in mistakes:
        with pytest.raises(ConfigurationError, match=words) as caught:
            ask()
        assert str(caught.value).isprintable()
    with pytest.raises(ProofRefused, match="not among those noted"):
        audit_work.verify_proof(proof, foreign)
    report = audit_work.verify(log, None, foreign)
    assert (report["ok"], report["fault"]["kind"]) == (False, "keys-not-pinned")
    assert audit_work.verify(log, f"7:{'0' * 96}", None)["fault"]["kind"] == "head-missing"
    assert audit_work.verify(log, None, None)["note"] is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"format":"x","keys":[]}',
        b'{"format":"tabwarden-audit-pins-v1"}',
        b'{"format":"tabwarden-audit-pins-v1","keys":[{"key_id":"00","since":1}]}',
        b'{"format":"tabwarden-audit-pins-v1","keys":[{"key_id":"%b","since":0}]}' % (b"0" * 96),
        b'{"format":"tabwarden-audit-pins-v1","keys":[],"head":{"sequence":0,"hash":"0"}}',
        b'{"format":"tabwarden-audit-pins-v1","keys":[],"\\u001b[2J\\u202e":0}',
        b'{"format":"tabwarden-audit-pins-v1","keys":[],"keys":[]}',
    ],
)
def test_what_is_no_file_of_pins(data: bytes) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_pins(data)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["", "1", "1:", f"-1:{'0' * 96}", f"0:{'0' * 96}", f"1:{'g' * 96}", "²:00"])
def test_what_is_no_head(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_head(text)


def test_no_control_character_reaches_a_terminal(tmp_path: Path) -> None:
    evil_log(tmp_path / "log")
    for record in read_records(tmp_path / "log"):
        assert audit_tail.describe(record).plain.isprintable()
    reading, writing = os.pipe()
    audit_tail.tail(tmp_path / "log", 10, follow=False, out=writing, for_people=False)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    assert text.replace("\n", "").isprintable()
    assert len([json.loads(line) for line in text.splitlines()]) == 2
    assert plain(EVIL).isprintable()
    assert plain({EVIL: EVIL}).isprintable()
    assert plain("Grüße") == "Grüße"
    written = plain_json(json.dumps({EVIL: EVIL + "é\U000e0001\ud800"}, ensure_ascii=False))
    assert written.isprintable()
    assert json.loads(written) == {EVIL: EVIL + "é\U000e0001\ud800"}


def test_on_a_terminal(tmp_path: Path) -> None:
    evil_log(tmp_path / "log")
    master, slave = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "tabwarden_adapters.cli",
        "audit",
        "tail",
        "--audit",
        str(tmp_path / "log"),
    ]
    process = subprocess.Popen(command, stdout=slave, stderr=slave, env=environment(tmp_path))
    os.close(slave)
    seen = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not data:
            break
        seen += data
    os.close(master)
    assert process.wait(LIMIT_S) == 0
    text = seen.decode()
    assert "\x07" not in text
    assert "\x9b" not in text
    assert "\u202e" not in text
    assert "\x1b]" not in text
    assert "\\u001b]0;x" in text


class Following:
    """`audit tail --follow`, with its output in a pipe."""

    def __init__(self, home: Path, log: Path) -> None:
        command = [sys.executable, "-m", "tabwarden_adapters.cli", "audit", "tail", "-f", "-n", "1"]
        self.process = subprocess.Popen(
            [*command, "--audit", str(log)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home),
        )
        assert self.process.stdout is not None
        self.out = self.process.stdout

    def line(self) -> dict[str, object]:
        assert select.select([self.out], [], [], LIMIT_S)[0], "no line came"
        line: dict[str, object] = json.loads(self.out.readline())
        return line

    def ended(self) -> tuple[int, bytes]:
        assert self.process.stderr is not None
        status = self.process.wait(LIMIT_S)
        said = self.process.stderr.read()
        self.process.stderr.close()
        self.out.close()
        return status, said


async def test_following_ends_by_sigint_and_by_a_closed_pipe(tmp_path: Path) -> None:
    async with durable_audit_log(tmp_path / "log") as log:
        log.note(denied("first"))
        await log.flush()
        by_signal, by_pipe = (Following(tmp_path, tmp_path / "log") for _ in range(2))
        for one in (by_signal, by_pipe):
            assert (await trio.to_thread.run_sync(one.line))["seq"] == 1
        log.note(denied("second"))
        await log.flush()
        for one in (by_signal, by_pipe):
            assert (await trio.to_thread.run_sync(one.line))["request_id"] == "second"
        by_signal.process.send_signal(signal.SIGINT)
        by_pipe.out.close()  # nothing more is recorded: it has to notice by itself
        for one in (by_signal, by_pipe):
            assert await trio.to_thread.run_sync(one.ended) == (0, b"")


def test_a_reader_that_does_not_read_cannot_hold_up_sigint(tmp_path: Path) -> None:
    trio.run(fill, tmp_path / "log", 300)
    reading, writing = os.pipe()

    async def follow() -> None:
        lines = audit_tail._Lines(LogReader(tmp_path / "log"), tmp_path / "log", writing, for_people=False)
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(audit_tail._follow, lines)
                await trio.to_thread.run_sync(lambda: select.select([reading], [], [], LIMIT_S))
                os.kill(os.getpid(), signal.SIGINT)

    trio.run(follow)
    os.close(reading)
    os.close(writing)


async def test_serve_says_why_nothing_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> None:
        raise OSError(errno.EIO, "Input/output error")

    tell, files = _Teller(), FaultyFiles()
    tell(HostReason.AUDIT_UNAVAILABLE)
    async with durable_audit_log(tmp_path / "log", files=files, on_failure=tell) as log:
        tell.audit = log
        tell(HostReason.ADAPTER_FAILED)
        files.before_sync = refuse
        log.note(denied())
        with pytest.raises(AuditUnavailable):
            await log.flush()
    assert [json.loads(line) for line in capsys.readouterr().err.splitlines()] == [
        {"broker": "audit-unavailable"},
        {"broker": "adapter-failed"},
        {
            "broker": "audit-unavailable",
            "why": "the audit log is broken: syncing failed (EIO); "
            "records are refused until it is opened anew",
        },
    ]


def test_settings(tmp_path: Path) -> None:
    file = tmp_path / "tabwarden.toml"
    file.write_text('audit = "log"\n[audit_files]\nsegment_hours = 24\nkeep_days = 400\nkeep_segments = 3\n')
    settings = load_settings(file)
    rules = settings.audit_files.rules()
    assert rules.segment_ms == 24 * 3_600_000
    assert rules.segment_bytes == 64 * 1024 * 1024
    assert (rules.retention.age_ms, rules.retention.total_bytes, rules.retention.segments) == (
        400 * 24 * 3_600_000,
        None,
        3,
    )
    assert AuditFiles().rules().retention.keeps_all
    assert audit_work.log_folder(None, file) == tmp_path / "log"
    assert audit_work.log_folder(Path("elsewhere"), file) == Path("elsewhere").absolute()
    (example,) = re.findall(r"^```toml\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    file.write_text(example)
    assert load_settings(file).audit_files.rules().retention.segments == 100
    file.write_text("[audit_files]\nkeep_days = 0\n")
    with pytest.raises(ConfigurationError, match="keep_days"):
        load_settings(file)
