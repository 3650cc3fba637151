# SPDX-License-Identifier: MIT OR Apache-2.0
"""A figure that stands in two places is one figure: the last object of a process, the samples and the summary of the same file."""

import ctypes
import subprocess
import sys

import pytest
from agreement import disagreements
from built_estimators import built
from ktrxer.run.closing import close
from ktrxer.statistics import native
from ktrxer.store import Host, Meta, Phase, Runner, RunWriter, Series, Zero, open_run
from ktrxer.store.columns import ANSWERED, LOST
from ktrxer.summary import figures, text
from ktrxer.view import report as page

S, MS = 10**9, 10**6
__all__ = ["built"]  # a fixture of all tests here


def stamp_run(tmp_path, phases, end, lost=range(0), counted=lambda seq: None, count=1000):
    """A run of one stamp process; `lost` probes have no answer, and the reflector's count in the others is counted(seq)."""
    whole = {"type": "end", "sent": count, "lost": len(lost), "too_late": 0, "reflector_stateful": True, "duplicates_up": 0, **end}
    runner = Runner(0, "UDP", "stamp", ["ktrxer", "stamp"], "far", "ended", 0, interval_ns=10 * MS, protocol="UDP", end=whole, from_ns=0, to_ns=10 * S)
    meta = Meta(
        id="5f1c0de0-0000-4000-8000-000000000075", test="t", created="2026-11-28T00:00:00.000000Z", host=Host("near"), zero=Zero(0, 0),
        length_ns=10 * S, phases=phases, runners=[runner], series=[Series(0, "UDP", "latency", "ms", 0, group="Ping (ms)")], verdict="valid",
    )
    answered = [seq not in lost for seq in range(count)]
    rows = {
        "series": [0] * count, "t_ns": [seq * 10 * MS for seq in range(count)], "seq": list(range(count)),
        "state": [ANSWERED if ok else LOST for ok in answered], "lateness_ns": [0] * count,
        "rtt_ns": [10 * MS if ok else None for ok in answered], "far_ns": [S + seq * 10 * MS if ok else None for seq, ok in enumerate(answered)],
        "far_seq": [counted(seq) if ok else None for seq, ok in enumerate(answered)],
    }
    writer = RunWriter(tmp_path, meta, "run")
    writer.append("latency", rows)
    writer.sync()
    run = open_run(writer.part)
    tables = close(run)
    writer.meta = run.meta
    return open_run(writer.finish(tables))


def losses_of(run):
    summary = figures.summarise(run)
    lines = [line for line in text.lines(summary) if line.startswith("loss,")]
    return [(one.name, one.lost, one.lost_up, one.lost_down) for one in (*summary.loss, summary.loss_of_run)], lines


def test_losses_beside_a_server_that_dropped_some(tmp_path):
    """424 probes did not reach the reflector, which itself dropped 112 requests: 312 were lost up, as the process says."""
    lost = range(300, 724)
    end = {"lost_up": 312, "lost_down": 0, "lost_unknown": 112, "server_dropped": 112, "server_refused": 0}
    run = stamp_run(tmp_path, [Phase("load", 0, 10 * S)], end, lost, lambda seq: seq if seq < 300 else seq - 424)
    rows, lines = losses_of(run)
    assert rows == [("load", 424, 312, 0), ("whole run", 424, 312, 0)]
    assert all(line.endswith("(312 up, 0 down, 112 unknown)") and "424 of 1000 probes" in line for line in lines) and len(lines) == 2
    assert set(run.arrays(run.meta.series[0])["state"][300:724]) == {LOST}, "of a single probe it is not certain"
    assert not list(disagreements(run))


@pytest.mark.slow
@pytest.mark.parametrize("split", [(50, 200, 12), (0, 250, 12), (262, 0, 0), (131, 131, 0), (0, 0, 262)])
@pytest.mark.parametrize("begin_ns", [0, 3 * S, 4 * S])
def test_the_parts_have_the_losses_of_the_whole_run(tmp_path, split, begin_ns):
    """A reflector that counts up to a stretch without answers: which of its probes were lost up is known from the accounts of the session
    alone. The stretch is in one phase, or in two of them."""
    lost = range(300, 562)
    up, down, unknown = split
    phases = [Phase("idle_before", 0, begin_ns), Phase("load", begin_ns, 10 * S)] if begin_ns else [Phase("load", 0, 10 * S)]
    end = {"lost_up": up, "lost_down": down, "lost_unknown": unknown}
    run = stamp_run(tmp_path, phases, end, lost, lambda seq: seq if seq < 300 else seq - up if not unknown else None)
    summary = figures.summarise(run)
    whole, lines = summary.loss_of_run, text.lines(summary)
    assert (whole.lost, whole.lost_up, whole.lost_down, whole.unknown) == (262, up, down, unknown)
    assert sum(one.lost for one in summary.loss) == whole.lost and sum(one.sent for one in summary.loss) == whole.sent
    assert sum(one.lost_up for one in summary.loss) <= up and sum(one.lost_down for one in summary.loss) <= down
    more = sum(one.unknown for one in summary.loss) - unknown
    assert more >= 0 and any(f"give {more} more of the losses a direction, but not a phase" in line for line in lines) == (more > 0)
    if begin_ns != 4 * S:  # all losses are in one phase
        assert [(one.lost_up, one.lost_down, one.unknown) for one in summary.loss if one.lost] == [split] and not more
    assert not list(disagreements(run))


def test_a_maximum_beside_lost_quantiles_is_that_of_the_answered_probes(tmp_path):
    for lost, words in ((range(300, 320), "lost  10.0 ms of those answered"), (range(300, 305), "10.0 ms  10.0 ms")):
        folder = tmp_path / str(len(lost))
        folder.mkdir()
        end = {"lost_up": len(lost), "lost_down": 0, "lost_unknown": 0}
        for phase in ("idle_before", "load"):
            (folder / phase).mkdir()
            summary = figures.summarise(stamp_run(folder / phase, [Phase(phase, 0, 10 * S)], end, lost, lambda seq: seq))
            (line,) = [one for one in text.lines(summary) if one.startswith("round trip")]
            assert words in line and line.endswith("of those answered") == (len(lost) > 10), line
        (cells,) = [row for table in page.summary(summary)[1] for row in table["rows"] if row[0].startswith("round trip")]
        assert "  ".join(cells[5:7]) == words, cells


def test_losses_of_several_phases_are_no_more_than_those_of_the_run(tmp_path):
    lost = range(300, 724)
    end = {"lost_up": 312, "lost_down": 0, "lost_unknown": 112, "server_dropped": 112, "server_refused": 0}
    phases = [Phase("idle_before", 0, 4 * S), Phase("load", 4 * S, 10 * S)]
    rows, _ = losses_of(stamp_run(tmp_path, phases, end, lost, lambda seq: seq if seq < 300 else seq - 424))
    assert rows == [("idle", 99, 0, 0), ("load", 325, 213, 0), ("whole run", 424, 312, 0)], "any of the losses may be those of the server"


def test_losses_without_a_neighbour_get_the_direction_that_the_session_knows(tmp_path):
    """The last 20 probes have no answer behind them; the closing probes of the session had one."""
    end = {"lost_up": 20, "lost_down": 0, "lost_unknown": 0}
    rows, _ = losses_of(stamp_run(tmp_path, [Phase("idle_before", 0, 10 * S)], end, range(980, 1000), lambda seq: seq))
    assert rows == [("idle", 20, 20, 0), ("whole run", 20, 20, 0)]


@pytest.mark.parametrize("end", [{}, {"lost_unknown": "many"}, {"lost_unknown": -1}, {"lost_unknown": 5, "sent": None}, {"classes": [1, 2], "lost_unknown": 5}])
def test_a_process_without_such_accounts_has_those_of_the_samples(tmp_path, end):
    rows, _ = losses_of(stamp_run(tmp_path, [Phase("idle_before", 0, 10 * S)], end, range(500, 505), lambda seq: seq if seq < 500 else seq - 5))
    assert rows == [("idle", 5, 5, 0), ("whole run", 5, 5, 0)]


def test_an_older_library_is_named_in_one_line(monkeypatch, tmp_path):
    class Older(ctypes.CDLL):
        def __getattr__(self, name):
            raise AttributeError(name)

    monkeypatch.setattr(native, "library", lambda: Older(None))
    with pytest.raises(native.NoEstimatorsError, match=r"older version.*no estimator one_way.*one version") as error:
        native.check()
    assert "\n" not in str(error.value)


def test_a_command_without_the_library_ends_with_one_line(tmp_path):
    """A file of that name that is no library, instead of the built one."""
    (tmp_path / "lib" / "ktrxer").mkdir(parents=True)
    (tmp_path / "lib" / "ktrxer" / native.NAME).write_text("text")
    code = (
        "import sys; from ktrxer import cli; from ktrxer.statistics import native; from pathlib import Path;"
        f"native.places = lambda: [Path({str(tmp_path / 'lib' / 'ktrxer' / native.NAME)!r})];"
        "cli.SUBCOMMANDS['runs'] = cli.Subcommand('ktrxer.commands.x', ''); import types;"
        "sys.modules['ktrxer.commands.x'] = types.SimpleNamespace(main=lambda words: native.check());"
        "sys.exit(cli.main(['runs']))"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert made.returncode == 1 and made.stderr.startswith("ktrxer runs: ") and made.stderr.count("\n") == 1 and "make" in made.stderr, made.stderr


TRIPS = dict.fromkeys(("min", "p50", "p95", "p99", "max"), 10000.0)


def test_quantiles_of_a_histogram_become_exact(tmp_path):
    """The process has 10.004 ms, the middle of a bucket; the file has the samples."""
    end = {"lost_up": 0, "lost_down": 0, "lost_unknown": 0, "received": 1000, "rtt_us": TRIPS | {"p50": 10_003.968, "p99": 10_003.968, "iqr": 8.192}}
    run = stamp_run(tmp_path, [Phase("idle_before", 0, 10 * S)], end)
    assert run.meta.runners[0].end["rtt_us"] == TRIPS | {"iqr": 0.0}
    assert figures.summarise(run).latency[0].idle.p50 == 10.0 and not list(disagreements(run))


@pytest.mark.parametrize("changed", [
    {"sent": 999}, {"lost": 1}, {"lost_up": 1}, {"too_late": 1}, {"rtt_us": TRIPS | {"p50": 10_000.001}}, {"rtt_us": TRIPS | {"max": 10_000.1}},
    {"late": 1, "late_after_us": 100.0},
])  # fmt: skip
def test_a_planted_difference_is_found(tmp_path, changed):
    end = {"lost_up": 0, "lost_down": 0, "lost_unknown": 0, "received": 1000, "late": 0, "rtt_us": TRIPS}
    run = stamp_run(tmp_path, [Phase("idle_before", 0, 10 * S)], end)
    assert not list(disagreements(run))
    summary = figures.summarise(run)
    run.meta.runners[0].end = run.meta.runners[0].end | changed
    assert list(disagreements(run, summary))
