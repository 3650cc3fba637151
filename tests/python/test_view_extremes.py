# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reports and plots of runs with one sample, without an answer, and with numbers at the ends of their ranges: each is drawn, or there is one
line with the reason, and no figure is called nan or inf."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ktrxer.cli import main
from ktrxer.panels import plots
from ktrxer.store import Host, Meta, Phase, Run, Runner, RunWriter, Series, Zero, open_run
from ktrxer.store.columns import ANSWERED, LOST
from ktrxer.view import numbers

S, MS = 10**9, 10**6
HUGE = 2**62


def made(directory: Path, times: list[int], state: list[int], trip: list[int | None], value: list[float | None], counted: list[int]) -> Path:
    meta = Meta(
        id="x", test="rrul", title="extreme", created="2026-11-24T06:00:00Z", host=Host("near"), targets=["far"],
        zero=Zero(0, 1_795_000_000 * S), length_ns=20 * S, verdict="valid",
        phases=[Phase("idle_before", 0, 5 * S), Phase("load", 5 * S, 15 * S), Phase("idle_after", 15 * S, 20 * S)],
        runners=[Runner(0, "stamp", "stamp", ["ktrxer", "stamp"], "far", "ended", 0, interval_ns=10 * MS),
                 Runner(1, "flow", "flow", ["ktrxer", "flow"], "far", "ended", 0, interval_ns=100 * MS)],
    )  # fmt: skip
    meta.series = [
        Series(0, "Ping (ms) UDP BE", "latency", "ms", 0, klass="BE", group="Ping (ms)"),
        Series(1, "TCP upload BE", "bytes", "Mbit/s", 1, 0, "up", "BE", "TCP upload"),
        Series(2, "Ping (ms) tool", "value", "ms", 0, group="Ping (ms)"),
    ]
    writer = RunWriter(directory, meta, "extreme")
    count = len(times)
    table: dict[str, list[Any]] = {"series": [0] * count, "t_ns": times, "seq": list(range(count)), "state": state, "rtt_ns": trip}
    writer.append("latency", table | {"lateness_ns": [5000] * count, "up_ns": trip, "down_ns": trip, "own_queue_ns": trip})
    for end in (0, 1):
        writer.append("bytes", {"series": [1] * count, "t_ns": times, "end": [end] * count, "bytes": counted, "bound_ns": [None] * count})
    writer.append("value", {"series": [2] * count, "t_ns": times, "value": value})
    return writer.finish()


MANY = [n * 100 * MS for n in range(200)]
CASES: dict[str, tuple[list[int], list[int], list[int | None], list[float | None], list[int]]] = {
    "one sample": ([7 * S], [ANSWERED], [10 * MS], [10.0], [1000]),
    "one answer": (MANY, [LOST] * 100 + [ANSWERED] + [LOST] * 99, [None] * 100 + [MS] + [None] * 99, [None] * 100 + [1.0] + [None] * 99, [0] * 200),
    "all lost": (MANY, [LOST] * 200, [None] * 200, [None] * 200, [0] * 200),
    "not a number": (MANY, [ANSWERED] * 200, [MS] * 200, [float("nan")] * 200, [n * 1000 for n in range(200)]),
    "infinite": (MANY, [ANSWERED] * 200, [MS] * 200, [float("inf"), -float("inf")] * 100, [n * 1000 for n in range(200)]),
    "huge": (MANY, [ANSWERED] * 200, [HUGE, 1] * 100, [1e308, -1e308] * 100, [HUGE] * 200),
    "one value": (MANY, [ANSWERED] * 200, [0] * 200, [0.0] * 200, [5] * 200),
}  # fmt: skip


@pytest.fixture(params=CASES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    return open_run(made(tmp_path, *CASES[request.param]))


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_report_of_extremes_has_figures_or_words(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(run.path), "-o", str(page)]) == 0
    text = re.sub(r"<(style|script)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
    shown = re.sub(r"<[^>]*>", " ", text)
    assert "extreme" in shown and not re.search(r"\b(nan|inf|infinity)\b", shown, re.IGNORECASE), shown
    assert "defect" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_each_plot_of_extremes_is_drawn_or_has_a_reason(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = 0
    for plot in ("all", "all_scaled", "ping", "ping_cdf", "ping_ccdf", "ping_violin", "ping_heat", "ping_histogram", "ping_band", "totals", "upload"):
        for target in (["-o", str(tmp_path / f"{plot}.png")], ["-o", str(tmp_path / f"{plot}.svg")], ["--text"]):
            status = main(["plot", str(run.path), "--plot", plot, *target])
            out, err = capsys.readouterr()
            assert status == 0 if not err else status == 1 and "no samples for the plot" in err and len(err.splitlines()) == 1, (plot, err)
            assert not re.search(r"\b(nan|inf)\b", out), (plot, out)
            drawn += status == 0
    assert drawn > 3


def test_the_numbers_of_extremes_are_json(run: Run) -> None:
    for name in ("ping", "ping_cdf", "totals"):
        try:
            model = plots.model([run], name)
        except plots.PlotError:
            continue
        for panel in numbers.of_model(name, model)["panels"]:
            for series in panel["series"]:
                assert all(value is None or np.isfinite(value) for value in series["y"]), (name, series["label"])
