# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer report A... -- B...`: the page of two groups of runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import panel_runs
import pytest
from ktrxer.cli import main
from ktrxer.figures.delays import round_trips
from ktrxer.panels import comparison
from ktrxer.store import open_run
from ktrxer.view import report


def data_of(text: str) -> Any:
    at = text.index("{", text.index('id="report"'))
    return json.JSONDecoder().raw_decode(text, at)[0]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("groups")
    for name, delay in (("fifo", 60), ("codel", 5)):
        (root / name).mkdir()
        for i in (1, 2, 3):
            panel_runs.run(root / name, f"{name}-{i}", title=name, up_ms=delay + i, seed=i, seconds=12)
    return root


def test_a_report_of_two_groups(groups: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--json", str(groups / "fifo"), "--", str(groups / "codel"), "-o", "x.html"]) == 0
    assert [one["title"] for one in json.loads(capsys.readouterr().out)["runs"]] == ["fifo", "codel"]
    data = data_of((here / "x.html").read_text("utf-8"))
    assert data["title"] == "codel against fifo: 3 and 3 runs"
    (table,) = (one for one in data["overview"]["tables"] if one["title"] == "Differences: codel against fifo")
    row = next(row for row in table["rows"] if row[0] == "UDP round trip, loaded, p50 (ms)")
    assert float(row[3]) == pytest.approx(-55, abs=2) and re.fullmatch(r"-[\d.]+ to -[\d.]+", row[4]) and row[6] == "lower"
    assert data["overview"]["sentences"][0].startswith("delay that load adds to the p50: codel is 5")
    text = (here / "x.html").read_text("utf-8")
    assert text.index("delay that load adds to the p50: codel is") < text.index('id="report"')  # also without JavaScript
    panels = {one["key"]: one for one in data["overview"]["panels"]}
    assert list(panels)[:3] == ["differences", "group-cdf", "group-qq"] and {"values-ms", "latency"} <= panels.keys()
    assert [one["label"] for one in panels["group-cdf"]["series"]] == ["fifo", "codel"]
    # Of each group the run in the middle.
    assert [dict(run["facts"])["file"] for run in data["runs"]] == ["fifo-2.ktrxer", "codel-2.ktrxer"]


def test_the_distributions_of_two_groups_are_those_of_their_runs(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "QUANTILES", 200)
    fifo, codel = ([open_run(path) for path in sorted((groups / name).iterdir())] for name in ("fifo", "codel"))
    kind, a = comparison.round_trips_of(fifo)
    assert kind == ("UDP", "load")
    _, b = comparison.round_trips_of(codel, kind)
    everything = np.concatenate([round_trips(run, *kind) for run in fifo])
    assert len(a) < len(everything) and np.quantile(a, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(everything, [0.1, 0.5, 0.9]), rel=0.01)
    cdf, qq = comparison.distributions(("fifo", "codel"), kind, a, b)
    assert cdf.series[0].x[len(cdf.series[0].x) // 2] == pytest.approx(np.median(a), abs=2)
    assert (qq.series[0].y - qq.series[0].x).mean() == pytest.approx(-55, abs=2)
    assert comparison.distributions(("fifo", "codel"), kind, a, np.empty(0)) == []
    assert len(comparison.round_trips_of(codel, ("ICMP", "load"))[1]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["fifo", "--"], 2, "no RUN behind `--`"),
        (["--names", "A,B", "fifo/fifo-1.ktrxer"], 2, "--names: only two groups"),
        (["--names", "A", "fifo", "--", "codel"], 2, "expected two names"),
        (["fifo", "--", "empty"], 1, "group 'B' has no run to compare"),
        (["fifo", "--", "gone.ktrxer"], 1, "No such file"),
        (["fifo", "--", "other/rtt-1.ktrxer", "other/rtt-2.ktrxer", "codel/codel-1.ktrxer", "codel/codel-2.ktrxer"], 2, "mixes runs of different test"),
    ],
)  # fmt: skip
def test_groups_that_cannot_be_compared_are_one_line(groups: Path, here: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, said: str) -> None:
    for name in ("fifo", "codel"):
        (here / name).symlink_to(groups / name)
    for name in ("empty", "other"):
        (here / name).mkdir()
    for i in (1, 2):
        panel_runs.run(here / "other", f"rtt-{i}", test="rtt_fair", seconds=9)
    assert main(["report", "-o", "x.html", *words]) == status
    assert said in capsys.readouterr().err and not (here / "x.html").exists()


def test_groups_of_one_run_have_a_report_without_intervals(groups: Path, here: Path) -> None:
    assert main(["report", "-o", "x.html", str(groups / "fifo" / "fifo-1.ktrxer"), "--", str(groups / "codel" / "codel-1.ktrxer")]) == 0
    (table,) = (one for one in data_of((here / "x.html").read_text("utf-8"))["overview"]["tables"] if one["title"].startswith("Differences"))
    assert {row[4] for row in table["rows"]} == {report.NONE} and {row[6] for row in table["rows"]} == {"too few runs"}
