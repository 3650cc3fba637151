# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of Flent of each test and version, and the public ones of ../shared where they are there: summary, report, the test's plots, import
and export. Figures are compared with an independent computation from the raw values, and exports with the real Flent where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import flent_corpus as corpus
import flent_files as files
import flent_plot_names
import flent_series
import numpy as np
import pytest
from ktrxer.commands import export, importing, summary
from ktrxer.commands.opening import open_any
from ktrxer.panels import plots
from ktrxer.panels.errors import PlotError
from ktrxer.store import Run
from ktrxer.summary import text
from ktrxer.summary.figures import summarise
from ktrxer.summary.model import Summary
from ktrxer.view import report_command

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-flent" / "bin" / "python"
FOLDER = Path(os.environ.get("KTRXER_SHARED") or ROOT.parent / "shared") / "data" / "flent"
PUBLIC = sorted([*FOLDER.glob("*.gz"), *FOLDER.glob("public/*.gz")])
NONE = "the public files of Flent (../shared/data/flent) are not on this machine"
LARGE = 1 << 20  # bytes; larger files are not drawn here
TESTS = sorted(flent_series.SERIES)
QUARTERS = [TESTS[i::4] for i in range(4)]
# Plots of what a file may not have: socket statistics, and several runs.
SOCKETS = {*flent_plot_names.SOCKETS, "tcp_delivery_rate", "all_scaled_delivery"}


def check_probes(run: Run, value: dict[str, Any], made: Summary) -> int:
    """Mean and p50, p99 of the round trips of each series under load. The number of series."""
    load = run.meta.phase("load")
    figures = {one.name: one for one in made.series if one.kind == "latency"}
    zero = 0.0 if value.get("version", 1) == 1 else run.meta.zero.realtime_ns / 1e9
    for name, figure in figures.items():
        inside = [
            ms for t, ms in corpus.round_trips(value, name)
            if load is None or load.from_ns / 1e9 <= t - zero < load.to_ns / 1e9
        ]  # fmt: skip
        lost = int(figure.note.split()[1]) if figure.note else 0
        assert abs(figure.count - len(inside)) <= 1, name
        if not inside:
            continue
        assert figure.mean == pytest.approx(float(np.mean(inside)), rel=0.005), name
        ordered = [*sorted(inside), *[float("inf")] * lost]
        for share, found in ((0.5, figure.p50), (0.99, figure.p99)):
            rank = int(np.ceil(share * len(ordered))) - 1
            low, high = ordered[max(0, rank - 1)], ordered[min(len(ordered) - 1, rank + 1)]
            assert found is not None and low * (1 - 1e-6) <= found <= high * (1 + 1e-6), f"{name} p{100 * share:g}"
    return len(figures)


def check_flows(run: Run, value: dict[str, Any], made: Summary) -> int:
    described = value["metadata"].get("SERIES_META", {})
    load = run.meta.phase("load")
    means: dict[str, float] = {}
    for figure in made.series:
        if figure.kind != "bytes":
            continue
        stored = described.get(figure.name, {}).get("MEAN_VALUE")
        expected = stored if "totals in Flent's file" in figure.note else corpus.mean_rate(value, figure.name)
        assert figure.mean == pytest.approx(expected, rel=0.005, abs=0.005), figure.name
        means[figure.name] = float(figure.mean or 0)
    for total in made.throughput:
        members = [one for name, one in means.items() if name.startswith(total.name) or total.name.endswith("totals")]
        if total.mean_mbps is None or len(members) != total.flows:
            continue
        assert load is not None and total.seconds >= 0.9 * (load.to_ns - load.from_ns) / 1e9, "it covers the load, or it is not there"
        if "totals in Flent's file" not in total.note:
            assert total.mean_mbps == pytest.approx(sum(members), rel=0.03, abs=0.02), total
    for figure in made.series:  # a sum of the file never contradicts the headline above it
        whole = next((one for one in made.throughput if f"{one.name} sum" == figure.name), None)
        if whole is not None and whole.mean_mbps is not None and figure.mean is not None:
            assert figure.mean == pytest.approx(whole.mean_mbps, rel=0.25, abs=0.05), figure
    return len(means)


def check_plots(run: Run) -> int:
    """All plots of the run's test are drawn, except for those whose series it has not."""
    drawn = 0
    for name in flent_plot_names.TESTS.get(run.meta.test, ()):
        try:
            drawn += bool(plots.model([run, run] if name.startswith("qq") else [run], name).panels)
        except PlotError:
            assert name in SOCKETS or not set(_wanted(run, name)), f"{run.path}: {name}"
    return drawn


def _wanted(run: Run, name: str) -> list[str]:
    """Measured series of the run that the plot would show."""
    from ktrxer.panels.select import chosen

    spec = plots.specifications(run).get(name)
    names = [one.name for one in run.meta.series if one.kind in ("latency", "bytes") or one.name.startswith(("VoIP", "HTTP"))]
    return [found for pick in (spec.picks if spec else ()) if not pick.column for found in chosen(names, pick.data, pick.exclude)]


def check_round_trip(path: Path, folder: Path) -> None:
    """An import and an export keep every series, sample, mean and all metadata."""
    assert importing.main(["-D", str(folder), str(path)]) == 0
    (run,) = folder.glob("*.ktrxer")
    target = folder / "back.flent.gz"
    assert export.main([str(run), "-o", str(target)]) == 0
    before, after = corpus.load(path), corpus.load(target)
    assert after["results"] == before["results"] and after["x_values"] == before["x_values"]
    version = before.get("version", 1)
    if version > 1:
        assert {name: len(points) for name, points in after["raw_values"].items()} == {n: len(p) for n, p in before["raw_values"].items()}
    if version == 4:
        assert after["raw_values"] == before["raw_values"]
    assert after["metadata"].keys() >= before["metadata"].keys() - {"NETPERF_WRAPPER_VERSION"}
    for key in ("NAME", "TITLE", "NOTE", "HOST", "HOSTS", "LOCAL_HOST", "LENGTH", "TOTAL_LENGTH", "STEP_SIZE"):
        assert before["metadata"].get(key) == after["metadata"].get(key), key
    for name, one in before["metadata"].get("SERIES_META", {}).items():
        if one.get("UNITS") != "bits/s":
            assert {key: value for key, value in one.items() if key != "RAW_VALUES"} == after["metadata"]["SERIES_META"][name]


def check(path: Path, folder: Path, *, drawn: bool) -> None:
    value, run = corpus.load(path), open_any(path)
    made = summarise(run)
    text.show(made)
    assert not made.failed and text.series_lines(made)
    assert check_probes(run, value, made) + check_flows(run, value, made) >= 0
    check_round_trip(path, folder)
    if drawn:
        check_plots(run)
        assert report_command.main([str(path), "-o", str(folder / "page.html"), "--force"]) == 0


def made_file(folder: Path, test: str, version: int) -> Path:
    folder.mkdir(parents=True)
    ending = "json.gz" if version == 1 else "flent.gz"
    return files.write(folder / f"{test}.{ending}", corpus.of_test(test, version))


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_rrul_of_each_version(tmp_path: Path, version: int, capsys: pytest.CaptureFixture[str]) -> None:
    path = made_file(tmp_path / "files", "rrul", version)
    assert summary.main([str(path), "--series"]) == 0
    run, value = open_any(path), corpus.load(path)
    made = summarise(run)
    assert check_probes(run, value, made) == 4 and check_flows(run, value, made) == 8
    check_round_trip(path, tmp_path)
    assert "stalled" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_each_test_of_each_version(tmp_path: Path, version: int, part: int) -> None:
    for test in QUARTERS[part]:
        path = made_file(tmp_path / test, test, version)
        check(path, tmp_path / test, drawn=version == 1 + part)


@pytest.mark.slow
@pytest.mark.skipif(not PUBLIC, reason=NONE)
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_public_files(tmp_path: Path, path: Path) -> None:
    check(path, tmp_path, drawn=path.stat().st_size < LARGE)


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="Flent is not installed in .venv-flent: `make .venv-flent/.ok` does it")
def test_the_real_flent_reads_the_same_before_and_after(tmp_path: Path) -> None:
    """`flent -f stats_csv` of each file and of its export."""
    sources = [path for path in PUBLIC if path.stat().st_size < LARGE]
    known = {path.stem for path in PYTHON.parents[1].glob("lib/python3*/site-packages/flent/tests/*.conf")}
    for version in (2, 3, 4):
        sources += [made_file(tmp_path / f"{test}-{version}", test, version) for test in ("rrul", "voip-1up", "http-1up", "ping", "qdisc-stats")]
    pairs = []
    for i, path in enumerate(sources):
        if corpus.load(path)["metadata"]["NAME"] in known:
            assert export.main([str(path), "-o", str(tmp_path / f"{i}.flent.gz")]) == 0
            pairs += [path, tmp_path / f"{i}.flent.gz"]
    done = subprocess.run(
        [PYTHON, ROOT / "tests/python/flent_stats.py", tmp_path / "stats.csv", *pairs], capture_output=True, text=True, timeout=110, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-2000:]
    read = json.loads(done.stdout.splitlines()[-1])
    for before, after in zip(pairs[::2], pairs[1::2], strict=True):
        assert read[str(before)] and read[str(before)] == read[str(after)], before.name
