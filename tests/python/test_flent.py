# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flent's files: each version is read, a hostile file gives an error of one line, and export and import agree."""

from __future__ import annotations

import bz2
import copy
import gzip
import json
import random
import time
from pathlib import Path
from typing import Any

import flent_files as files
import numpy as np
import pytest
from ktrxer.commands import export, importing
from ktrxer.commands.opening import open_any
from ktrxer.flent import FlentError, container, open_run, reading
from ktrxer.flent.document import check, clean
from ktrxer.flent.upgrade import upgrade
from ktrxer.store import Run, StoreError

T0_NS = 1_700_000_000_250_000_000


def run_of(tmp_path: Path, value: Any) -> Run:
    return open_run(files.write(tmp_path / "x.flent.gz", value))


def arrays(run: Run, name: str, kind: str) -> dict[str, Any]:
    return run.arrays(next(one for one in run.meta.series if (one.name, one.kind) == (name, kind)))


# ------------------------------------------------------------------------------------------------------------ the versions


def test_version_4_becomes_tables_of_each_kind(tmp_path: Path) -> None:
    run = run_of(tmp_path, files.four())
    meta = run.meta
    assert (meta.test, meta.title, meta.targets, meta.host.name) == ("tcp_upload", "by hand", ["far"], "near")
    assert meta.zero.realtime_ns == T0_NS and meta.length_ns == 10 * 10**9
    assert [(one.name, one.from_ns, one.to_ns) for one in meta.phases] == [
        ("idle_before", 0, 10**9), ("load", 10**9, 9 * 10**9), ("idle_after", 9 * 10**9, 10**10),
    ]
    assert [(one.name, one.kind, one.unit) for one in meta.series] == [
        ("Ping (ms) ICMP", "latency", "ms"),
        ("Ping (ms) UDP EF", "latency", "ms"),
        ("TCP upload", "bytes", "bytes"),
        ("TCP upload", "tcp_info", ""),
        ("TCP upload sum", "value", "Mbits/s"),
        ("qdisc_stats_near", "qdisc", "packets"),
        ("cpu_stats_near", "host", "%"),
        ("cpu_stats_near::cpu0", "value", "fraction"),
        ("cpu_stats_near::cpu1", "value", "fraction"),
        ("number", "value", "widgets"),
    ]
    assert meta.runners[0].argv == ["fping -D -p 200 far"] and meta.unknown == []
    assert meta.metadata["flent"]["SERIES_META"]["TCP upload"]["CONG_CONTROL"] == "cubic"
    assert run.series("Ping (ms) UDP EF").klass == "EF" and run.series("TCP upload").direction == "up"
    assert meta.verdict == "valid" and not any(one.name == "TCP upload sum" for one in meta.runners)


def test_pings_are_put_at_the_instant_they_left_and_the_missing_are_lost(tmp_path: Path) -> None:
    run = run_of(tmp_path, files.four())
    icmp = arrays(run, "Ping (ms) ICMP", "latency")
    assert len(icmp["t_ns"]) == files.COUNT
    assert icmp["seq"].tolist() == list(range(files.COUNT)), "3 and 4 did not come back, and are there as lost"
    assert icmp["state"].tolist()[:6] == [0, 0, 0, 1, 1, 0] and np.isnan(icmp["rtt_ns"][3:5]).all()
    assert icmp["rtt_ns"][0] == 20e6 and icmp["t_ns"][0] == pytest.approx(-20e6, abs=1000), "T0 is when the first one came back"
    assert any("2 lost" in note for note in run.meta.metadata["notes"])
    udp = arrays(run, "Ping (ms) UDP EF", "latency")
    assert (udp["up_ns"][0], udp["down_ns"][0]) == (9e6, 12e6)
    assert udp["state"].tolist()[7] == 2 and udp["t_ns"][7] == pytest.approx(7 * 0.2e9, abs=1000), "lost on the up path"


def test_rates_become_bytes_that_add_up(tmp_path: Path) -> None:
    run = run_of(tmp_path, files.four())
    flow = arrays(run, "TCP upload", "bytes")
    assert flow["t_ns"][0] == pytest.approx(1e9, abs=1000) and flow["t_ns"][-1] == pytest.approx(11e9, abs=1000)
    assert flow["bytes"][0] == 0 and flow["bytes"][-1] == 10_000_000, "8 Mbit/s for ten seconds"
    assert run.meta.runners[2].interval_ns == pytest.approx(0.25e9, rel=1e-3), "so far apart its counts may lie without a gap"
    info = arrays(run, "TCP upload", "tcp_info")
    assert (info["cwnd_segments"][0], info["rtt_us"][0], info["rttvar_us"][0], info["delivery_rate_bps"][0]) == (10, 21500, 1250, 7.5e6)
    qdisc = arrays(run, "qdisc_stats_near", "qdisc")
    assert qdisc["drops"].tolist() == [2 * (i + 1) for i in range(10)] and qdisc["marks"][-1] == 10, "cumulative, from increments by interval"
    assert qdisc["overlimits"][-1] == 27
    assert arrays(run, "cpu_stats_near", "host")["cpu_percent"].tolist() == [50.0] * 10


def test_version_3_units(tmp_path: Path) -> None:
    run = run_of(tmp_path, files.three())
    assert set(arrays(run, "HTTP latency", "value")["value"].tolist()) == {5.0}
    udp = arrays(run, "Ping (ms) UDP BE", "latency")
    assert set(udp["rtt_ns"].tolist()) == {10e6}, "1000 over 100 transactions a second"
    assert len(udp["rtt_ns"]) == files.COUNT - 1, "no transaction in one interval: no round trip"
    qdisc = arrays(run, "qdisc_stats_near", "qdisc")
    assert qdisc["drops"].tolist() == [7 * i for i in range(10)] and qdisc["marks"].tolist() == list(range(10)), "differences, counted up again"
    assert run.meta.metadata["flent"]["SERIES_META"]["x"] == {"UNITS": "Mbits/s", "MEAN_VALUE": 2.0}


def test_version_2_times_are_local_of_any_zone(tmp_path: Path) -> None:
    run = run_of(tmp_path, files.two())
    assert run.meta.zero.realtime_ns == T0_NS, "the samples' own stamps tell that it was India: five and a half hours"
    assert run.meta.created == "2023-11-14T22:13:19.900000Z"
    assert run.meta.metadata["flent"]["BATCH_TIME"] == "2023-11-14T22:13:19.900000Z"
    assert any("+5.5 h" in note for note in run.meta.metadata["notes"])


def test_version_1_with_samples_in_its_metadata_and_without(tmp_path: Path) -> None:
    run = run_of(tmp_path, files.one())
    assert arrays(run, "Ping (ms) ICMP", "latency")["rtt_ns"][1] == 21e6
    assert run.meta.version == "flent 2.3.0" and run.meta.zero.realtime_ns == T0_NS
    assert "RAW_VALUES" not in run.meta.metadata["flent"]["SERIES_META"]["Ping (ms) ICMP"]
    grid = run_of(tmp_path, files.one(samples=False))
    flow = arrays(grid, "TCP upload", "bytes")
    assert len(flow["bytes"]) == files.COUNT, "from the begin of the first step; the last value is missing"
    assert flow["t_ns"][2] == pytest.approx(0.2e9, abs=1000) and flow["bytes"][2] == 400_000
    assert len(arrays(grid, "Ping (ms) ICMP", "latency")["rtt_ns"]) == files.COUNT
    assert grid.meta.verdict == "degraded" and "percentiles are those of the grid" in grid.meta.sentences[0]
    assert any("only interpolated values on a grid" in note for note in grid.meta.metadata["notes"])


def test_without_samples_there_is_no_zone_to_find_and_nobody_searches_for_ever() -> None:
    value = files.one(samples=False)
    value["metadata"]["T0"] = value["metadata"]["TIME"] = "9999-12-31T23:59:59.999999"
    started = time.process_time()
    meta, _ = reading.convert(upgrade(check(value)))
    assert meta.zero.realtime_ns > 0 and time.process_time() - started < 1


def test_a_runner_that_failed_is_named(tmp_path: Path) -> None:
    value = files.four()
    value["raw_values"]["Ping (ms) ICMP"] = []
    value["results"]["Ping (ms) ICMP"] = files.grid(None)
    run = run_of(tmp_path, value)
    assert run.meta.verdict == "degraded" and run.meta.sentences == ["Ping (ms) ICMP gave no samples"]
    assert run.meta.runners[0].status == "failed"


@pytest.mark.parametrize(
    ("name", "pack"), [("a.flent", lambda b: b), ("a.flent.gz", gzip.compress), ("a.flent.bz2", bz2.compress), ("a.flnt", bz2.compress), ("a.flent.gz", bz2.compress)]
)
def test_every_codec_whatever_the_name(tmp_path: Path, name: str, pack: Any) -> None:
    path = tmp_path / name
    path.write_bytes(pack(json.dumps(files.four()).encode()))
    assert len(open_any(path).meta.series) == 10


# ---------------------------------------------------------------------------------------------------- hostile files


def changed(at: str, value: Any) -> dict[str, Any]:
    """A valid file with one value replaced."""
    made = files.four()
    table: Any = made
    *way, last = at.split("/")
    for key in way:
        table = table[int(key)] if isinstance(table, list) else table[key]
    if isinstance(table, list):
        table[int(last)] = value
    else:
        table[last] = value
    return made


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"k": value}
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "its JSON is a list, not an object"),
        ({}, "neither x_values nor results"),
        (changed("version", 5), "its format is version 5; this ktrxer reads 1 to 4: update ktrxer"),
        (changed("version", 10**30), "version a huge number"),
        (changed("metadata", 3), "`metadata` must be an object, found 3"),
        (changed("metadata", deep(40)), "`metadata` is nested too deeply"),
        (changed("metadata", {f"k{i}": i for i in range(20_001)}), "more than 20000 values"),
        (changed("metadata", {"k": [0] * 20_001}), "more than 20000 values"),
        (changed("x_values", "abc"), "`x_values` must be a list of numbers, found 'abc'"),
        (changed("x_values/3", "abc"), "`x_values` must be a list of numbers, found 'abc' in it"),
        (changed("x_values/3", True), "found True in it"),
        (changed("x_values/3", None), "`x_values` must be numbers that never decrease"),
        (changed("x_values/3", -5), "`x_values` must be numbers that never decrease"),
        (changed("results", []), "`results` must be an object of series, found a list"),
        (changed("results/TCP upload", [1.0]), "`results[TCP upload]` has 1 values, `x_values` 51: the numbers must be equal"),
        (changed("results/TCP upload/2", {}), "`results[TCP upload]` must be a list of numbers, found a table in it"),
        (changed("results/", files.grid()), "two series with the same name, or one without a name: ''"),
        (changed("raw_values", 3), "`raw_values` must be an object of series"),
        (changed("raw_values/TCP upload", {}), "`raw_values[TCP upload]` must be a list, found a table"),
        (changed("raw_values/TCP upload/3", 7), "`raw_values[TCP upload]` must hold objects, found 7 in it"),
        (changed("raw_values/TCP upload/3/val", "x"), "`raw_values[TCP upload]`: `val` must be a number, found 'x'"),
        (changed("raw_values/Ping (ms) ICMP/3/t", [1]), "`raw_values[Ping (ms) ICMP]`: `t` must be a number, found a list"),
        (changed("raw_values/Ping (ms) ICMP/3/val", True), "`val` must be a number, found True"),
        (changed("raw_values/TCP upload/3", {"t": files.T0 + 2, "dur": 1.0, "val": 1e300}), "more bytes than a link can carry"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(tmp_path: Path, value: Any, words: str) -> None:
    path = files.write(tmp_path / "bad.flent.gz", value)
    with pytest.raises(FlentError) as caught:
        open_run(path)
    said = str(caught.value)
    assert words in said and said.startswith(f"{path}: ") and "\n" not in said and said.isprintable()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a data file of Flent: not JSON"),
        (b"{", "the file is cut off"),
        (b"\xff\xfe\x00", "not a data file of Flent: neither gzip, bzip2 nor UTF-8"),
        (gzip.compress(b"{}", mtime=0)[:-5], "damaged gzip: the file is cut off"),
        (b"\x1f\x8bnonsense", "damaged gzip"),
        (b"BZhnonsense", "damaged bzip2"),
        (bz2.compress(b"{}")[:-3], "damaged bzip2: the file is cut off"),
        (b"[" * 1_000_000, "nested too deeply"),
        (b'{"x_values": [' + b"9" * 100_000 + b"]}", "a number with too many digits"),
        (b"[" + b"1," * 30_000_000, "more than 16000000 values"),
    ],
)
def test_bytes_that_are_no_file(data: bytes, words: str) -> None:
    with pytest.raises(FlentError, match=words):
        container.parse(data)


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_bomb_is_refused_before_it_fills_the_memory(pack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "TEXT_LIMIT", 8 << 20)
    bomb = pack(bytes(64 << 20))
    assert len(bomb) < 1 << 20
    import tracemalloc

    tracemalloc.start()
    with pytest.raises(FlentError, match="unpacks to more than 8 MiB"):
        container.parse(bomb)
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


def test_not_a_number_is_a_missing_value(tmp_path: Path) -> None:
    value = files.four()
    value["raw_values"]["Ping (ms) ICMP"][5]["val"] = float("nan")
    value["raw_values"]["Ping (ms) ICMP"][6]["val"] = 1e999
    value["raw_values"]["number"][3]["value"] = 10**400
    value["raw_values"]["number"][4]["t"] = 1e300
    value["raw_values"]["number"][5]["t"] = None
    value["results"]["TCP upload sum"][3] = float("inf")
    value["metadata"]["LENGTH"] = float("nan")
    run = run_of(tmp_path, value)
    assert np.isfinite(arrays(run, "TCP upload sum", "value")["value"]).all()
    number = arrays(run, "number", "value")
    assert len(number["t_ns"]) == 8 and np.isnan(number["value"][3])
    assert any("2 samples left out" in note for note in run.meta.metadata["notes"])
    assert len(arrays(run, "Ping (ms) ICMP", "latency")["t_ns"]) == files.COUNT


def test_names_and_titles_are_text_and_nothing_else(tmp_path: Path) -> None:
    script = "<script>alert(1)</script>\x1b[2J\u202e\ud800\n"
    value = changed("metadata/TITLE", script)
    value["metadata"] |= {"NAME": "/etc/passwd", "OUTPUT": "/tmp/owned", "LOCAL_HOST": script, "HOSTS": [script, 3], "TEST_PARAMETERS": {script: script}}
    value["raw_values"][script] = [{"t": files.T0, "val": 1.0}]
    run = run_of(tmp_path, value)
    assert run.meta.title == "<script>alert(1)</script>\ufffd[2J\ufffd\ufffd\ufffd", "kept as text; a page must show it as text"
    assert run.meta.test == "/etc/passwd", "a label: it is never a path"
    assert clean(script) in [one.name for one in run.meta.series]
    json.dumps(run.meta.metadata).encode()
    assert not Path("/tmp/owned").exists()


def test_what_is_imported_is_called_as_its_file_and_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = changed("metadata/DATA_FILENAME", "../../evil")
    source = files.write(tmp_path / "-rf $(id) .flent.gz", value)
    out = tmp_path / "runs"
    out.mkdir()
    assert importing.main(["-D", str(out), str(source)]) == 0
    assert [path.name for path in out.iterdir()] == ["rf_id_.ktrxer"]
    said = capsys.readouterr()
    assert said.out.splitlines()[0].endswith("rf_id_.ktrxer: tcp_upload, 10 series, 259 samples") and said.err == ""
    assert importing.main(["-D", str(out), str(source)]) == 1
    assert "exists already; --force replaces it" in capsys.readouterr().err
    assert importing.main(["-D", str(out), "--force", "--json", str(source)]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 259
    back = open_any(out / "rf_id_.ktrxer")
    assert back.table("bytes").equals(open_run(source).table("bytes"))


def test_one_bad_file_among_good_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = files.write(tmp_path / "good.flent.gz", files.four())
    bad = tmp_path / "bad.flent.gz"
    bad.write_bytes(b"nonsense")
    assert importing.main(["-D", str(tmp_path), str(bad), str(tmp_path / "missing.flent"), str(good), str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert (tmp_path / "good.ktrxer").is_file() and said.err.count("\n") == 3
    assert "bad.flent.gz: not a data file of Flent: not" in said.err and "missing.flent: No such file" in said.err and "this is a folder" in said.err
    assert importing.main(["-D", str(tmp_path / "nowhere"), str(good)]) == 2
    with pytest.raises(SystemExit) as wrong:
        importing.main([])
    assert wrong.value.code == 2


JUNK: list[Any] = [None, True, -1, 0, 1e300, -1e300, 10**400, "", "x" * 5000, "\ud800", [], {}, [[]], {"t": "x"}, {"t": 1e18, "val": 1}, float("nan"), float("inf")]


def mutated(value: Any, chance: random.Random) -> Any:
    """A file with one random value replaced, removed, doubled or moved."""
    made = copy.deepcopy(value)
    table = made
    for _ in range(chance.randint(0, 6)):
        keys = list(table) if isinstance(table, dict) else list(range(len(table)))
        inner = [key for key in keys if isinstance(table[key], (dict, list)) and table[key]]
        if not inner:
            break
        table = table[chance.choice(inner)]
    keys = list(table) if isinstance(table, dict) else list(range(len(table)))
    if not keys:
        return made
    key, what = chance.choice(keys), chance.random()
    if what < 0.5:
        table[key] = chance.choice(JUNK)
    elif what < 0.7:
        del table[key]
    elif isinstance(table, dict):
        table[chance.choice(["t", "val", "dur", "lost", "seq", "load", "sent_bytes", "UNITS", "IDX", "x", "\x1b"])] = chance.choice(JUNK)
    else:
        table.insert(chance.randrange(len(table) + 1), copy.deepcopy(table[key]))
    return made


@pytest.mark.slow
def test_no_file_makes_it_fall_over(tmp_path: Path) -> None:
    """A damaged file gives a valid run or an error of one line, quickly."""
    chance, started = random.Random(4), time.process_time()
    seeds = [files.one(), files.one(samples=False), files.two(), files.three(), files.four()]
    path = tmp_path / "fuzz.flent"
    outcomes = {True: 0, False: 0}
    for turn in range(400):
        value = chance.choice(seeds)
        for _ in range(chance.randint(1, 4)):
            value = mutated(value, chance)
        data = bytearray(json.dumps(value).encode())
        if turn % 4 == 0:
            for _ in range(chance.randint(1, 8)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(bytes(data))
        try:
            run = open_run(path)
            for one in run.meta.series:
                run.arrays(one)
            outcomes[True] += 1
        except StoreError as error:
            assert "\n" not in str(error) and str(error).isprintable()
            outcomes[False] += 1
    assert min(outcomes.values()) > 40, outcomes
    assert time.process_time() - started < 60


@pytest.mark.slow
def test_a_minute_of_sixty_series_is_read_in_a_tenth_of_a_second(tmp_path: Path) -> None:
    """The best of several times; json.loads of the same text must take at least a third of it."""
    path = files.write(tmp_path / "large.flent.gz", files.large())
    text = gzip.decompress(path.read_bytes())
    open_run(path)
    mine, theirs = [], []
    for _ in range(7):  # of this process, because of other load
        started = time.process_time()
        run = open_run(path)
        mine.append(time.process_time() - started)
        started = time.process_time()
        json.loads(text)
        theirs.append(time.process_time() - started)
    assert len(run.meta.series) == 60
    print(f"figure: import of 60 series of 60 s: {min(mine) * 1e3:.0f} ms (its JSON alone: {min(theirs) * 1e3:.0f} ms)")
    assert min(mine) < max(0.1, 4 * min(theirs))


# ------------------------------------------------------------------------------------------------------------------ export


def exported(tmp_path: Path, source: Path, *options: str) -> dict[str, Any]:
    target = tmp_path / "out.flent.gz"
    assert export.main([str(source), "-o", str(target), "--force", *options]) == 0
    made: dict[str, Any] = json.loads(gzip.decompress(target.read_bytes()), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return made


def test_there_and_back_again(tmp_path: Path) -> None:
    source = files.write(tmp_path / "x.flent.gz", files.four())
    made = exported(tmp_path, source, "--step", "200ms")
    assert made["version"] == 4 and set(made) == {"version", "metadata", "x_values", "results", "raw_values"}
    assert all(len(series) == len(made["x_values"]) for series in made["results"].values())
    meta, before = made["metadata"], files.four()["metadata"]
    assert {key: meta[key] for key in ("NAME", "TITLE", "HOST", "HOSTS", "LOCAL_HOST", "LENGTH", "TOTAL_LENGTH", "STEP_SIZE", "IP_VERSION")} == {
        key: before[key] for key in ("NAME", "TITLE", "HOST", "HOSTS", "LOCAL_HOST", "LENGTH", "TOTAL_LENGTH", "STEP_SIZE", "IP_VERSION")
    }
    icmp = [(round(point["t"], 4), point["val"], point["seq"]) for point in made["raw_values"]["Ping (ms) ICMP"]]
    assert icmp == [(round(point["t"], 4), point["val"], point["seq"]) for point in files.ping(lost=(3, 4))], "when each came back"
    udp = made["raw_values"]["Ping (ms) UDP EF"]
    assert udp[7]["lost"] is True and udp[7]["lost_dir"] == "up" and "val" not in udp[7]
    assert (udp[0]["owd_up"], udp[0]["owd_down"]) == (9.0, 12.0)
    rates = [point for point in made["raw_values"]["TCP upload"] if "dur" in point]
    assert len(rates) == 40 and all(point["val"] == pytest.approx(8.0) and point["dur"] == pytest.approx(0.25) for point in rates)
    assert [point["tcp_cwnd"] for point in made["raw_values"]["TCP upload"] if "tcp_cwnd" in point] == list(range(10, 25)), "beside the rates"
    assert [point["dropped"] for point in made["raw_values"]["qdisc_stats_near"]] == [0] + [2] * 9
    again = files.write(tmp_path / "again.flent.gz", made)
    first, second = open_run(source), open_run(again)
    added = {("Ping (ms) avg", "value")}  # the sums and averages that Flent declares
    assert {(one.name, one.kind) for one in first.meta.series} | added == {(one.name, one.kind) for one in second.meta.series}
    assert second.arrays(second.series("TCP upload"))["bytes"].tolist() == pytest.approx(first.arrays(first.series("TCP upload"))["bytes"].tolist(), abs=2)


def test_the_same_run_gives_the_same_bytes_and_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = files.write(tmp_path / "x.flent.gz", files.four())
    target = tmp_path / "y.flent.gz"
    assert export.main([str(source), "-o", str(target)]) == 0
    first = target.read_bytes()
    assert export.main([str(source), "-o", str(target)]) == 1
    assert "exists already" in capsys.readouterr().err and target.read_bytes() == first
    assert export.main([str(source), "-o", str(target), "--force"]) == 0 and target.read_bytes() == first
    for wrong in (["x", "y", "-o", "z.flent"], ["x", "-o", "z.zip"], ["x", "--step", "0"], []):
        with pytest.raises(SystemExit) as status:
            export.main(wrong)
        assert status.value.code == 2
    assert export.main([str(source), "-D", str(tmp_path / "nowhere")]) == 2
    assert export.main([str(tmp_path / "missing.ktrxer"), "-D", str(tmp_path)]) == 1
    assert not list(tmp_path.glob(".*")), "nothing half written"


def test_sums_are_of_windows_in_which_every_flow_was_seen(tmp_path: Path) -> None:
    value = files.four()
    value["metadata"] |= {"NAME": "tcp_nup", "SERIES_META": {f"TCP upload::{i}": {"UNITS": "Mbits/s", "RUNNER": "NetperfDemoRunner", "IDX": i} for i in (1, 2)}}
    value["raw_values"] = {"TCP upload::1": files.flow(3.0), "TCP upload::2": files.flow(5.0, count=20, start=3.0)}
    value["results"] = {name: files.grid() for name in value["raw_values"]}
    made = exported(tmp_path, files.write(tmp_path / "x.flent.gz", value), "--step", "200ms")
    at = dict(zip(made["x_values"], made["results"]["TCP upload sum"], strict=True))
    each = {name: dict(zip(made["x_values"], made["results"][name], strict=True)) for name in value["raw_values"]}
    assert each["TCP upload::1"][1.0] == pytest.approx(3.0) and each["TCP upload::2"][1.0] is None and at[1.0] is None
    assert at[4.0] == pytest.approx(8.0) and made["results"]["TCP upload avg"][20] == pytest.approx(4.0)
    assert made["metadata"]["TEST_PARAMETERS"]["upload_streams"] == "2"
    assert made["metadata"]["SERIES_META"]["TCP upload sum"]["MEAN_VALUE"] == pytest.approx(8.0)
