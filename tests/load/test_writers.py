"""The report's files, read back."""

import base64
import csv
import hashlib
import io
import json
import re
import stat
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from PIL import Image
from tabwarden.errors import ConfigurationError
from tabwarden_adapters.load import (
    Kind,
    Run,
    calls_csv,
    load_page,
    load_picture,
    put,
    report_json,
    report_of,
    require_places,
)
from tabwarden_adapters.load.charts import Chart, Scale

from tests.load.support import run_of, sample
from tests.observability.test_page import HOSTILE, read

PRINCIPALS = ("alice", "bob")


def some_run(principals: tuple[str, ...] = PRINCIPALS, code: str = "policy-denied") -> Run:
    calls = [sample(second / 10, 0.02 + second / 1000, agent=second % 2) for second in range(80)]
    calls.append(sample(8, 0.5, Kind.LIMITED, agent=1, code="rate-limited"))
    calls.append(sample(8.2, 0.5, Kind.REFUSED, agent=0, code=code))
    lost = sample(9, 0.9, Kind.TRANSPORT, agent=0, code="unreachable", phases=(0.5, None, None, None, None))
    calls.append(lost._replace(asked=None, taken=None))
    return run_of(calls, principals=principals)


def test_json_has_all_of_the_report() -> None:
    report = report_of(some_run(), {"audit": [1_000_000]})
    data = json.loads(report_json(report))
    assert data["format"] == "tabwarden-load-1"
    assert data["counts"]["accepted"] == 80
    assert data["counts"]["codes"] == report.counts.codes
    assert data["latency"]["accepted"]["from_sending"]["count"] == 80
    assert data["limiter"] == "untried"
    assert [one["id"] for one in data["principals"]] == ["alice", "bob"]
    assert data["principals"][0]["limiter"]["most"] == report.principals[0].limiter.most == 40
    assert data["broker_phases"]["audit"]["p50_ms"] == 1.0
    assert data["fairness_principals"]["jain"] == 1.0


def test_csv_has_every_call() -> None:
    run = some_run()
    rows = list(csv.DictReader(io.StringIO(calls_csv(run.samples, run.principals).decode())))
    assert len(rows) == 83
    assert rows[3] == {
        "agent": "1",
        "principal": "bob",
        "outcome": "accepted",
        "code": "ok",
        "intended_s": "0.300000",
        "begun_s": "0.300000",
        "asked_s": "0.300000",
        "ended_s": "0.323000",
        "connecting_ms": "1.000",
        "challenge_ms": "2.000",
        "sealing_ms": "3.000",
        "waiting_ms": "3.000",
        "opening_ms": "1.000",
    }
    assert [rows[-1][name] for name in ("outcome", "asked_s", "connecting_ms", "challenge_ms")] == [
        "transport",
        "",
        "500.000",
        "",
    ]


def test_what_is_kept_of_a_call_is_what_was_added() -> None:
    run = some_run()
    again = run_of(list(run.samples), principals=PRINCIPALS)
    assert list(again.samples) == list(run.samples)
    assert len(again.samples) == 83


def page_of(run: Run) -> str:
    return load_page(report_of(run, {"audit": [1_000_000]}), run.samples, run.principals)


def test_the_page_shows_the_run_and_fetches_nothing() -> None:
    page = page_of(some_run())
    reader = read(page)
    values = dict(reader.attributes)
    digest = base64.b64encode(hashlib.sha256(reader.style.encode()).digest()).decode()
    policies = [value for _, value in reader.attributes if value and value.startswith("default-src")]
    assert policies == [
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    ]
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert "script" not in reader.tags
    assert not {"src", "href", "style", "xlink:href", "action", "srcset"} & set(values)
    assert not [name for name in values if name.startswith("on")]
    assert reader.tags.count("svg") == 4
    for said in ("2 agents of 2 principals", "rate-limited", "not tried", "alice", "audit", "2027-01-15"):
        assert said in reader.text, said
    # 80 accepted calls, in as many pieces as they ended in.
    titles = re.findall(r"<title>(\d+) accepted until", page)
    assert sum(int(title) for title in titles) == 80


def test_every_text_of_the_page_is_text() -> None:
    harmless, hostile = (
        read(page_of(some_run(principals=(name, "bob"), code=name))) for name in ("alice", HOSTILE)
    )
    assert hostile.tags == harmless.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in harmless.attributes]
    assert hostile.style == harmless.style


def test_a_page_of_nothing_and_of_one_call() -> None:
    assert "0.0 accepted calls a second" in page_of(run_of([]))
    assert "p99" in page_of(run_of([sample(0)]))


def test_a_scale_and_its_ticks() -> None:
    scale = Scale(0, 60, 100, 0)
    assert [scale(value) for value in (0, 30, 60)] == [100, 50, 0]
    assert scale.ticks() == [0, 20, 40, 60]
    logarithmic = Scale(0.5, 200, 0, 1, logarithmic=True)
    assert logarithmic.ticks() == [1, 10, 100]
    assert logarithmic(10) == pytest.approx(0.5)
    assert Scale(0, 0, 0, 1).ticks() == [0]


def test_bars_are_stacked_and_lines_have_gaps() -> None:
    parent = ElementTree.Element("div")
    chart = Chart(parent, x=(0, 2), y=(0, 10), x_title="s", y_title="n")
    chart.bars([1, 2], [[(4, "accepted", "4"), (6, "failed", "6")], [(0, "accepted", "none")]])
    lower, upper = parent.findall(".//rect")
    assert float(upper.get("y", "")) + float(upper.get("height", "")) == pytest.approx(
        float(lower.get("y", ""))
    )
    chart.line([(0, 1), (1, None), (2, 3)], "first", "t")
    (path,) = parent.findall(".//path")
    assert path.get("d", "").count("M") == 2


def test_the_picture_is_a_picture() -> None:
    run = some_run()
    with Image.open(io.BytesIO(load_picture(report_of(run), run.samples, run.principals))) as image:
        assert image.format == "PNG"
        assert image.size == (1100, 990)
        shown = {pixel for _, pixel in image.convert("RGB").getcolors(2**24) or []}
    assert {(0x2F, 0x7D, 0x4F), (0xB7, 0x79, 0x1F)} <= shown


def test_without_matplotlib_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from tabwarden_adapters.load import require_plotting\n"
        "from tabwarden.errors import ConfigurationError\n"
        "try: require_plotting()\n"
        "except ConfigurationError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'tabwarden[plot]'" in done.stdout


def test_files_are_whole_for_this_user_only_and_replace_links(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    place = tmp_path / "report.json"
    place.symlink_to(elsewhere)
    put(place, b"new")
    assert (elsewhere.read_text(), place.read_bytes()) == ("kept", b"new")
    assert stat.S_ISREG(place.lstat().st_mode)
    assert stat.S_IMODE(place.lstat().st_mode) == 0o600
    with pytest.raises(ConfigurationError, match="cannot write"):
        put(tmp_path, b"")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["elsewhere", "report.json"]


def test_where_no_file_can_be_is_said_before_the_run(tmp_path: Path) -> None:
    require_places([tmp_path / "a", tmp_path / "b"])
    for wrong in (tmp_path, tmp_path / "absent" / "a", Path(), Path("/")):
        with pytest.raises(ConfigurationError, match="cannot write"):
            require_places([wrong])
    with pytest.raises(ConfigurationError, match="same name"):
        require_places([tmp_path / "a", tmp_path / "a"])
    assert list(tmp_path.iterdir()) == []
