# SPDX-License-Identifier: MIT OR Apache-2.0
"""The real Flent opens and draws what `ktrxer export` writes, for each test that both have."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from ktrxer.flent import container, writing
from ktrxer.store import Run, open_run
from synthetic import synthetic

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-flent" / "bin" / "python"
UP, DOWN, ICMP = "TCP upload {}", "TCP download {}", "Ping (ms) ICMP"
FOUR = ("BE", "BK", "CS5", "EF")

# For each test: its series, by the names of the corresponding series of rrul, and some of Flent's plots of it.
TESTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "rrul": ({}, ("all_scaled", "ping_cdf", "tcp_cwnd")),
    "rrul_be": (
        {name.format(old): name.format(new) for name in (UP, DOWN) for old, new in zip(FOUR, ("BE", "BE2", "BE3", "BE4"), strict=True)}
        | {ICMP: ICMP, "Ping (ms) UDP BE": "Ping (ms) UDP BE1", "Ping (ms) UDP BK": "Ping (ms) UDP BE2", "Ping (ms) UDP EF": "Ping (ms) UDP BE3"},
        ("totals",),
    ),
    "tcp_upload": ({UP.format("BE"): "TCP upload", ICMP: ICMP}, ("totals",)),
    "tcp_download": ({DOWN.format("BE"): "TCP download", ICMP: ICMP}, ("totals",)),
    "tcp_bidirectional": ({UP.format("BE"): "TCP upload", DOWN.format("BE"): "TCP download", ICMP: ICMP}, ("totals",)),
    "tcp_nup": ({UP.format(old): f"TCP upload::{i}" for i, old in enumerate(FOUR, 1)} | {ICMP: ICMP}, ("upload",)),
    "tcp_ndown": ({DOWN.format(old): f"TCP download::{i}" for i, old in enumerate(FOUR, 1)} | {ICMP: ICMP}, ("download",)),
    "ping": ({ICMP: ICMP, "Ping (ms) UDP BE": "Ping (ms) UDP"}, ("ping",)),
}


def derived(run: Run, test: str, names: dict[str, str]) -> Run:
    """The run under another test's name, with only the series that this test has, under its names."""
    meta = copy.deepcopy(run.meta)
    meta.test = test
    meta.series = [one for one in meta.series if not names or one.name in names]
    for one in meta.series:
        one.name = names.get(one.name, one.name)

    def some(kind: str) -> Any:
        ids = [one.id for one in meta.series if one.kind == kind]
        table = run.table(kind)
        return table.filter(pc.is_in(table.column("series"), pc.cast(ids, "int32"))) if "series" in table.column_names else table

    return Run(run.path, meta, {kind: (lambda kind=kind: some(kind)) for kind in run.kinds()})


@pytest.mark.slow
def test_the_real_flent_draws_ours(tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("Flent is not installed in .venv-flent: `make .venv-flent/.ok` does it (and `make test` does)")
    run = open_run(synthetic(tmp_path, seconds=10, delay=2))
    wishes = []
    for test, (names, plots) in TESTS.items():
        made = writing.document(derived(run, test, names))
        path = tmp_path / f"{test}.flent.gz"
        value = {"version": 4, "metadata": made.metadata, "x_values": made.x, "results": made.results, "raw_values": made.raw}
        container.write(path, value)
        wishes.append(f"{path}={','.join(plots)}")
    done = subprocess.run(
        [PYTHON, ROOT / "tests/python/flent_draw.py", tmp_path, *wishes], capture_output=True, text=True, timeout=110, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    drawn: dict[str, dict[str, list[str]]] = json.loads(done.stdout.splitlines()[-1])
    assert len(drawn) == len(TESTS)
    for file, plots in drawn.items():
        for plot, problems in plots.items():
            # A warning of Flent itself: it smooths an average over more points than twenty seconds have.
            left = [one for one in problems if not re.search("Smoothing length longer", one)]
            assert left == [], f"{Path(file).name}: {plot}"


def test_the_figures_that_flent_reads_are_the_runs_own(tmp_path: Path) -> None:
    """Without Flent: the content of the file agrees with the description of the format."""
    run = open_run(synthetic(tmp_path, seconds=20, delay=5))
    made = writing.document(run)
    icmp = run.arrays(run.series(ICMP))
    answered = icmp["state"] == 0
    assert len(made.raw[ICMP]) == answered.sum()
    udp = run.arrays(run.series("Ping (ms) UDP BE"))
    points = made.raw["Ping (ms) UDP BE"]
    assert sum("val" in point for point in points) == (udp["state"] == 0).sum()
    assert sum("lost" in point for point in points) == ((udp["state"] >= 1) & (udp["state"] <= 3)).sum()
    assert {point["lost_dir"] for point in points if "lost" in point} <= {"up", "down", "true"}
    for name in ("TCP upload BE", "TCP download EF"):
        flow = next(one for one in run.meta.series if one.name == name and one.kind == "bytes")
        samples = run.arrays(flow)
        end = samples["bytes"][samples["end"] == (0 if "download" in name else 1)]
        total = sum(point["val"] * point["dur"] * 125_000 for point in made.raw[name] if "dur" in point)
        assert total == pytest.approx(float(end[-1] - end[0]), rel=1e-9), "bytes, to the last one"
    assert made.metadata["LENGTH"] == 10 and made.metadata["TOTAL_LENGTH"] == 20
