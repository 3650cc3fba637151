# SPDX-License-Identifier: MIT OR Apache-2.0
"""The meaning of an imported file of Flent: units, far ends, stalled probes, the load, totals. No headline of another time than the load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import flent_corpus as corpus
import flent_files as files
import numpy as np
import pytest
from ktrxer.commands import importing, summary
from ktrxer.commands.opening import open_any
from ktrxer.flent import open_run
from ktrxer.panels import plots, tracks
from ktrxer.store import Run
from ktrxer.summary.figures import summarise

STEP = files.STEP


def run_of(tmp_path: Path, value: Any, name: str = "x.flent.gz") -> Run:
    return open_run(files.write(tmp_path / name, value))


def pings(ms: float, seconds: float = 12.0) -> list[dict[str, Any]]:
    return [{"t": files.T0 + STEP * i, "val": ms, "seq": float(i)} for i in range(round(seconds / STEP))]


def udp_rr(ms: float, seconds: float = 12.0) -> list[dict[str, Any]]:
    return [{"t": files.T0 + STEP * i, "dur": STEP, "val": ms} for i in range(round(seconds / STEP))]


def document(raw: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A file of version 4 of 12 s, 8 of them with load, with these raw values."""
    kinds = {name: corpus.RUNNERS.get(corpus.kind_of(name), "CommandOutputRunner") for name in raw}
    described = {name: {"RUNNER": kind, "IDX": i, "UNITS": "Mbits/s" if kind == "NetperfDemoRunner" else "ms"} for i, (name, kind) in enumerate(kinds.items())}
    x = [round(STEP * i, 6) for i in range(61)]
    meta = files.metadata(**{"NAME": "rrul", "LENGTH": 8, "TOTAL_LENGTH": 12, "SERIES_META": described} | more)
    return {"version": 4, "x_values": x, "results": {name: [None] * len(x) for name in raw}, "raw_values": raw, "metadata": meta}


def flow(mbit: float, start: float = 2.0, seconds: float = 8.0) -> list[dict[str, Any]]:
    return files.flow(mbit, count=round(seconds / 0.25), start=start)


def test_pings_to_several_hosts_stay_apart(tmp_path: Path) -> None:
    hosts = ["s1", "s2", "10.0.0.3"]
    raw: dict[str, Any] = {f"Ping (ms) ICMP{i} {host}": pings(10.0 * 5**i) for i, host in enumerate(hosts)}
    raw |= {"Ping (ms) ICMP 10.9.9.9 (extra)": pings(7.0), "TCP upload BE1 s1": flow(8.0)}
    run = run_of(tmp_path, document(raw, HOSTS=hosts, HOST="s1"))
    made = summarise(run)
    assert {one.probes: one.loaded.p50 for one in made.latency if one.loaded} == {
        "ICMP to s1": 10.0, "ICMP to s2": 50.0, "ICMP to 10.0.0.3": 250.0, "ICMP to 10.9.9.9": 7.0,
    }  # fmt: skip
    assert run.meta.targets == [*hosts, "10.9.9.9"] and made.grade is not None and made.grade.probes == "ICMP to s1"


def test_round_trips_of_netperf_are_latency_and_count_no_losses(tmp_path: Path) -> None:
    run = run_of(tmp_path, document({"Ping (ms) UDP BE1": udp_rr(30.0), "Ping (ms) ICMP": pings(20.0), "TCP upload": flow(8.0)}))
    made = summarise(run)
    assert [(one.probes, one.loaded.p50) for one in made.latency if one.loaded] == [("UDP", 30.0), ("ICMP", 20.0)]
    assert made.grade is not None and made.grade.probes == "UDP" and made.loss_of_run is not None
    assert made.loss_of_run.sent == 60, "those of ping: netperf has no trace of a lost packet"
    assert {series.key for panel in plots.model([run], "all_scaled").panels for series in panel.series} >= {"Ping (ms) UDP BE1", "Ping (ms) ICMP"}
    assert any("mean round trip of an interval" in note for note in run.meta.metadata["notes"])


def test_a_stalled_probe_is_said_and_in_no_headline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = document({"Ping (ms) UDP BE": udp_rr(1.0, 3.0), "Ping (ms) ICMP": pings(20.0), "TCP upload": flow(8.0)})
    path = files.write(tmp_path / "x.flent.gz", value)
    assert summary.main([str(path)]) == 0
    said = capsys.readouterr().out
    assert "Ping (ms) UDP BE stalled: no round trips in 9.2 of 12.0 s; it is in no headline" in said and "verdict: degraded" in said
    made = summarise(open_run(path))
    assert made.grade is not None and (made.grade.probes, made.grade.idle_ms) == ("ICMP", 20.0)
    assert [one.probes for one in made.latency] == ["ICMP", "UDP, stalled"]
    line = next(one for panel in plots.model([open_run(path)], "ping").panels for one in panel.series if one.key == "Ping (ms) ICMP")
    assert np.isfinite(line.y).all(), "no gap in a line without one"
    alone = document({"Ping (ms) UDP BE": udp_rr(1.0, 3.0), "TCP upload": flow(8.0)})
    assert summarise(run_of(tmp_path, alone)).grade is None, "no grade of another time"


def test_no_line_is_drawn_over_a_silence(tmp_path: Path) -> None:
    points = [point for point in udp_rr(30.0) if not 4 < point["t"] - files.T0 < 9]
    run = run_of(tmp_path, document({"Ping (ms) UDP": points, "Ping (ms) ICMP": pings(20.0), "TCP upload": flow(8.0)}))
    lines = {one.key: one for panel in plots.model([run], "ping").panels for one in panel.series}
    assert np.isnan(lines["Ping (ms) UDP"].y).sum() == 1 and len(lines["Ping (ms) UDP"].y) == len(points) + 1
    assert run.meta.sentences == ["Ping (ms) UDP stalled: no round trips in 5.0 of 12.0 s; it is in no headline"]


def test_a_call_of_d_itg(tmp_path: Path) -> None:
    value = corpus.of_test("voip-1up", 2)
    del value["raw_values"]["VoIP"][10]
    run = run_of(tmp_path, value)
    units = {one.name: (one.kind, one.unit) for one in run.meta.series if one.name.startswith("VoIP")}
    assert units == {
        "VoIP": ("value", "ms"), "VoIP::delay": ("value", "ms"), "VoIP::jitter": ("value", "ms"), "VoIP::loss": ("value", "packets"),
    }  # fmt: skip
    assert len(tracks.tracks(run)["VoIP"].lost) == 1 and plots.model([run], "voip_mos_combine").panels
    assert any("1 lost" in note for note in run.meta.metadata["notes"])


def test_totals_of_the_file_where_samples_are_sparse(tmp_path: Path) -> None:
    raw = {f"TCP upload::{i}": flow(5.0, start=2 + 2 * i, seconds=8 - 2 * i) for i in range(3)}
    value = document(raw | {"TCP upload sum": []})
    for i, name in enumerate(raw):
        value["metadata"]["SERIES_META"][name] |= {"MEAN_VALUE": 1.0 + i, "COMMAND": "netperf -H far -l 8 -F x"}
    # Flent adds the flows that have a value: 5 at first, 15 at last.
    grid = [[5.0 if 2 + 2 * i <= x <= 10 else None for x in value["x_values"]] for i in range(3)]
    value["results"] |= dict(zip(raw, grid, strict=True))
    value["results"]["TCP upload sum"] = [sum(one for one in row if one) or None for row in zip(*grid, strict=True)]
    value["metadata"]["SERIES_META"]["TCP upload sum"] = {"RUNNER": "SumRunner", "UNITS": "Mbits/s", "MEAN_VALUE": 6.0}
    made = summarise(run_of(tmp_path, value))
    (total,) = made.throughput
    assert (total.mean_mbps, total.seconds) == (6.0, 8.0), "not 15 Mbit/s of the last four seconds"
    whole = next(one for one in made.series if one.name == "TCP upload sum")
    assert (whole.mean, whole.p50, whole.count) == (6.0, None, 21)
    for one in value["metadata"]["SERIES_META"].values():
        one.pop("MEAN_VALUE", None)
    (total,) = summarise(run_of(tmp_path, value)).throughput
    assert total.mean_mbps is None and "cover only 4.0 of 8.0 s of load" in total.note


def test_a_flow_with_gaps_is_not_counted_over_them(tmp_path: Path) -> None:
    value = files.four()
    value["raw_values"]["TCP upload"] = [point for i, point in enumerate(files.flow()) if not 10 <= i < 20]
    run = run_of(tmp_path, value)
    assert [one.kind for one in run.meta.series if one.name == "TCP upload"] == ["bytes"]
    assert any("its intervals have gaps of 2.5 of 10.0 s" in note for note in run.meta.metadata["notes"])
    (total,) = summarise(run).throughput
    assert (total.mean_mbps, total.seconds) == (8.0, 8.0) and "totals in Flent's file" in total.note, "its MEAN_VALUE"
    del value["metadata"]["SERIES_META"]["TCP upload"]["MEAN_VALUE"]
    (total,) = summarise(run_of(tmp_path, value)).throughput
    assert total.mean_mbps is None and "75.0% of the time is covered: no sum" in total.note


def test_the_load_is_the_time_of_the_flows(tmp_path: Path) -> None:
    assert run_of(tmp_path, document({"Ping (ms) ICMP": pings(20.0), "Ping (ms) UDP": udp_rr(20.0)}, NAME="ping")).meta.phases == []
    value = document({"Ping (ms) ICMP": pings(20.0), "TCP upload": flow(8.0)}, LENGTH=1)
    load = run_of(tmp_path, value).meta.phase("load")
    assert load is not None and (load.from_ns, load.to_ns) == pytest.approx((2e9, 10e9), abs=1000), "LENGTH may be that of one of many flows"


def test_flows_of_iperf_have_a_sum(tmp_path: Path) -> None:
    points = [{"t": files.T0 + 2 + STEP * (i + 1), "val": 7.5} for i in range(40)]
    (total,) = summarise(run_of(tmp_path, document({"UDP upload": points, "Ping (ms) ICMP": pings(20.0)}))).throughput
    assert total.mean_mbps == pytest.approx(7.5) and total.direction == "up"


def test_wrong_units_and_hostile_names(tmp_path: Path) -> None:
    value = document({"Ping (ms) ICMP": pings(20.0), "TCP upload": flow(8.0), "../../x\x1b[2J": pings(3.0), "%s %n::a::b": pings(4.0)})
    for one in value["metadata"]["SERIES_META"].values():
        one["UNITS"] = "furlongs"
    made = summarise(run_of(tmp_path, value))
    assert made.latency[0].loaded is not None and made.latency[0].loaded.p50 == 20.0
    assert all(one.name.isprintable() for one in made.series)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_one_sample_or_none(tmp_path: Path, version: int, capsys: pytest.CaptureFixture[str]) -> None:
    value = corpus.of_test("rrul", version)
    value["x_values"] = value["x_values"][:1]
    value["results"] = {name: grid[:1] for name, grid in value["results"].items()}
    for points in value.get("raw_values", {}).values():
        del points[1:]
    name = "x.json.gz" if version == 1 else "x.flent.gz"
    assert summary.main([str(files.write(tmp_path / name, value))]) == 0
    value["x_values"], value["results"] = [], {key: [] for key in value["results"]}
    value["raw_values"] = {name: [] for name in value.get("raw_values", {})}
    path = files.write(tmp_path / name, value)
    assert summary.main([str(path)]) == 0
    said = capsys.readouterr().out
    assert "verdict: invalid" in said and "this file contains no samples" in said
    assert importing.main(["-D", str(tmp_path), str(path)]) == 0
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
def test_ten_thousand_series(tmp_path: Path) -> None:
    path = files.write(tmp_path / "x.flent.gz", document({f"number {i}": pings(float(i), 0.4) for i in range(10_000)}))
    made = summarise(open_any(path))
    assert len(made.series) == 10_000 and made.throughput == []


def test_version_1_is_read_by_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = files.write(tmp_path / "rrul-2012.json.gz", corpus.of_test("rrul", 1))
    assert len(open_any(path).meta.series) == 13
    assert summary.main([str(path), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in made["throughput"]] == ["TCP download", "TCP upload", "TCP totals"] and made["verdict"] == "degraded"
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    assert summary.main([str(other)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
