# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands `ktrxer runs`, `summary` and `tests`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ktrxer.cli import main
from ktrxer.commands.summary import WHERE
from ktrxer.store import RunWriter, open_run
from synthetic import synthetic

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    synthetic(place, seconds=14, delay=3, title="\x1b[31mred\n<script>alert(1)</script>", name="one")
    synthetic(place, seconds=14, delay=3, seed=8, name="two")
    (place / "broken.ktrxer").write_bytes(b"PK\5\6 or so")
    writer = RunWriter(place, open_run(place / "two.ktrxer").meta, "cut")
    writer.append("value", {"series": [], "t_ns": [], "value": []})
    writer.meta.verdict = None
    writer.sync()
    writer.abandon()
    return place


def say(capsys, *words):
    status = main([str(word) for word in words])
    told = capsys.readouterr()
    assert "\x1b[31m" not in told.out + told.err and "\x1b[31m" not in told.err, "no title moves a cursor"
    return status, told.out, told.err


def test_runs(directory, capsys):
    status, out, err = say(capsys, "runs", directory)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 5 and lines[0].split() == ["when", "test", "title", "target", "length", "verdict", "file"]
    assert any("cut off" in line and "cut.ktrxer.part" in line for line in lines) and any("damaged" in line and "broken" in line for line in lines)
    assert sum("valid" in line for line in lines) == 2
    made = json.loads(say(capsys, "runs", directory, "--json")[1])
    assert sorted(entry["state"] for entry in made["runs"]) == ["cut off", "damaged", "finished", "finished"]
    assert say(capsys, "runs", directory / "none")[0] == 1


def test_many_runs_as_one_data_set(directory, capsys, tmp_path):
    import pyarrow.dataset

    status, out, err = say(capsys, "runs", directory, "--parquet", tmp_path / "all")
    assert (status, err) == (0, "") and out.startswith("3 runs in ")
    table = pyarrow.dataset.dataset(tmp_path / "all" / "latency").to_table()
    assert len(table) == 2 * 4 * 1400 and set(table.column("name").to_pylist()) == {
        "Ping (ms) ICMP", "Ping (ms) UDP BE", "Ping (ms) UDP BK", "Ping (ms) UDP EF"}
    assert len(pyarrow.dataset.dataset(tmp_path / "all" / "runs.parquet").to_table()) == 3
    assert say(capsys, "runs", tmp_path, "--parquet", tmp_path / "x") == (1, "", "ktrxer runs: no readable runs\n")


def test_summary(directory, capsys):
    status, out, err = say(capsys, "summary", directory / "one.ktrxer", "--series")
    assert (status, err) == (0, "")
    # 48 Mbit/s up and twice that down, minus the ramp; a queue of about 80 ms.
    words = {line.split("  ")[0]: line for line in out.splitlines()}
    assert "Mbit/s" in words["TCP upload"] and "verdict: valid" in out and "TCP download CS5" in out
    made = json.loads(say(capsys, "summary", directory / "one.ktrxer", "--json")[1])
    rates = {t["name"]: t["mean_mbps"] for t in made["throughput"]}
    assert rates["TCP upload"] == pytest.approx(45, rel=0.1) and rates["TCP download"] == pytest.approx(2 * rates["TCP upload"], rel=0.1)
    assert rates["TCP totals"] == pytest.approx(rates["TCP upload"] + rates["TCP download"], rel=1e-3)
    trip = next(one for one in made["latency"] if one["name"] == "round trip")
    assert trip["idle"]["p50"] == pytest.approx(10, rel=0.05) and 30 < trip["loaded"]["p50"] < 120
    assert {"name", "unit", "mean", "p50", "p99", "count"} <= made["series"][0].keys() and made["verdict"] == "valid"
    assert made["grade"]["scale"].startswith("A+ < 5 ms") and made["responsiveness"]["self_rpm"] > 0


def test_kinds_of_probes_are_told_apart(tmp_path, capsys):
    """The ICMP answers come 45 ms later here. A pooled round trip would be neither kind's, and not the sum of up and down."""
    path = synthetic(tmp_path, seconds=14, delay=2, icmp_more_ms=45)
    made = json.loads(say(capsys, "summary", path, "--json")[1])
    rows = {(one["name"], one["probes"]): one for one in made["latency"]}
    names = ["round trip", "up", "down", "own queue", "far queue"]
    assert list(rows) == [*((name, "UDP") for name in names), ("round trip", "ICMP")]
    udp, up, down, *_, icmp = rows.values()
    assert udp["idle"]["p50"] == pytest.approx(up["idle"]["p50"] + down["idle"]["p50"], rel=0.01) == pytest.approx(10, rel=0.01)
    assert icmp["idle"]["p50"] == pytest.approx(55, rel=0.01) and icmp["idle"]["count"] * 3 == pytest.approx(udp["idle"]["count"], rel=0.01)
    # The grade and the responsiveness name their kind of probes, and use only that kind.
    assert made["grade"]["probes"] == made["responsiveness"]["probes"] == "UDP"
    assert made["grade"]["added_ms"] == pytest.approx(udp["loaded"]["p50"] - udp["idle"]["p50"])
    mean = 60_000 / made["responsiveness"]["foreign_rpm"]
    assert mean == pytest.approx(udp["loaded"]["mean"], rel=0.05) and mean < icmp["loaded"]["mean"] - 40
    # Classes share a row; a line shows the median of each, so that a queue's preference is visible.
    medians = udp["classes_ms"]
    assert medians.keys() == {"BE", "BK", "EF"} and medians["EF"] < 0.8 * medians["BE"] and icmp["classes_ms"] == {}
    assert medians["EF"] < udp["loaded"]["p50"] < max(medians.values())
    out = say(capsys, "summary", path)[1]
    assert "\nround trip, UDP " in out and "\nround trip, ICMP " in out and "the p50 of the UDP round trip" in out and "(UDP probes " in out
    assert "round trip, UDP by class, p50 loaded: BE " in out


def test_a_kind_that_no_answer_came_to_carries_no_grade(tmp_path, capsys):
    """UDP probes pass only before the load: the grade is that of ICMP, and is labelled so. With ICMP only, just the label changes."""
    path = synthetic(tmp_path, seconds=14, delay=2, udp_answered_until_s=2)
    made = json.loads(say(capsys, "summary", path, "--json")[1])
    assert [(one["name"], one["probes"], one["loaded"] is None) for one in made["latency"]] == [
        *((name, "UDP", True) for name in ("round trip", "up", "down", "own queue", "far queue")), ("round trip", "ICMP", False)]
    assert made["grade"]["probes"] == made["responsiveness"]["probes"] == "ICMP" and 20 < made["grade"]["added_ms"] < 120


def test_a_load_that_did_not_get_through_carries_no_grade(tmp_path, capsys):
    """All flows failed: the load phase had no load."""
    path = synthetic(tmp_path, seconds=14, delay=2, rate_mbit=1e-6)
    made = json.loads(say(capsys, "summary", path, "--json")[1])
    assert made["latency"] and made["grade"] is None and made["responsiveness"] is None
    out = say(capsys, "summary", path)[1]
    assert "grade" not in out and "responsiveness" not in out


def test_summary_of_what_is_not_whole(directory, capsys, tmp_path):
    status, out, err = say(capsys, "summary", directory)
    assert status == 1 and err.count("\n") == 1 and "broken.ktrxer: not a run" in err
    assert out.count("verdict: valid") == 2 and "The run is not finished: if no `ktrxer run` writes to it, `ktrxer recover` closes it" in out
    assert say(capsys, "summary", tmp_path / "none.ktrxer")[0] == 1
    assert say(capsys, "summary", tmp_path) == (1, "", f"ktrxer summary: {tmp_path}: no runs there (*.ktrxer, *.ktrxer.part, *.flent.gz); {WHERE}\n")


def test_tests(capsys):
    status, out, err = say(capsys, "tests")
    found = {line.split()[0]: line.split(maxsplit=1)[1] for line in out.splitlines()[:-2]}
    assert (status, err) == (0, "") and len(found) > 80 and found["ping"] == "ICMP and UDP round trips on an idle path"
    status, out, _ = say(capsys, "tests", "tcp_nup")
    assert "\n  upload_streams (1 to 1,000, or num_cpus; default num_cpus): how many flows" in out and "  TCP upload::1 " in out
    status, out, _ = say(capsys, "tests", "rtt_fair", "rrul_icmp")
    assert "Far ends (-H): 4" in out and "to HOST4" in out and "\n  ping_labels (list: text; default empty): the end of" in out
    assert "Steps: stream 1 0 to 5 s; stream 1, stream 2 5 to 65 s" in say(capsys, "tests", "tcp_2up_delay")[1]
    status, out, _ = say(capsys, "tests", "http")
    assert status == 0 and ("): http_delay, http_delay_cdf" in out or "no runner is called 'http'" in out)
    made = json.loads(say(capsys, "tests", "--json")[1])
    assert {"name", "summary", "series", "parameters", "plots"} <= made["tests"][0].keys()
    assert say(capsys, "tests", "tcp_nop")[0] == 2


def test_a_file_of_another_kind_is_named_as_such(directory, capsys, tmp_path):
    """Each message states why the file is not a run, and which files the command reads."""
    assert say(capsys, "summary", "/etc/passwd") == (1, "", (
        "ktrxer summary: /etc/passwd: not a run: `ktrxer run` stores NAME.ktrxer; a data file of Flent is called NAME.flent.gz\n"))
    (tmp_path / "cut.ktrxer").write_bytes((directory / "one.ktrxer").read_bytes()[:5000])
    assert "cut.ktrxer: not a run, or a damaged one: its end is missing: copy the whole file again" in say(capsys, "summary", tmp_path / "cut.ktrxer")[2]
    status, out, err = say(capsys, "import", directory / "one.ktrxer", "-D", tmp_path)
    assert (status, out) == (1, "") and err.count("\n") == 1
    assert "one.ktrxer: is a run of ktrxer already; import reads Flent's data files; summary, plot and report read this one" in err
    status, out, err = say(capsys, "import", "/etc/passwd", "-D", tmp_path)
    assert (status, out) == (1, "") and err.startswith("ktrxer import: /etc/passwd: not a data file of Flent: not JSON")
    assert [path.name for path in tmp_path.iterdir()] == ["cut.ktrxer"]


@pytest.mark.parametrize(("words", "expected"), [
    (["run"], "ktrxer run: TEST is missing: a name that `ktrxer tests` lists, or the path of a test of your own (see `ktrxer run --help`)\n"),
    (["run", "rrul", "far"], "ktrxer run: 'far' is one word too many; the far end is an option: `ktrxer run rrul -H far` (see `ktrxer run --help`)\n"),
    (["run", "--bogus"], "ktrxer run: --bogus: no such option (see `ktrxer run --help`)\n"),
    (["run", "-Z"], "ktrxer run: -Z: no such option (see `ktrxer run --help`)\n"),
    (["run", "-Zx", "rrul"], "ktrxer run: -Z: no such option (see `ktrxer run --help`)\n"),
    (["run", "-Hfar"], "ktrxer run: TEST is missing: a name that `ktrxer tests` lists, or the path of a test of your own (see `ktrxer run --help`)\n"),
    (["run", "--", "-Z"], "ktrxer run: --host is missing: the far end, a host on which `ktrxer serve` runs; may be given several times, for a test with several far ends (see `ktrxer run --help`)\n"),
    (["run", "rrul", "--hots", "far"], "ktrxer run: --hots: no such option; did you mean --host? (see `ktrxer run --help`)\n"),
    (["summary"], "ktrxer summary: RUN is missing: a run, finished or not; a file of Flent's; a directory of them (see `ktrxer summary --help`)\n"),
    (["recover"], "ktrxer recover: NAME.ktrxer.part is missing: the directory that `ktrxer run` left (see `ktrxer recover --help`)\n"),
])
def test_what_is_missing_is_explained(words, expected, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2 and capsys.readouterr().err == expected


def test_one_run_is_no_directory(directory, capsys):
    path = directory / "one.ktrxer"
    assert say(capsys, "runs", path) == (1, "", f"ktrxer runs: {path}: not a directory; `ktrxer summary` shows one run\n")


def test_a_command_line_is_read_before_anything_large_is_loaded():
    """`ktrxer run --help` and usage errors load no slow module."""
    code = "import sys; from ktrxer import cli; from ktrxer.commands import run, tests, runs, summary, recover; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pyarrow", "rich", "asyncio", "matplotlib"} & set(loaded)


@pytest.mark.parametrize(("command", "few"), [("plot", True), ("run", True), ("", True), ("batch", False), ("serve-http", False), ("view", False)])
def test_only_a_command_that_ends_soon_collects_garbage_seldom(command, few):
    """The server of `view` grew by 100 MB in 480 requests, because the cycles of its pictures stayed."""
    code = f"""if True:
        import gc, runpy, sys
        usual = gc.get_threshold()
        from ktrxer import cli
        cli.main = lambda: print(gc.get_threshold() > usual, gc.get_threshold() == usual)
        sys.argv = ["ktrxer", *{command.split()!r}]
        runpy.run_path({str(ROOT / "python/ktrxer-py")!r})"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == [str(few), str(not few)], done.stderr


def test_a_run_does_not_load_pandas(tmp_path):
    """pyarrow would, where it is installed. Here a module of this name stands for it; afterwards a recipe may import it."""
    (tmp_path / "pandas.py").write_text("__version__ = '3.0.0'")
    code = f"""if True:
        import sys
        folder = {str(tmp_path)!r}
        sys.path.insert(0, folder)
        from ktrxer.imports import without_pandas
        without_pandas()
        import pyarrow as pa
        pa.array([1, 2])
        assert "pandas" not in sys.modules
        import pandas
        assert pandas.__file__.startswith(folder)"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_nothing_is_imported_while_a_run_goes_on(tmp_path):
    """An import takes seconds on a busy machine. Output that is read so late would have the time of that read."""
    code = f"""if True:
        import sys
        from pathlib import Path
        from ktrxer.catalogue.recipe import Setting, run
        from ktrxer.run.schedule import make
        from ktrxer.run.session import S, Session
        from ktrxer.runners import Options
        from ktrxer.store import Host, Meta, Zero
        meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), 0)
        session = Session(make(run("processor", "x", interval_ns=S // 10), Setting("far", 1.1, 0), Options()), meta, Path({str(tmp_path)!r}))
        loop, imported = session._loop, []
        def watched():
            before = set(sys.modules)
            loop()
            imported.extend(set(sys.modules) - before)
        session._loop = watched
        session.run()
        print(*imported)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.slow
def test_the_end_of_a_run_imports_no_more_than_it_needs(tmp_path):
    """A run is closed, stored, read again and summarised. The imports of what is not used would take a tenth of its processor time."""
    path = synthetic(tmp_path, seconds=4, delay=1, seed=1, name="whole")
    code = f"""if True:
        import sys
        from pathlib import Path
        from ktrxer.commands import run as command
        from ktrxer.imports import without_pandas
        without_pandas()
        from ktrxer.run import closing, session
        from ktrxer.store import open_run, writer
        from ktrxer.store.run import Run
        read = open_run(Path({str(path)!r}))
        tables = {{kind: read.table(kind) for kind in read.kinds() if kind != "events"}}  # the text of a finished file needs pyarrow.compute
        run = Run(read.path, read.meta, {{kind: lambda kind=kind: tables[kind] for kind in tables}})
        tables |= closing.close(run)
        writer.write_finished(Path({str(tmp_path / 'again.ktrxer')!r}), run.meta, tables, Path({str(tmp_path / '.again')!r}))
        from ktrxer.summary import figures, text
        text.show(figures.summarise(open_run(Path({str(tmp_path / 'again.ktrxer')!r}))))
        print(*sys.modules, file=sys.stderr)"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "throughput" in done.stdout
    loaded = set(done.stderr.split())
    assert {"numpy", "pyarrow.parquet", "ktrxer.summary.figures"} <= loaded
    assert {"pandas", "pyarrow.compute", "numpy.ma", "ktrxer.run.again", "ktrxer.statistics.voice", "concurrent.futures"} & loaded == set()


def test_without_its_packages_it_says_which_and_what_now(directory):
    words = ["summary", str(directory / "one.ktrxer")]
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); from ktrxer.cli import main; sys.exit(main({words!r}))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith("ktrxer summary: it needs the Python package ")


@pytest.mark.slow
def test_the_way_to_duckdb_works_in_an_environment_without_pip(tmp_path):
    """`make install` leaves no pip in its environment. Only the first half of the printed command needs no network."""
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    code = f"import sys; sys.path[:0] = {[str(ROOT / 'python'), *sys.path]!r}; sys.modules['duckdb'] = None; from ktrxer.cli import main; sys.exit(main(['query', 'SELECT 1']))"
    done = subprocess.run([environment / "bin/python", "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    first, second = done.stderr.split("`")[1].removeprefix("sudo ").split(" && ")
    assert second.endswith(" -m pip install duckdb")
    subprocess.run(first.split(), check=True, capture_output=True)
    subprocess.run([*second.removeprefix("sudo ").split()[:3], "--version"], check=True, capture_output=True)


PROGRAMS = [
    path
    for folder in ("scripts", "tests")
    for path in sorted((ROOT / folder).iterdir())
    if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python3")
]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_a_program_that_is_asked_for_help_does_nothing_else(program):
    done = subprocess.run([sys.executable, program, "--help"], capture_output=True, text=True, env={"PATH": "/nonexistent"}, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("usage: ") and not done.stderr
