# SPDX-License-Identifier: MIT OR Apache-2.0
"""Groups of runs: their differences, the intervals' coverage, and `ktrxer compare`."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import synthetic as made_runs
from compared import P95, RATE, START, group, member
from ktrxer.analyse import cache as caches
from ktrxer.analyse import grouping
from ktrxer.analyse.collection import collect
from ktrxer.analyse.compare import Margin, check, compare, primary_keys, sentences
from ktrxer.analyse.figure import Figure
from ktrxer.analyse.figures import narrow, of_run, of_summary
from ktrxer.analyse.grouping import Group, GroupingError
from ktrxer.commands import compare as command
from ktrxer.statistics.difference import Difference, difference, holm, trend
from ktrxer.store import Phase, open_run
from ktrxer.summary.figures import summarise

# ------------------------------------------------------------------------------------------------------------------ estimators


def drawn(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Values with a mean of 100."""
    if kind == "normal":
        return rng.normal(100, 8, count)
    if kind == "skewed":
        return 100 * rng.lognormal(-0.125, 0.5, count)
    return rng.normal(94, 3, count) + 60 * (rng.random(count) < 0.1)  # one run in ten has a spike


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "skewed", "spikes"])
@pytest.mark.parametrize(("n", "m"), [(8, 8), (10, 30), (30, 30)])
def test_intervals_hold_the_difference_as_often_as_stated(kind, n, m):
    rng = np.random.default_rng(11)
    pairs = 1000 if (n, m) == (30, 30) else 400
    found = [difference(drawn(rng, kind, n), 1.2 * drawn(rng, kind, m), resamples=499) for _ in range(pairs)]
    share = np.mean([one.low <= 20 <= one.high for one in found])
    assert 0.93 - 2 * math.sqrt(0.05 * 0.95 / pairs) <= share <= (0.97 if n == 30 else 0.99)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "skewed"])
@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 4), (4, 4)])
def test_intervals_of_few_runs_are_not_wider_than_stated(kind, n, m):
    rng = np.random.default_rng(12)
    found = [difference(drawn(rng, kind, n), drawn(rng, kind, m)) for _ in range(3000)]
    share = np.mean([one.low <= 0 <= one.high for one in found])
    assert 0.93 <= share <= 0.97 + 2 * math.sqrt(0.03 * 0.97 / 3000)
    assert np.mean([one.p < 0.05 for one in found]) == pytest.approx(1 - share, abs=1e-9)


def test_the_interval_of_few_runs_is_that_of_welch():
    """As `t.test(4:6, 1:3)` of R."""
    found = difference([1, 2, 3], [4, 5, 6])
    assert (found.low, found.high, found.p) == pytest.approx((0.7330, 5.2670, 0.02131), abs=1e-4)


def test_false_alarms_over_many_figures_are_five_percent_at_most():
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(400):
        p = [difference(drawn(rng, "skewed", 12), drawn(rng, "skewed", 12), resamples=499).p for _ in range(4)]
        alarms += min(holm([one for one in p if one is not None])) < 0.05
    assert alarms / 400 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


def test_difference_of_equal_runs_in_virtual_time():
    assert difference([9.5] * 5, [9.5] * 5) == Difference(9.5, 9.5, 0.0, 5, 5, 0.0, 0.0, 1.0, None, 0.5)
    made = difference([9.5] * 5, [10.0] * 5)
    assert (made.difference, made.low, made.high, made.p, made.superiority) == (0.5, 0.5, 0.5, 0.0, 1.0)


def test_two_runs_have_no_interval():
    made = difference([1.0, 2.0], [3.0, 4.0, 5.0])
    assert (made.difference, made.low, made.high, made.p) == (2.5, None, None, None)


@pytest.mark.parametrize(("a", "b"), [([], [1.0]), ([1.0], []), ([math.inf], [1.0]), ([math.nan], [1.0])])
def test_values_without_a_mean_are_refused(a, b):
    with pytest.raises(ValueError, match="empty or has a value that is not finite"):
        difference(a, b)


def test_difference_repeats_and_changes_its_sign():
    rng = np.random.default_rng(5)
    a, b = rng.normal(10, 1, 20), rng.normal(11, 1, 20)
    assert difference(a, b) == difference(a, b)
    there, back = difference(a, b), difference(b, a)
    assert there.difference == -back.difference
    assert there.superiority == pytest.approx(1 - back.superiority)
    assert there.hedges_g == pytest.approx(-back.hedges_g)
    assert there.hedges_g == pytest.approx(1, abs=0.7)


def test_holm_by_the_worked_example_of_its_definition():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_trend_finds_a_drift_and_its_slope():
    rng = np.random.default_rng(2)
    t = np.arange(20) * 300.0
    found = trend(t, 0.5 * t / 3600 + rng.normal(0, 0.05, 20))
    assert found is not None
    assert found.p < 0.01
    assert found.per_hour == pytest.approx(0.5, rel=0.2)
    alarms = sum(one.p < 0.01 for _ in range(300) if (one := trend(t, rng.normal(0, 1, 20), 499)) is not None)
    assert alarms <= 9
    assert trend(t[:5], t[:5]) is None


# ------------------------------------------------------------------------------------------------------------------ runs


def both(p95_a: list[float], p95_b: list[float], apart: bool = False):
    first = [2.0 * i for i in range(len(p95_a))]
    second = [(100 if apart else 1) + 2.0 * i for i in range(len(p95_b))]
    known = {one.key: one for one in (P95, RATE)}
    return compare(group("A", p95_a, first), group("B", p95_b, second), known)


def test_sentences_say_how_much_and_how_sure():
    rng = np.random.default_rng(1)
    made = both(list(rng.normal(50, 2, 12)), list(rng.normal(62.3, 2, 12)))
    first, second = sentences(made)
    assert first.startswith("UDP round trip, loaded, p95: B is 1")
    assert " ms (2" in first
    assert first.endswith("): worse")
    assert second.startswith("TCP upload, mean rate: the same (B - A is -0.0") and second.endswith(", within the margin of 2.4 Mbit/s)")
    assert made.rows[0].outcome == "higher"
    assert not made.notes


def test_no_difference_is_not_called_the_same_when_the_interval_is_wide():
    rng = np.random.default_rng(1)
    made = both(list(rng.normal(50, 20, 6)), list(rng.normal(50, 20, 6)))
    assert made.rows[0].outcome == "unclear"
    row = made.rows[0]
    assert row.runs_needed is not None and row.runs_needed > 6
    assert ": not decided (B - A is " in sentences(made)[0] and f"about {row.runs_needed} runs in each group would decide" in sentences(made)[0]


def test_other_figures_do_not_take_part_in_the_correction():
    """112 and 14.8 ms beside 40 figures: the delay is decided, because they are exploratory."""
    rng = np.random.default_rng(4)
    more = [Figure(f"value.other_{i}", f"other {i}", "ms", 0.0, "lower") for i in range(40)]
    a, b = group("A", [112.0, 118, 105], [0, 2, 4]), group("B", [14.8, 15.9, 13.1], [1, 3, 5])
    for one in (*a.members, *b.members):
        one.figures.update({figure.key: float(rng.normal(10, 3)) for figure in more})
    alone, among = (compare(a, b, {one.key: one for one in known}) for known in ([P95], [P95, *more]))
    assert alone.rows[0].outcome == among.rows[0].outcome == "lower" and among.rows[0].p_corrected == alone.rows[0].p_corrected
    assert [row.figure.key for row in among.rows if row.primary] == [P95.key] and all(row.p_corrected is None for row in among.rows if not row.primary)


def test_a_difference_that_does_not_matter_is_none():
    """256 ns of 50 ms, and of two delays below a millisecond: the interval excludes zero, and the difference is within the margin."""
    for low, gap in ((50.0, 0.000256), (0.2, 0.3)):
        made = both([low + 1e-9 * i for i in range(6)], [low + gap + 1e-9 * i for i in range(6)])
        row = made.rows[0]
        assert row.found.low > 0 and row.outcome == "same", row
        assert "the same" in sentences(made)[0]


def test_a_group_against_itself_declares_nothing():
    rng = np.random.default_rng(7)
    for _ in range(40):
        values = list(rng.normal(50, 0.0003, 12))
        rng.shuffle(values)
        assert both(values[:6], values[6:]).rows[0].outcome == "same"


@pytest.mark.parametrize(("keys", "declared", "expected"), [
    (["udp.rtt.load.p50", "added", "rate.tcp_upload", "rate.tcp_download", "rate.totals", "loss.idle", "loss.load", "rpm"], [],
     ["added", "rate.tcp_upload", "rate.tcp_download", "loss.load"]),
    (["udp.rtt.idle.p50", "loss.idle"], [], ["udp.rtt.idle.p50", "loss.idle"]),
    (["rate.a", "rate.b", "rate.c", "rate.tcp_totals"], [], ["rate.tcp_totals"]),
    (["estimate.capacity_up", "loss.load"], [], ["estimate.capacity_up", "loss.load"]),
    (["value.x"], [], ["value.x"]),
    (["added", "rpm", "rate.x"], ["rpm", "rate.*"], ["rpm", "rate.x"]),
    (["added"], ["none*"], ["added"]),
    ([], [], []),
])  # fmt: skip
def test_primary_outcomes(keys, declared, expected):
    assert primary_keys([Figure(key, key, "ms", 0.0, "lower", key.endswith("p50")) for key in keys], declared) == expected


def test_groups_that_follow_each_other_are_named():
    made = both([50.0, 51, 52, 53], [60.0, 61, 62, 63], apart=True)
    assert any("all runs of A were made before those of B" in note for note in made.notes)


def test_a_drift_within_the_groups_is_named():
    made = both([50 + i for i in range(12)], [60 + i for i in range(12)])
    assert made.rows[0].drift is not None
    assert made.rows[0].drift.per_hour == pytest.approx(30, rel=0.1)
    assert any("change with time" in note for note in made.notes)


def test_groups_of_one_run_have_no_interval_and_no_margin():
    made = both([50.0], [60.0])
    assert made.rows[0].outcome == "too few runs"
    assert any("at least 3 runs" in note for note in made.notes)
    assert not check(made, [Margin(P95.key, 0.5, True)])[0].held


def test_quantiles_among_lost_probes_have_no_mean():
    made = both([50.0, math.inf, 52, 53], [60.0, 61, 62, 63])
    assert (made.rows[0].outcome, made.rows[0].infinite_a, made.rows[0].found) == ("lost", 1, None)
    assert not check(made, [Margin(P95.key, 10.0, True)])[0].held
    json.dumps(made.as_json(), allow_nan=False)


def test_a_figure_that_some_runs_do_not_have_is_counted_and_holds_no_margin():
    a, b = group("A", [50.0, 51, 52, 53], [0, 2, 4, 6]), group("B", [50.0, 51, 52, 53], [1, 3, 5, 7])
    del b.members[1].figures[RATE.key]
    made = compare(a, b, {RATE.key: RATE})
    assert (made.rows[0].missing_a, made.rows[0].missing_b) == (0, 1)
    assert not check(made, [Margin(RATE.key, 0.5, True)])[0].held


@pytest.mark.parametrize(("margin", "held"), [(Margin(P95.key, 0.10, True), False), (Margin(P95.key, 0.5, True), True), (Margin(P95.key, 30, False), True)])
def test_margin_is_held_only_where_the_interval_shows_it(margin, held):
    rng = np.random.default_rng(1)
    made = both(list(rng.normal(50, 2, 12)), list(rng.normal(60, 2, 12)))
    assert check(made, [margin])[0].held is held


def test_a_margin_of_an_unknown_figure_is_not_held():
    assert not check(both([1.0, 2, 3], [1.0, 2, 3]), [Margin("none.such", 1, True)])[0].held


def test_runs_that_differ_from_their_group_are_left_out_by_name():
    one = Group("A", [member(f"r{i}", i, kernel="6.18.0" if i else "5.10.0") for i in range(5)])
    grouping.alike(one)
    assert [out.run for out in one.left_out] == ["r0"]
    assert "kernel is 5.10.0; 4 runs of the group have 6.18.0" in one.left_out[0].reason
    assert len(one.members) == 4


def test_a_group_of_two_halves_is_refused_unless_mixed():
    halves = [member(f"r{i}", i, kernel="6.18.0" if i % 2 else "5.10.0") for i in range(4)]
    with pytest.raises(GroupingError, match=r"mixes runs of different kernel: .*`--mix kernel`"):
        grouping.alike(Group("A", list(halves)))
    mixed = Group("A", list(halves))
    grouping.alike(mixed, ["kernel"])
    assert len(mixed.members) == 4


def test_runs_that_are_not_valid_are_left_out_with_their_reason():
    one = Group("A", [member("good", 0), member("bad", 1, verdict="degraded")])
    one.members[1].facts.reasons.append("12 % of the probes were late")
    grouping.only_valid(one)
    assert [(out.run, out.reason) for out in one.left_out] == [("bad", "degraded: 12 % of the probes were late")]


def test_grouping_by_properties_settings_and_paths():
    runs = [member("a", 0, title="x"), member("b", 1, title="y"), member("c", 2, title="x")]
    assert [(one.name, len(one.members)) for one in grouping.by(runs, ["title"])] == [("x", 2), ("y", 1)]
    assert [one.name for one in grouping.by(runs, ["cc"])] == ["cubic"]
    assert grouping.value_of(made_runs.describe(8, 2, ""), "metadata/before/sysctls/net.ipv4.tcp_congestion_control") == "cubic"
    with pytest.raises(GroupingError, match="no property, setting or path of that name: 'nonesuch'"):
        grouping.by(runs, ["nonesuch"])


# ------------------------------------------------------------------------------------------------------------------ the command


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Four runs each of two depths of a queue, made alternately; with a title."""
    root = tmp_path_factory.mktemp("runs")
    for title, depth in (("long", 80), ("short", 40)):
        (root / title).mkdir()
        for i in range(4):
            path = made_runs.synthetic(root / title, seconds=8, delay=2, seed=100 * depth + i, title=title, depth_ms=depth + i, name=f"{title}{i}")
            edit(path, created=(START + timedelta(minutes=2 * i + (title == "short"))).isoformat())
    return root


def edit(path: Path, **fields: object) -> None:
    """Writes fields of meta.json anew."""
    from ktrxer.store.writer import write_finished

    run = open_run(path)
    tables = {kind: run.table(kind) for kind in run.kinds()}
    write_finished(path, replace(run.meta, **fields), tables, path.parent / ".edited.tmp")


@pytest.mark.slow
def test_two_groups_of_files(files, capsys):
    assert command.main([str(files / "long"), "--", "--no-cache", str(files / "short"), "--margin", "udp.rtt.load.p95=500%"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("A: long, 4 runs\nB: short, 4 runs\nthey differ in title: long | short\n")
    assert "delay that load adds to the p50: short is " in out and "exploratory; better" in out
    assert " lower than long (95 %: " in out
    assert not err


@pytest.mark.slow
def test_by_title_json_and_the_cache(files, capsys):
    assert command.main(["--by", "title", "--json", str(files / "long"), str(files / "short")]) == 0
    first = json.loads(capsys.readouterr().out)
    (one,) = first["comparisons"]
    assert [len(side["runs"]) for side in one["groups"]] == [4, 4]
    rtt = next(row for row in one["figures"] if row["key"] == "udp.rtt.load.p95")
    assert rtt["high"] < 0 < rtt["mean_b"]
    assert rtt["better"] == "lower"
    assert caches.file().exists()
    assert command.main(["--by", "title", "--json", str(files / "long"), str(files / "short")]) == 0
    assert json.loads(capsys.readouterr().out) == first


@pytest.mark.slow
def test_a_comparison_imports_no_more_than_it_needs(files, tmp_path):
    """The imports take longer than a comparison of figures from the cache."""
    words = ["compare", str(files / "long"), "--", str(files / "short")]
    code = f"import sys; from ktrxer.cli import main; main({words!r}); print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "PYTHONPATH": str(Path(command.__file__).parents[2]), "XDG_CACHE_HOME": str(tmp_path)}
    loaded = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert "B: short, 4 runs" in done.stdout
        loaded.append(set(done.stderr.split()))
    assert not {"ktrxer.runners", "ktrxer.catalogue", "ktrxer.places", "pandas", "rich"} & loaded[0]
    assert not {"pyarrow", "ktrxer.summary.figures", "multiprocessing"} & loaded[1]


def test_the_cache_is_used_and_a_changed_file_is_read_again(files, tmp_path):
    path = tmp_path / "run.ktrxer"
    path.write_bytes((files / "long" / "long0.ktrxer").read_bytes())
    read = []

    def opened(one):
        read.append(one)
        return open_run(one)

    first = collect([path], opened, tmp_path / "figures.sqlite")
    again = collect([path], opened, tmp_path / "figures.sqlite")
    assert len(read) == 1
    assert again.members[0].figures == first.members[0].figures == {one.key: one.value for one in of_summary(summarise(open_run(path)))}
    edit(path, title="changed")
    assert collect([path], opened, tmp_path / "figures.sqlite").members[0].value("title") == "changed"
    assert len(read) == 2


def test_the_light_figures_are_those_of_the_summary(files):
    """A comparison leaves out what it does not need: that changes no figure."""
    run, light = (open_run(files / "long" / "long0.ktrxer") for _ in range(2))
    assert of_run(narrow(light)) == of_run(run) == of_summary(summarise(run))
    assert "lateness_ns" not in light.table("latency").column_names


def test_a_sample_in_two_phases_of_one_name_counts_once(files):
    """Phases of a file of unknown origin may overlap."""
    run = open_run(files / "long" / "long0.ktrxer")
    expected = of_run(run)
    load = run.meta.phase("load")
    run.meta.phases += [Phase("load", load.from_ns + 10**9, load.to_ns - 10**9), Phase("load", load.from_ns + 10**9, load.to_ns)]
    assert of_run(run) == expected


def test_a_killed_process_is_named(files, tmp_path):
    """The run that ends its reader, and those that were not read because of it, are failures."""
    paths = []
    for i in range(8):
        paths.append(tmp_path / f"r{i}.ktrxer")
        paths[-1].write_bytes((files / "long" / "long0.ktrxer").read_bytes())
    found = collect(paths, killed_by_the_last, None)
    assert found.failures and len(found.failures) + len(found.members) == 8
    assert all("a process that reads files was killed" in one.text for one in found.failures)


def killed_by_the_last(path: Path):
    if path.name == "r7.ktrxer":
        os._exit(9)
    return open_run(path)


def test_a_path_in_meta_json_groups_runs_from_the_cache_too(files, capsys):
    key = "metadata/before/sysctls/net.ipv4.tcp_congestion_control"
    for _ in range(2):
        assert command.main(["--by", f"title,{key}", "--json", str(files / "long"), str(files / "short")]) == 0
        made = json.loads(capsys.readouterr().out)
        assert [side["name"] for side in made["comparisons"][0]["groups"]] == ["long cubic", "short cubic"]


def test_a_damaged_cache_is_no_cache(files, capsys):
    caches.file().parent.mkdir(parents=True)
    caches.file().write_bytes(os.urandom(5000))
    assert command.main([str(files / "long"), "--", str(files / "short")]) == 0
    assert "B: short, 4 runs" in capsys.readouterr().out


def test_margins_junit_and_markdown(files, tmp_path, capsys):
    junit, table = tmp_path / "out.xml", tmp_path / "out.md"
    words = ["--margin", "udp.rtt.load.p95=5%", "--margin", "rate.tcp_upload=20%", "--junit", str(junit), "--markdown", str(table)]
    assert command.main([*words, "--baseline", str(files / "long"), str(files / "short")]) == 0
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")
    assert "| UDP round trip, loaded, p95 (ms) |" in table.read_text()
    assert "\nA is long, B is short.\n" in table.read_text()
    capsys.readouterr()
    assert command.main([*words, "--baseline", str(files / "short"), str(files / "long")]) == 3
    assert "margin NOT shown: UDP round trip, loaded, p95: worse by at most " in capsys.readouterr().out
    suite = ElementTree.parse(junit).getroot()
    assert suite.get("failures") == "1"
    assert suite.find("testcase/failure") is not None


def test_names_from_files_are_no_markup(files, tmp_path):
    hostile = "</testsuite><script>|x|\n\x00\x1b[31m](javascript:1)"
    (tmp_path / "h").mkdir()
    for i in range(3):
        made_runs.synthetic(tmp_path / "h", seconds=8, delay=2, seed=i, title=hostile, name=f"h{i}")
    junit, table = tmp_path / "out.xml", tmp_path / "out.md"
    words = ["--margin", "50%", "--junit", str(junit), "--markdown", str(table)]
    command.main([*words, "--baseline", str(files / "long"), str(tmp_path / "h")])
    assert ElementTree.parse(junit).getroot().tag == "testsuite"
    text = table.read_text()
    assert "<script>" not in text.replace("\\<", "")
    assert "\x1b" not in text
    assert all(line.count("|") - line.count("\\|") == 11 for line in text.splitlines() if line.startswith("| "))


def test_runs_that_do_not_belong_are_named(files, tmp_path, capsys):
    folder = tmp_path / "mixed"
    folder.mkdir()
    for i in range(4):
        made_runs.synthetic(folder, seconds=8, delay=2, seed=i, title="mixed", name=f"m{i}")
    edit(folder / "m0.ktrxer", verdict="invalid", reasons=["all probes were lost"])
    edit(folder / "m1.ktrxer", targets=["another.example"])
    assert command.main([str(files / "long"), "--", str(folder)]) == 0
    err = capsys.readouterr().err
    assert "left out of mixed: m0.ktrxer: invalid: all probes were lost" in err
    assert "m1.ktrxer: target is another.example; 2 runs of the group have far.example" in err
    assert command.main(["--all", "--mix", "target", str(files / "long"), "--", str(folder)]) == 0
    assert "left out" not in capsys.readouterr().err
    assert command.main([str(files / "long"), "--", str(folder / "m0.ktrxer")]) == 1
    assert "group 'mixed' has no run to compare" in (err := capsys.readouterr().err)
    assert "`ktrxer compare --all` takes runs that are not valid, too" in err


def test_damaged_and_missing_files_are_named_and_the_rest_is_compared(files, tmp_path, capsys):
    (tmp_path / "bad.ktrxer").write_bytes(b"PK not a run")
    given = [str(files / "long"), str(tmp_path / "bad.ktrxer"), str(tmp_path / "absent.ktrxer"), "--", str(files / "short")]
    assert command.main(given) == 1
    out, err = capsys.readouterr()
    assert "A: long, 4 runs" in out
    assert "bad.ktrxer" in err
    assert "absent.ktrxer" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "two groups are needed"),
        (["--", "B"], "two groups are needed"),
        (["A", "--", "--all"], "two groups are needed"),
        (["--by", "title"], "no RUN"),
        (["--by", "title", "A", "--", "B"], "--by makes the groups itself"),
        (["--baseline", "A", "B", "--", "C"], "both name group A"),
        (["{long}", "--names", "one", "--", "{short}"], "expected two names"),
        (["{long}", "--margin", "x", "--", "{short}"], "expected N% or N"),
        (["{long}", "--margin", "5", "--", "{short}"], "give 5%"),
        (["{long}", "--margin", "nonesuch=5%", "--", "{short}"], "no figure of these runs matches nonesuch"),
        (["{long}", "--figures", "nonesuch", "--", "{short}"], "no figure of these runs matches"),
        (["--by", "nonesuch", "{long}"], "no property, setting or path"),
    ],
)
def test_wrong_use_is_refused_with_a_sentence(files, words, said, capsys):
    assert command.main([word.format(long=files / "long", short=files / "short") for word in words]) == 2
    assert said in capsys.readouterr().err


def test_an_empty_group_is_named(files, tmp_path, capsys):
    (tmp_path / "none").mkdir()
    assert command.main([str(files / "long"), "--", str(tmp_path / "none")]) == 1
    assert "group 'B' has no run to compare" in capsys.readouterr().err


def test_different_tests_in_two_groups_are_said(files, tmp_path, capsys):
    (tmp_path / "o").mkdir()
    for i in range(3):
        path = made_runs.synthetic(tmp_path / "o", seconds=8, delay=2, seed=i, title="other", name=f"o{i}")
        edit(path, test="tcp_upload")
    assert command.main([str(files / "long"), "--", str(tmp_path / "o")]) == 0
    out = capsys.readouterr().out
    assert "test: rrul | tcp_upload" in out
