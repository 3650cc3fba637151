# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run with stand-ins for the measuring processes: the stored samples of correct ones, and the verdict on faulty ones."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import printed_check
import pytest
from ktrxer.catalogue import find
from ktrxer.catalogue.recipe import Plan, Setting, When, combine, icmp, udp, uploads
from ktrxer.run import session as session_module
from ktrxer.run import timers
from ktrxer.run.closing import close
from ktrxer.run.judge import VerdictBuilder
from ktrxer.run.schedule import Options, make
from ktrxer.run.session import DiskError, Session
from ktrxer.runners.samples import Chunk, Clock, Samples
from ktrxer.store import Host, Meta, Run, RunWriter, Zero, open_run
from ktrxer.store.reasons import reason
from ktrxer.summary import figures, text
from test_recipes import OWN

HERE = Path(__file__).parent
MS = 10**6


@pytest.fixture
def fake(tmp_path):
    """fake(behaviour): the path of a program."""
    (tmp_path / "bin").mkdir()

    def make_one(behaviour="good"):
        path = tmp_path / "bin" / behaviour
        path.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S {HERE / 'fake_ktrxer.py'} {behaviour} \"$@\"\n")
        path.chmod(0o755)
        return str(path)

    return make_one


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


def blank():
    return Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), 0)


def session_of(plan, programs, runs, setting=None):
    """`programs`: a program for each name of a flow or probe."""
    setting = setting or Setting("far", 0.5, 0.1, 10 * MS, 50 * MS)
    schedule = make(plan, setting, Options(programs.get(None, "")))
    for job in schedule.jobs:
        job.options = replace(job.options, ktrxer=programs.get(job.invocation.name, job.options.ktrxer))
    return Session(schedule, blank(), runs)


def measure(*more, **also):
    session = session_of(*more, **also)
    run, closed = open_run(session.run()), session.closed
    # A summary is of the closed run, without a look into the file.
    assert closed is not None and closed.path == run.path and closed.meta == run.meta and closed.kinds() == run.kinds()
    assert all(closed.table(kind).equals(run.table(kind)) for kind in run.kinds())
    return run


# ----------------------------------------------------------------------------------------- what is read, and what is said of it


def test_a_complaint_of_several_has_the_figures_of_the_worst():
    built = VerdictBuilder()
    for name, moved in (("a", 6_830_000), ("b", 11_630_000), ("c", 300_000)):
        built.add(reason("place_clock_stepped", moved_ns=moved, allowed_ns=100_000), name)
    (made,) = built.reasons()
    assert made.text == "a, b, c: its clock was stepped by 11.630 ms during the run, to +- 100.000 us (figures of the worst)"
    assert made.as_json() == {
        "id": "place_clock_stepped", "text": made.text, "severity": "degraded", "cause": "clock", "names": ["a", "b", "c"],
        "moved_ns": 11_630_000, "allowed_ns": 100_000,
    }


def read(job, zero_ns, *objects):
    """What a runner makes of the output of its process."""
    samples = Samples(job.series, Clock(0, zero_ns), interval_ns=job.stored.interval_ns)
    reading = job.runner.read(job.invocation.parameters, samples)
    next(reading)
    with contextlib.suppress(StopIteration):
        reading.send(Chunk(b"".join(json.dumps(one).encode() + b"\n" for one in objects), 0))
        reading.send(None)
    return samples


def batch(**more):
    return {"type": "sample", "kind": "round_trips", "number": [0, 1, 1], "scheduled_ns": [1000, 2000, 2000], "sent_ns": [1005, 2006, 2007],
            "rtt_ns": [10, 11, 12], "class": [1, 0, 1]} | more


def test_many_round_trips_in_one_object():
    s = Setting("H", 1, 0)
    samples = read(make(combine(udp(s, "a"), udp(s, "b")), s, Options("ktrxer")).jobs[0], 100,
                   batch(reflector_received_real_ns=[7, 8, 9], reflector_sequence=[0, 1, 1]),
                   {"type": "sample", "kind": "lost", "number": 2, "class": 0})
    (rows,) = samples.take().values()
    assert rows["series"] == [1, 0, 1, 0] and rows["t_ns"][:3] == [905, 1906, 1907] and rows["lateness_ns"] == [5, 6, 7, None]
    assert rows["far_ns"] == [7, 8, 9, None] and rows["state"] == [0, 0, 0, 1]


def test_an_answer_after_the_time_out_is_not_lost(tmp_path):
    """The probe was counted as lost before its answer came. It is stored once, as too late, with its delay."""
    s = Setting("H", 1, 0, 10 * MS)
    schedule = make(icmp(s), s, Options("ktrxer"))
    meta = blank()
    meta.zero, meta.length_ns, meta.series, meta.runners = Zero(0, 0), 10**9, schedule.series, [job.stored for job in schedule.jobs]
    writer = RunWriter(tmp_path, meta)
    late = {"number": 1, "scheduled_ns": 10 * MS, "sent_ns": 10 * MS + 5, "rtt_ns": 12 * 10**9}
    lost = [{"type": "sample", "kind": "lost", "number": number} for number in range(3)]
    for kind, rows in read(schedule.jobs[0], 0, *lost, {"type": "sample", "kind": "too_late", **late}).take().items():
        writer.append(kind, rows)
    writer.sync()
    tables = writer.tables()
    run = Run(writer.part, meta, {kind: partial(tables.__getitem__, kind) for kind in tables})
    run = open_run(writer.finish(close(run)))
    arrays = run.arrays(run.meta.series[0])
    assert arrays["seq"].tolist() == [0, 1, 2] and arrays["state"].tolist() == [1, 7, 1] and arrays["rtt_ns"][1] == 12e9
    assert run.meta.accounts["probes"] == {"sent": 3, "answered": 0, "lost": 2, "too_late": 1, "duplicates": 0}
    assert any("1 answers came after the time-out, the last after 12 s" in reason for reason in run.meta.sentences)


@pytest.mark.parametrize("wrong", [{"rtt_ns": [10, 11]}, {"rtt_ns": [10, 11, 2**63]}, {"number": [0, 1, 1.5]}, {"number": [True, 1, 1]}, {"sent_ns": 5},
                                   {"sent_ns": []}, {"class": [0, 1, 2]}, {"class": 0}, {"class": [-1, 0, 0]}, {"scheduled_ns": None},
                                   {"number": [1] * 20_000}])
def test_batches_that_are_none(wrong):
    s = Setting("H", 1, 0)
    samples = read(make(combine(udp(s, "a"), udp(s, "b")), s, Options("ktrxer")).jobs[0], 0, batch(**wrong))
    assert samples.garbage == 1 and samples.take() == {}, "nothing of it is taken"


# -------------------------------------------------------------------------------------------------------------------------- runs

GOOD = combine(icmp(Setting("H", probe_interval_ns=10 * MS)), udp(Setting("H", probe_interval_ns=10 * MS), "Ping (ms) UDP EF", "EF"),
               uploads(Setting("H", 0.5, 0.1, sample_interval_ns=50 * MS), ["one", "two"], ["BE", "EF"]))


@pytest.mark.slow
def test_a_good_run(fake, runs):
    run = measure(GOOD, {None: fake()}, runs)
    assert (run.meta.verdict, run.meta.sentences) == ("valid", [])
    assert [r.status for r in run.meta.runners] == ["ended"] * 3 and {r.exit_status for r in run.meta.runners} == {0}
    ping = run.arrays(run.series("Ping (ms) ICMP"))
    assert len(ping["seq"]) == 70 and (ping["state"] == 1).sum() == 7
    due = ping["t_ns"] - np.where(ping["state"] == 0, 2000, 0)
    assert np.array_equal(due - due[0], ping["seq"] * 10 * MS), "a lost probe is where it should have left"
    assert abs(due[0]) < MS, "all begin at the zero"
    # Each round trip takes 10 ms, so each one-way delay has an uncertainty of about half of that.
    stamp = run.arrays(run.series("Ping (ms) UDP EF"))
    answered = stamp["state"] == 0
    assert np.all(np.abs(stamp["up_ns"] + stamp["down_ns"] - stamp["rtt_ns"])[answered] <= 6003), "600 ppm at most"
    assert np.all(stamp["up_bound_ns"][answered] >= 4.9 * MS) and np.all(np.isnan(stamp["up_ns"][~answered]))
    assert np.all(np.abs(stamp["up_ns"][answered] - 5 * MS) <= stamp["up_bound_ns"][answered])
    two = run.arrays(next(s for s in run.meta.of_kind("bytes") if s.name == "two"))
    assert set(two["bound_ns"][two["end"] == 1]) == {777} and len(two["t_ns"]) == 20
    assert np.array_equal(two["t_ns"][two["end"] == 1], two["t_ns"][two["end"] == 0]), "converted anew, by what is known at the end"
    assert run.meta.phase("load").from_ns == 100 * MS
    made = figures.summarise(run)
    (sums,) = made.throughput
    # 1 and 2 bytes a microsecond.
    assert sums.mean_mbps == pytest.approx(24, rel=1e-6) and sums.flows == 2
    assert {s.name: s.mean for s in made.series if s.kind == "bytes"} == {"one": pytest.approx(8), "two": pytest.approx(16)}
    assert [(loss.name, loss.lost) for loss in made.loss] == [("idle", 2), ("load", 12)], "those of the last round trip before the load are its own"
    assert made.responsiveness.self_rpm == pytest.approx(3000) and made.grade.letter == "A+"
    assert any("24.00 Mbit/s" in line for line in text.lines(made))
    json.dumps(made.as_json(), allow_nan=False)
    assert [entry.name for entry in runs.iterdir()] == [run.path.name]


def test_round_trips_below_zero_are_left_out(fake, runs):
    setting = Setting("far", 0.5, 0, 10 * MS, 50 * MS)
    run = measure(udp(setting, "Ping (ms) UDP EF", "EF"), {None: fake("backwards")}, runs, setting=setting)
    arrays = run.arrays(run.series("Ping (ms) UDP EF"))
    wrong = (arrays["seq"] % 10 == 5) & (arrays["state"] == 0)
    assert wrong.sum() == 5 and np.array_equal(np.isnan(arrays["rtt_ns"]), wrong | (arrays["state"] != 0))
    assert np.isnan(arrays["up_ns"][wrong]).all()
    assert run.meta.verdict == "degraded" and any("5 round trips are shorter than 0" in reason for reason in run.meta.sentences)


def test_changed_marks_that_a_small_program_counts(fake, runs):
    """`ktrxer stamp` in a small build counts changed marks, and has no room for a reason."""
    setting = Setting("far", 0.5, 0, 10 * MS, 50 * MS)
    run = measure(udp(setting, "Ping (ms) UDP EF", "EF"), {None: fake("bleached")}, runs, setting=setting)
    what = "the DSCP or ECN of 100 % of the probes up was changed on the path: routers behind that place see another mark than was sent"
    assert (run.meta.verdict, run.meta.sentences) == ("degraded", [f"Ping (ms) UDP EF: {what}"])


@pytest.mark.slow
def test_every_bad_process_is_named_and_the_others_go_on(fake, runs, monkeypatch):
    monkeypatch.setattr(timers, "GRACE_NS", 300 * MS)
    monkeypatch.setattr(session_module, "PATIENCE_NS", 300 * MS)
    bad = ["garbage", "mad", "endless_line", "killed", "early", "silent_death", "deaf", "late", "miscounts", "good"]
    setting = Setting("far", 1.5, 0, 20 * MS, 50 * MS)
    plan = combine(*(icmp(setting, name) for name in bad), uploads(setting, ["f1", "f2"], name="server_dies"))
    run = measure(plan, {name: fake(name) for name in [*bad, "server_dies"]}, runs, setting=setting)
    print("\n".join(run.meta.sentences))

    def said(name, text):
        """Whether a reason begins with this name, alone or in a list of names."""
        return any(name in line.split(": ", 1)[0].split(", ") and text in line for line in run.meta.sentences)

    assert run.meta.verdict == "invalid", "one of them says that its own probes were late"
    assert said("garbage", "printed 4 lines that cannot be read as results; the first: Segmentation fault")
    assert said("mad", "lines that cannot be read as results; the first: xxxx")
    assert said("endless_line", "cannot be read as results; the first: yyyy")
    assert said("killed", "killed by signal 9") and said("silent_death", "a bug")
    assert any("probes did not leave or are not recorded" in line for line in run.meta.sentences), "early"
    assert said("deaf", "it did not end by itself") and said("deaf", "killed by signal 9")
    assert said("late", "30 of 100 probes")
    assert said("miscounts", "the accounts do not close")
    assert said("f1", "Connection reset by peer") and said("f2", "Connection reset by peer")
    assert not any("good" in line.split(": ", 1)[0] for line in run.meta.sentences)
    assert len(run.arrays(run.series("good"))["seq"]) == 75
    status = {r.name: r.status for r in run.meta.runners}
    assert status["killed"] == "killed" and status["silent_death"] == "failed" and status["good"] == "ended"


@pytest.mark.slow
def test_one_after_another(fake, runs, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    setting = Setting("far", 0.3, 0, 10 * MS, 50 * MS)
    plan = find(str(tmp_path / "own.py")).make(Setting("far", 0.3, 0, 10 * MS, 50 * MS), {})
    # A long time, because a busy machine starts the processes late.
    flows = Plan(tuple(one for one in plan.runs if one.runner == "flow"))
    plan = combine(flows, icmp(setting, when=When(stop_after="second")), total_s=60)
    run = measure(plan, {None: fake()}, runs, setting=setting)
    first, second = (run.arrays(next(s for s in run.meta.of_kind("bytes") if s.name == name))["t_ns"] for name in ("TCP upload", "second"))
    assert second.min() >= first.max() + 100 * MS
    ended = {runner.name: runner.ended_ns for runner in run.meta.runners}
    ping = run.arrays(run.series("Ping (ms) ICMP"))["t_ns"]
    assert second.max() < ended["second"] <= run.meta.runner_of(run.series("Ping (ms) ICMP")).to_ns <= ended["Ping (ms) ICMP"] < 60_000 * MS
    assert second.max() < ping.max() <= ended["Ping (ms) ICMP"], "stopped when the second one had ended"
    assert run.meta.verdict == "valid", run.meta.sentences


@pytest.mark.slow
def test_metadata_that_cannot_be_stored(fake, runs):
    session = session_of(GOOD, {None: fake()}, runs)
    session.after = lambda: {"bad": float("nan")}
    run = open_run(session.run())
    assert run.meta.verdict == "valid" and "should be a number" in run.meta.metadata["after"]["missing"]


# ------------------------------------------------------------------------------------------------------------- the command, signals


def command(fake, runs, *words, behaviour="good"):
    environment = os.environ | {"KTRXER_BIN": fake(behaviour), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.Popen([sys.executable, "-m", "ktrxer", "run", *words, "-H", "localhost", "-D", str(runs), "--no-extras"], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_part(runs, rows=1):
    for _ in range(3000):
        for part in runs.glob("*.part"):
            if (part / "latency.arrows").exists() and open_run(part).table("latency").num_rows >= rows:
                return part
        time.sleep(0.02)
    raise AssertionError("nothing was synced")


def children_of(pid):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def gone(pids, seconds=30):
    for _ in range(int(seconds * 50)):
        if not any(Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z" for pid in pids):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_two_at_once_and_what_they_print(fake, runs):
    both = [command(fake, runs, "ping", "--for", "0.5", *more) for more in (["-t", "same"], ["-t", "same", "--json"])]
    (out, err), (made, err2) = both[0].communicate(timeout=30), both[1].communicate(timeout=30)
    assert (both[0].returncode, err, both[1].returncode, err2) == (0, "", 0, "")
    paths = sorted(runs.iterdir())
    assert len(paths) == 2 and out.splitlines()[-1] in map(str, paths) and "verdict: valid" in out
    told = json.loads(made)
    assert not printed_check.wrong("run", told) and told["start"]["argv"][:2] == ["ktrxer", "run"]
    assert told["file"] in map(str, paths) and told["verdict"] == "valid"
    assert {"name", "unit", "mean", "p50", "p99", "count"} <= told["summary"]["series"][0].keys()


@pytest.mark.slow
def test_one_object_a_line_while_it_happens(fake, runs):
    child = command(fake, runs, "ping", "--for", "60", "--delay", "0", "--jsonl")
    made = map(json.loads, child.stdout)
    start, samples = next(made), []
    # A busy machine may start the prober late, and may not run this program in each second: a second without a new round trip has no value.
    while len({one["t_ns"] for one in samples if one["value"] is not None}) < 2:
        samples.append(next(made))
        assert samples[-1]["type"] == "sample", samples
    assert child.poll() is None and list(runs.glob("*.part")), "printed while it happens"
    child.send_signal(signal.SIGINT)
    *more, end = made
    assert (child.wait(timeout=30), child.stderr.read()) == (3, "")
    assert (start["type"], start["command"], end["type"]) == ("start", "run", "end")
    samples += more
    assert not [text for one in (start, *samples, end) for text in printed_check.wrong("run", one)]
    assert {one["type"] for one in samples} == {"sample"} and {one["unit"] for one in samples} == {"ms"}
    assert all(one["value"] is None or one["value"] > 0 for one in samples), samples
    times = sorted({one["t_ns"] for one in samples})
    assert times[0] >= 10**9 and len({at // 10**9 for at in times}) == len(times), "once in a second, of the second before"
    assert end["verdict"] == "degraded" and any("stopped by Ctrl-C" in reason["text"] for reason in end["reasons"])
    assert Path(end["file"]).exists()


@pytest.mark.slow
def test_ctrl_c_closes_the_file(fake, runs):
    child = command(fake, runs, "rrul", "--for", "60", "--delay", "0.1")
    wait_for_part(runs, 20)
    processes = children_of(child.pid)
    assert len(processes) == 3
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=50)
    assert child.returncode == 3 and not err and gone(processes)
    (path,) = runs.iterdir()
    run = open_run(path)
    assert run.meta.verdict == "degraded" and any("stopped by Ctrl-C" in reason for reason in run.meta.sentences) and str(path) in out
    follows = ("before its time", "are recorded", "is covered by byte counts")
    assert not [reason for reason in run.meta.sentences if any(words in reason for words in follows)], "these follow"
    assert len(run.table("latency")) > 100 and len(run.table("bytes")) >= 8


@pytest.mark.slow
def test_a_kill_leaves_what_can_be_recovered_and_no_process(fake, runs):
    child = command(fake, runs, "rrul", "--for", "60", "--delay", "0.1")
    part = wait_for_part(runs, 20)
    processes = children_of(child.pid)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert gone(processes), "they end when their standard input does"
    rows = open_run(part).table("latency").num_rows
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-m", "ktrxer", "recover", str(part)], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0 and "the run was cut off: its last sample is at" in done.stdout
    (path,) = runs.iterdir()
    run = open_run(path)
    assert run.table("latency").num_rows == rows and run.meta.verdict == "degraded"
    done = subprocess.run([sys.executable, "-m", "ktrxer", "recover", str(path)], capture_output=True, text=True, env=environment, timeout=30)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "nothing to recover" in done.stderr


@pytest.mark.slow
def test_a_disk_that_fills_up(fake, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    try:
        setting = Setting("far", 100, 0, 2 * MS, 20 * MS)
        plan = combine(*(icmp(setting, f"p{n}") for n in range(4)))
        started = time.monotonic()
        with pytest.raises(DiskError, match=r"No space left on device; make room, then `ktrxer recover .*\.part`"):
            session_of(plan, {None: fake()}, disk, setting=setting).run()
        assert time.monotonic() - started < 90, "it ends with its parent, before its 100 s are over"
        (part,) = disk.iterdir()
        assert open_run(part).table("latency").num_rows > 0
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("words, status, message", [
    (["rrul", "--for", "x"], 2, "'x' is not a duration: no digits"),
    (["rrul", "--for", "0"], 2, "--for: '0s' is too small: from 200ms to 720h"),
    (["rrul", "--interval", "1us"], 2, "--interval: '1us' is too small: from 100us to 60s"),
    (["rrul", "--port", "0"], 2, "--port: '0' is too small: from 1 to 65535"),
    (["rrul", "--lenght", "5"], 2, "--lenght: no such option"),
    (["rrull"], 2, "did you mean rrul"),
    (["./none.py"], 2, "No such file or directory"),
    (["rrul", "--set", "x"], 2, "--set x: expected NAME=VALUE"),
    (["rrul", "--set", "x=1"], 2, "has no parameter 'x'"),
    (["rrul", "--cc", "a,b,c"], 2, "one name, or two"),
    (["rrul", "--token-file", "/nowhere"], 1, "cannot be read"),
    (["ping", "-H", "no host at all"], 1, "'no host at all': no such host; check the spelling, or give an address"),
    (["ping", "-H", "127.0.0.1:8620"], 1, "127.0.0.1:8620: a host has no port; the port is given by --port"),
    (["ping", "-H", ""], 2, "--host: its value is empty"),
    (["ping", "-H", "a", "-H", "b"], 2, "ping has 1 far end: give -H 1 time; it was given 2 times"),
    (["rtt_fair", "-H", "a"], 2, "rtt_fair has 4 far ends: give -H 4 times; it was given 1 time"),
    (["rtt_fair_var", "-H", "127.0.0.1", "-H", "127.0.0.2:80"], 1, "127.0.0.2:80: a host has no port"),
    (["sctp_vs_tcp"], 2, "sctp_vs_tcp has no recipe: the test is broken in Flent 2.3.0"),
    (["http", "--set", "load=all"], 2, "parameter load: 'all'; it may be none, up, down, rrul"),
    (["ping", "-H=-x"], 1, "names do not begin with a dash"),
    (["ping", "-D", "/nowhere"], 1, "No such file or directory"),
    (["ping", "-D", "/proc"], 1, "no file can be made there"),
])
def test_one_line_for_what_is_wrong(fake, runs, words, status, message, capsys, monkeypatch):
    from ktrxer.cli import main

    monkeypatch.setenv("KTRXER_BIN", fake())
    try:
        far = [] if any(word.startswith("-H") for word in words) else ["-H", "localhost"]
        code = main(["run", *far, "-D", str(runs), *words])
    except SystemExit as end:
        code = end.code
    told = capsys.readouterr().err
    assert code == status and told.count("\n") == 1 and message in told, told
    assert not list(runs.iterdir())


def test_nothing_starts_when_the_far_end_does_not_answer(fake, runs, capsys, monkeypatch):
    from ktrxer.cli import main

    monkeypatch.setenv("KTRXER_BIN", fake("refuses"))
    assert main(["run", "rrul", "-H", "localhost", "-D", str(runs)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3 and all(line.startswith("ktrxer run: ktrxer ") and "--token-file" in line for line in told)
    assert not list(runs.iterdir())
    monkeypatch.setattr("ktrxer.run.binary.os.access", lambda *_: False)
    assert main(["run", "rrul", "-H", "localhost", "-D", str(runs)]) == 1
    assert "not found" in capsys.readouterr().err
