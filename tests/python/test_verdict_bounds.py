# SPDX-License-Identifier: MIT OR Apache-2.0
"""The verdict of a run by the error bounds of its headline figures (docs/decisions/0077), and what a comparison takes of a degraded run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from ktrxer.analyse import grouping
from ktrxer.analyse.doubts import doubts
from ktrxer.analyse.figures import of_run as figures_of
from ktrxer.cli import main
from ktrxer.figures.bound import Bound, read, widest
from ktrxer.figures.bounds import Judged, of_run
from ktrxer.run.closing import closed
from ktrxer.statistics.latency import responsiveness_class
from ktrxer.store import Run, open_run
from ktrxer.store.columns import ANSWERED, LOST, SKIPPED
from ktrxer.store.reasons import reason
from ktrxer.summary.figures import summarise
from ktrxer.summary.text import bound as bound_text
from ktrxer.summary.text import lines
from synthetic import synthetic

S, MS = 10**9, 10**6


@pytest.fixture(scope="module")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic(tmp_path_factory.mktemp("runs"), seconds=24, delay=6)


@pytest.fixture
def made(stored_run: Path) -> Run:
    return open_run(stored_run)


def changed(run: Run, **columns: np.ndarray) -> Run:
    """The run with other columns of its probes."""
    table = run.table("latency")
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), table.schema.field(name), pa.array(values, table.schema.field(name).type, mask=None))
    return run.with_tables({"latency": table})


def column(run: Run, name: str) -> np.ndarray:
    return run.table("latency").column(name).to_numpy(zero_copy_only=False)


def without(run: Run, gone: np.ndarray) -> Run:
    return run.with_tables({"latency": run.table("latency").filter(pa.array(~gone))})


def bound(run: Run, figure: str, probes: str = "UDP") -> Judged:
    return next(one for one in of_run(run) if one.figure == figure and one.probes in (probes, ""))


def test_a_quiet_run_has_all_headline_figures(made: Run) -> None:
    found = of_run(made)
    kinds = {(one.figure, one.probes) for one in found}
    assert kinds == {("rate_up", ""), ("rate_down", "")} | {
        (figure, kind) for figure in ("idle_p50", "loaded_p50", "added_p50", "loss") for kind in ("UDP", "ICMP")
    }  # fmt: skip
    assert all(one.holds and one.cause in ("none", "receive_time") for one in found), "the hypervisor takes 0.5 % of the synthetic host"
    summary = summarise(made)
    trips = {one.probes: one for one in summary.latency if one.name == "round trip"}
    for one in found:
        if one.figure == "loaded_p50":
            assert one.value == pytest.approx(trips[one.probes].loaded.p50 * 1e3) and one.low < one.value < one.high
    rates = {one.name: one.mean_mbps for one in summary.throughput}
    assert bound(made, "rate_up").value == pytest.approx(rates["TCP upload"])
    loss = bound(made, "loss")
    assert loss.low < loss.value < loss.high and loss.tolerance == 0.5


def test_late_probes_and_a_busy_host_are_no_reasons(made: Run) -> None:
    late = column(made, "lateness_ns").copy()
    late[::2] += 50 * MS
    run, _ = closed(changed(made, lateness_ns=late))
    assert [one.id for one in run.meta.reasons] == ["round_trips_apart"], "the flows of the synthetic run have other round trips"
    assert read(run.meta.accounts["bounds"]) and run.meta.accounts["measured"] is True


def test_probes_that_did_not_leave_widen_the_bounds(made: Run) -> None:
    """A tenth of the probes under load has no row."""
    t = column(made, "t_ns")
    gone = (t > 6 * S) & (t < 18 * S) & (column(made, "seq") % 10 == 3)
    run = without(made, gone)
    loaded, loss = bound(run, "loaded_p50"), bound(run, "loss")
    assert loaded.cause == loss.cause == "skipped" and not loss.holds and loss.bound == pytest.approx(100 * gone.sum() / 4 / 2400, rel=0.1)
    assert bound(run, "idle_p50").cause in ("none", "receive_time"), "the idle probes are all there"
    # The truth is within the bound, whatever the missing probes would have measured.
    assert abs(bound(made, "loaded_p50").value - loaded.value) <= loaded.bound
    run, _ = closed(run)
    assert run.meta.verdict == "degraded" and any("the loss of UDP probes" in text and "did not leave" in text for text in run.meta.sentences)
    assert not any("late" in text for text in run.meta.sentences)


def test_half_of_the_probes_missing_is_no_figure(made: Run) -> None:
    t = column(made, "t_ns")
    run, _ = closed(without(made, (t > 6 * S) & (t < 18 * S) & (column(made, "seq") % 3 != 0)))
    assert run.meta.verdict == "invalid" and any(one.id == "bound_unknown" for one in run.meta.reasons)
    assert any(one.bound is None for one in read(run.meta.accounts["bounds"]))


def test_a_program_of_others_keeps_an_interval_of_its_own(made: Run) -> None:
    """A twentieth fewer probes than the interval has room for, with numbers without a gap; then with gaps."""
    for runner in made.meta.runners:
        runner.kind = "iputils" if runner.kind == "ping" else runner.kind
    fewer = without(made, column(made, "seq") >= 2280)
    assert bound(fewer, "loss", "ICMP").bound == 0
    gaps = without(made, column(made, "seq") % 20 == 3)
    assert bound(gaps, "loss", "ICMP").bound == pytest.approx(5, abs=0.1)


def test_skipped_probes_that_have_a_row(made: Run) -> None:
    state = column(made, "state").copy()
    some = (column(made, "seq") % 50 == 1) & (state == ANSWERED)
    state[some] = SKIPPED
    rtt = column(made, "rtt_ns").copy()
    rtt[some] = np.nan
    run = changed(made, state=state)
    assert bound(run, "loss").cause == "skipped" and bound(run, "loss").bound == pytest.approx(2, abs=0.2)


def test_answers_without_stamps_are_left_out(made: Run) -> None:
    rtt = column(made, "rtt_ns")
    some = column(made, "seq") % 20 == 1
    masked = pa.array(rtt, pa.int64(), mask=some | np.isnan(rtt))
    table = made.table("latency")
    run = made.with_tables({"latency": table.set_column(table.column_names.index("rtt_ns"), table.schema.field("rtt_ns"), masked)})
    found = bound(run, "loaded_p50")
    assert found.cause == "left_out" and found.bound > 0 and bound(run, "loss").bound == 0, "an answered probe is not lost"


def test_half_of_the_probes_lost_is_a_result(made: Run) -> None:
    state = column(made, "state").copy()
    t = column(made, "t_ns")
    state[(t > 6 * S) & (t < 18 * S) & (column(made, "seq") % 3 != 0)] = LOST
    found = bound(changed(made, state=state), "loaded_p50")
    assert found.value is None and found.bound == 0 and found.holds


def test_a_rate_with_missing_counts(made: Run) -> None:
    table = made.table("bytes")
    t = table.column("t_ns").to_numpy()
    run = made.with_tables({"bytes": table.filter(pa.array(t < 14 * S))})
    found = bound(run, "rate_up")
    assert found.cause == "coverage" and not found.holds and "have no byte counts" in found.why
    short = made.with_tables({"bytes": table.filter(pa.array(t < 17.6 * S))})
    assert bound(short, "rate_up").holds, "the connection and the last sample take their time"


def test_a_tolerance_of_the_run(made: Run) -> None:
    t = column(made, "t_ns")
    run = without(made, (t > 6 * S) & (t < 18 * S) & (column(made, "seq") % 8 == 3))
    one = bound(run, "loaded_p50")
    run.meta.settings["tolerance_percent"] = 100 * one.bound / one.value + 1
    try:
        assert bound(run, "loaded_p50").holds
        run.meta.settings["tolerance_percent"] = max(0.01, 100 * one.bound / one.value - 1)
        assert not bound(run, "loaded_p50").holds
    finally:
        del run.meta.settings["tolerance_percent"]


def test_the_summary_names_the_widest_bound(made: Run) -> None:
    t = column(made, "t_ns")
    run, _ = closed(without(made, (t > 6 * S) & (t < 18 * S) & (column(made, "seq") % 10 == 3)))
    text = "\n".join(lines(summarise(run)))
    assert "error bounds  widest: the loss of " in text and "(probes that did not leave); the tolerance is 0.5 %" in text
    assert bound_text(Bound("loss", "UDP", "percent", 1.0, 0.0, 0.5)) == "none of the headline figures has an error of this host"


@pytest.mark.parametrize("stored", [
    None, 5, "x", [5, None, {}], [{"figure": "loss"}], [{"figure": "loss", "unit": "percent", "tolerance": "x"}], [{"figure": ["loss"], "unit": 1}],
    [{"figure": "loss", "unit": "percent", "tolerance": float("nan")}],
])  # fmt: skip
def test_bounds_of_a_foreign_file(stored: object) -> None:
    try:
        assert read(stored) == []
    except TypeError:
        pytest.fail("a value that cannot be a key")


def test_the_widest_of_none() -> None:
    assert widest([]) is None
    assert widest([Bound("loss", "UDP", "percent", 1.0, None, 0.5)]) is None


# -------------------------------------------------------------------------------------------------------------- comparison


def degraded(run: Run, *reasons: object, bounds: list[Bound] | None = None) -> grouping.Member:
    meta = replace(run.meta, verdict="degraded", reasons=list(reasons), accounts={"bounds": [one.as_json() for one in bounds or []]})
    facts = grouping.facts(meta)
    return grouping.Member("one.ktrxer", facts, {one.key: one.value for one in figures_of(run)})


def kept(member: grouping.Member) -> tuple[set[str], list[grouping.LeftOut]]:
    group = grouping.Group("A", [member])
    grouping.only_valid(group)
    return {key for one in group.members for key in one.figures}, group.left_out


def test_a_comparison_takes_the_figures_that_hold(made: Run) -> None:
    every = {one.key for one in figures_of(made)}
    figures, out = kept(degraded(made, reason("losses_apart", lost_udp=1, sent_udp=2, lost_icmp=0, sent_icmp=2)))
    assert figures == {key for key in every if not key.startswith("loss.")} and out[0].figures == ["loss.*"] and "UDP" in out[0].text
    wide = Bound("loaded_p50", "UDP", "us", 9e4, 1e4, 4500, "skipped")
    figures, out = kept(degraded(made, reason("bound_wide", figure="x", value="1", bound="2", tolerance="3", why="y"), bounds=[wide]))
    assert "udp.rtt.load.p50" in every - figures and {"udp.rtt.idle.p50", "icmp.rtt.load.p50", "rate.tcp_upload"} <= figures and "added" not in figures
    assert out[0].reason == "the loaded p50 of UDP probes can be wrong by 10.0 ms"
    assert kept(degraded(made, reason("run_stopped", stopped_by="a signal", after_s=1.0, planned_s=2.0)))[0] == set()
    assert kept(degraded(made))[0] == set(), "no reason is known, so no figure is known to hold"
    assert kept(degraded(made, reason("marks_changed", changed_percent=3.0, direction="up", of_class="")))[0] == every
    assert not doubts(made.meta)


def test_flows_that_failed_put_the_load_in_doubt(made: Run) -> None:
    figures, _ = kept(degraded(made, reason("counts_missing", covered_percent=50.0, side="receiver")))
    assert figures and not [key for key in figures if key.startswith("rate.") or ".load." in key or key in ("added", "rpm", "loss.load")]


@pytest.mark.slow
def test_a_degraded_run_takes_part_in_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side in ("a", "b"):
        (tmp_path / side).mkdir()
        for seed in range(3):
            path = synthetic(tmp_path / side, seconds=8, delay=2, seed=seed + ord(side), name=f"{side}{seed}")
            if (side, seed) == ("b", 1):
                rewritten(path)
    assert main(["compare", "--json", str(tmp_path / "a"), "--", str(tmp_path / "b")]) == 0
    told = capsys.readouterr()
    (made,) = json.loads(told.out)["comparisons"]
    assert len(made["groups"][1]["runs"]) == 3 and made["groups"][1]["left_out"][0]["figures"] == ["loss.*"]
    counts = {one["key"]: (one["count_a"], one["count_b"], one["missing"]) for one in made["figures"] if "count_a" in one}
    assert counts["udp.rtt.load.p50"] == (3, 3, [0, 0]) and counts["loss.load"] == (3, 2, [0, 0])
    assert main(["compare", "--all", "--json", str(tmp_path / "a"), "--", str(tmp_path / "b")]) == 0
    assert not json.loads(capsys.readouterr().out)["comparisons"][0]["groups"][1]["left_out"]


def rewritten(path: Path) -> None:
    """A stored run whose loss is in doubt."""
    from ktrxer.store.writer import write_finished

    run = open_run(path)
    run.meta.verdict = "degraded"
    run.meta.reasons = [reason("losses_apart", lost_udp=1, sent_udp=2, lost_icmp=0, sent_icmp=2)]
    write_finished(path, run.meta, {kind: run.table(kind) for kind in run.kinds()}, path.with_suffix(".new"))


# ---------------------------------------------------------------------------------------------------------- responsiveness


def test_the_class_of_responsiveness_is_that_of_the_worse_rate(made: Run) -> None:
    """The flows wait in the queue, and the probes do not: the mean of 2,800 and 290 round trips a minute is not good."""
    before = summarise(made).responsiveness
    assert before is not None and before.limited_by == "" and before.rating == responsiveness_class(before.rpm)
    table = made.table("tcp_info")
    slow = table.set_column(table.column_names.index("rtt_us"), table.schema.field("rtt_us"), pa.array([206_000] * len(table), pa.int64()))
    rtt = column(made, "rtt_ns").copy()
    fast = pa.array(np.full(len(rtt), 21 * MS), pa.int64(), mask=np.isnan(rtt))
    probes = made.table("latency")
    probes = probes.set_column(probes.column_names.index("rtt_ns"), probes.schema.field("rtt_ns"), fast)
    summary = summarise(made.with_tables({"tcp_info": slow, "latency": probes}))
    found = summary.responsiveness
    assert found is not None and found.foreign_rpm == pytest.approx(2857, abs=2) and found.self_rpm == pytest.approx(291, abs=1)
    assert (responsiveness_class(found.rpm), found.rating, found.limited_by) == ("good", "poor", "flows")
    assert any(": poor, because of the flows' own round trips (UDP probes 2857, the flows' own 291)" in line for line in lines(summary))
