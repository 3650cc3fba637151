# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runners: how they are found, what a tool must be, and what is made of output that is right, wrong, endless, or of another tool."""

import contextlib
import re
import socket
import sys
import time
from pathlib import Path

import pytest
from ktrxer import runners
from ktrxer.catalogue.recipe import PlanError, Setting, combine, icmp
from ktrxer.catalogue.recipe import check as check_plan
from ktrxer.catalogue.recipe import run as invoke
from ktrxer.places import open_place
from ktrxer.run import checks
from ktrxer.run.schedule import make
from ktrxer.run.session import Session
from ktrxer.runners import Options, RunnerError, flow
from ktrxer.runners.runner import Tool
from ktrxer.runners.samples import DOCUMENT_MOST, Chunk, Clock, Samples, by_line, whole
from ktrxer.store import Host, Meta, Series, Zero, open_run
from tool_output import outcome

MS, S = 10**6, 10**9

# A tool that prints a number every so often, and misbehaves as its parameter says.
COUNTER = '''
import sys
from dataclasses import dataclass
from ktrxer.runners.runner import MS, Parameters, Runner, RunnerError, Tool, ends_well
from ktrxer.runners.samples import by_line
from ktrxer.store.meta import Series

SCRIPT = """
import os, sys, time
how, left = sys.argv[1], round(float(sys.argv[2]) / 0.05)
if how == "grandchild":
    os.system("sleep 987 &")
while left > 0 or how in ("hangs", "after its end"):
    left -= 1
    if how == "only complains": print("connect failed: Connection refused", file=sys.stderr); sys.exit(0)
    if how == "garbage": print("Segmentation fault")
    if how == "endless": sys.stdout.write("x" * 300000)
    if how == "dies": os.kill(os.getpid(), 11)
    if how == "early": sys.exit("no route to host")
    if how == "stamped": print("at", int((time.time() - 1e9) * 1e9))
    if how == "hangs":
        import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(100)
    print(time.time_ns() % 1000, flush=True)
    time.sleep(0.05)
"""

@dataclass(frozen=True, kw_only=True)
class Counts(Parameters):
    interval_ns: int = 50 * MS
    how: str = "good"

def breaks(where, p):
    if p.how == f"error in {where}":
        raise KeyError(where)
    if p.how == f"exit in {where}":
        sys.exit(0)

def validate(p):
    breaks("validate", p)
    if p.how == "never":
        raise RunnerError("it is never possible")

def command(p, o, times):
    breaks("command", p)
    return [sys.executable, "-I", "-S", "-c", SCRIPT, p.how, str(times.length_s)]

def series(p, name):
    breaks("series", p)
    return {"number": Series(0, name, "value", "things")}

def line(p, samples, line):
    if p.how == "defect":
        raise AttributeError("oops")
    breaks("line", p)
    word = line.text.split()
    at = samples.clock.real(int(word[1])) if word[0] == "at" else line.at_ns
    samples.value("number", at, float(word[-1]))

def end(p, samples):
    breaks("end", p)

def health(ended):
    breaks("health", Counts(how=ended.process.parameters["how"]))
    return ends_well(ended)

RUNNER = Runner("counter", "numbers", Counts, validate, command, series, by_line(line, end), health, tool=Tool(TOOL, "python3"))
'''


@pytest.fixture
def counter(tmp_path, monkeypatch):
    """counter(tool): a runner of the user, found by its name."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    runners.find.cache_clear()

    def write(tool=sys.executable, text=COUNTER):
        path = runners.folder() / "counter.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"TOOL = {tool!r}\n{text}")
        runners.find.cache_clear()
        return path

    yield write
    runners.find.cache_clear()


def test_a_users_own_is_found_by_its_name(counter):
    counter()
    assert runners.find("counter").summary == "numbers"
    with pytest.raises(RunnerError, match=r"no runner is called 'conter'; did you mean counter\? \(docs/howto/add-runner"):
        runners.find("conter")
    for bad in ("../counter", "counter.py", "", "x" * 100):
        with pytest.raises(RunnerError, match="no runner is called"):
            runners.find(bad)
    with pytest.raises(PlanError, match="x: it is never possible"):
        from ktrxer.catalogue.recipe import check

        check(invoke("counter", "x", how="never"))
    counter(text="\n\nraise RuntimeError('oops')\n")
    with pytest.raises(RunnerError, match=r"counter.py, line 4: RuntimeError: oops"):
        runners.find("counter")
    counter(text="RUNNER = 5\n")
    with pytest.raises(RunnerError, match=r"it has no RUNNER = Runner\("):
        runners.find("counter")


def test_ours_cannot_be_replaced(counter):
    counter().with_name("ping.py").write_text("raise RuntimeError('this must not run')\n")
    assert runners.find("ping").own


@pytest.mark.parametrize("tool, complaint", [
    (Tool("ktrxer-no-such-tool", "nothing"), r"ktrxer-no-such-tool is not installed \(Debian: nothing\)"),
    (Tool("sh", "dash", ["-c", "echo version 3.10"], least="3.11"), "sh has version 3.10; 3.11 or newer is needed"),
    (Tool("sh", "dash", ["-c", "echo none; exit 3"]), r"printed no version \(exit status 3\)"),
    (Tool("sh", "dash", ["-c", "echo version 3.9 >&2"], least="3.10"), "sh has version 3.9; 3.10 or newer is needed"),
])
def test_tools_are_looked_for(tool, complaint):
    with pytest.raises(RunnerError, match=complaint):
        checks._version(tool, open_place("local"))


def test_a_tool_of_the_right_version():
    assert checks._version(Tool("sh", "dash", ["-c", "echo version 3.10.2"], least="3.9"), open_place("local")) == "3.10.2"


def test_a_missing_tool_is_found_before_the_run(counter, tmp_path):
    counter("ktrxer-no-such-tool")
    s = Setting("H", 1, 0)
    schedule = make(invoke("counter", "mine"), s, Options())
    with checks.places_of(schedule) as places, pytest.raises(checks.CheckError, match="mine, in place local: ktrxer-no-such-tool is not installed"):
        checks.tools(schedule, places)


def test_a_tool_that_hangs_when_it_is_asked_for_its_version(monkeypatch):
    monkeypatch.setattr(checks, "run", lambda place, argv: __import__("ktrxer.places").places.run(place, argv, 0.3))
    with pytest.raises(Exception, match=r"local: `sh -c sleep 77` did not end within 0.3 s"):
        checks._version(Tool("sh", "dash", ["-c", "sleep 77"]), open_place("local"))


def test_a_server_that_does_not_listen_is_found_before_the_run():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        setting = Setting("127.0.0.1", 1, 0)
        plan = combine(invoke("iperf3", "x", port=port), invoke("http", "y", pages=(f"http://127.0.0.1:{port}/",)), invoke("iperf", "z", port=port))
        schedule = make(plan, setting, Options())
        checks.far_end(schedule)
    with pytest.raises(checks.CheckError) as caught:
        checks.far_end(schedule)
    refused = f"no connection to TCP port {port} of 127.0.0.1: Connection refused; start there: "
    wanted = {f"x: {refused}iperf3 -s -p {port}", f"y: {refused}a web server", f"z: {refused}iperf -s -p {port}"}
    assert set(str(caught.value).splitlines()) == wanted
    udp = make(invoke("iperf", "u", port=port, protocol="udp", bitrate_bps=10**6), setting, Options())
    checks.far_end(udp)


# ------------------------------------------------------------------------------------------------------------------ runs


def measure(tmp_path, how, length=0.6):
    setting = Setting("far", length, 0)
    schedule = make(combine(invoke("counter", how, how=how)), setting, Options())
    meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), 0)
    (tmp_path / "runs").mkdir(exist_ok=True)
    return open_run(Session(schedule, meta, tmp_path / "runs").run())


@pytest.mark.slow
def test_a_good_tool(counter, tmp_path):
    counter()
    run = measure(tmp_path, "good")
    values = run.arrays(run.series("good"))
    assert (run.meta.verdict, run.meta.sentences) == ("valid", [])
    (stored,) = run.meta.runners
    assert len(values["value"]) == 12 and values["t_ns"].min() >= 0 and values["t_ns"].max() <= stored.ended_ns
    assert (stored.kind, stored.place, stored.parameters["how"], stored.status) == ("counter", "local", "good", "ended")
    assert stored.started_ns < 0 <= values["t_ns"].min(), "started before, and held back until its time"


@pytest.mark.slow
def test_a_slow_disk_delays_no_start(counter, tmp_path, monkeypatch):
    """The directory of the run is synced before the run's zero is set: else a tool would begin late, by the time of the disk."""
    counter()
    monkeypatch.setattr("ktrxer.store.container.sync_directory", lambda _: time.sleep(1))
    (stored,) = measure(tmp_path, "good", 0.1).meta.runners
    assert stored.started_ns < 0


DEFECT = r"the runner counter has a defect \(.*counter.py, line \d+\): "


@pytest.mark.parametrize("where", ["validate", "command", "series"])
@pytest.mark.parametrize(("kind", "said"), [("error", "KeyError: '{}'"), ("exit", "SystemExit: 0")])
def test_a_defect_before_the_run_is_one_line(counter, where, kind, said):
    counter()
    with pytest.raises((PlanError, RunnerError), match=f"^x: {DEFECT}{said.format(where)}$"):
        plan = combine(invoke("counter", "x", how=f"{kind} in {where}"))
        check_plan(plan)
        make(plan, Setting("far", 1, 0), Options())


@pytest.mark.slow
@pytest.mark.parametrize("how, reason", [
    ("garbage", r"printed \d+ lines? that cannot be read as results; the first: Segmentation fault"),
    ("endless", r"lines that cannot be read as results; the first: xxxx"),
    ("early", r"ended with exit status 1: no route to host"),
    ("stamped", r"lines that cannot be read as results; the first: a time stamp -\d+ ns after the start"),
    ("defect", DEFECT + "AttributeError: oops"),
    ("exit in line", DEFECT + "SystemExit: 0"),
    ("error in end", DEFECT + "KeyError: 'end'"),
    ("error in health", DEFECT + "KeyError: 'health'"),
    ("exit in health", DEFECT + "SystemExit: 0"),
    ("hangs", r"it did not end by itself, and was stopped"),
    ("dies", r"the process was killed by signal 11"),
    ("after its end", r"it did not end by itself, and was stopped"),
    ("only complains", r"ended with exit status 0: connect failed: Connection refused"),
])
def test_a_bad_tool_is_named(counter, tmp_path, how, reason, monkeypatch):
    import re

    from ktrxer.run import session, timers

    if how in ("hangs", "after its end"):
        monkeypatch.setattr(timers, "GRACE_NS", 300 * MS)
        monkeypatch.setattr(session, "PATIENCE_NS", 300 * MS)
    counter()
    run = measure(tmp_path, how)
    print(run.meta.sentences)
    assert run.meta.verdict != "valid" and any(re.search(reason, line) for line in run.meta.sentences)
    assert not any("exit status -" in line for line in run.meta.sentences), "a signal is named once, by its number"
    if how == "after its end":
        assert len(run.arrays(run.series(how))["value"]) > 3, "what it printed in time is kept"


@pytest.mark.slow
def test_a_childs_child_does_not_stay(counter, tmp_path):
    def runs() -> bool:
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended
                if b"sleep\x00987" in file.read_bytes():
                    return True
        return False

    counter()
    measure(tmp_path, "grandchild", 0.3)
    deadline = time.monotonic() + 30
    while runs():
        assert time.monotonic() < deadline


# ---------------------------------------------------------------------------------------------------------------- output


def fed(read, *chunks, kind="value"):
    samples = Samples({"x": Series(7, "x", kind, "")}, Clock(1000, None), to_ns=S)
    reading = read(None, samples)
    next(reading)
    with contextlib.suppress(StopIteration):
        for chunk in chunks:
            reading.send(Chunk(chunk, 5))
        reading.send(None)
    return samples


def test_lines_are_put_together_from_pieces():
    ended = []
    read = by_line(lambda _, samples, line: samples.value("x", line.at_ns, float(line.text)), lambda _, samples: ended.append(1))
    samples = fed(read, b"1\n2", b"3\n", b"x\n4")
    assert samples.take() == {"value": {"series": [7] * 3, "t_ns": [5, 5, S], "value": [1.0, 23.0, 4.0]}} and ended == [1]
    assert (samples.garbage, samples.first_garbage) == (1, "x")


def test_a_document_has_a_limit(monkeypatch):
    got = []
    assert fed(whole(lambda _, samples, data: got.append(data)), b"a", b"b").garbage == 0 and got == [b"ab"]
    assert fed(whole(lambda _, samples, data: 1 / len(data[9])), b"a").garbage == 1
    monkeypatch.setattr("ktrxer.runners.samples.DOCUMENT_MOST", 3)
    assert DOCUMENT_MOST > 3 and fed(whole(lambda *_: got.append(1)), b"ab", b"cd", b"ef").garbage > 20 and got == [b"ab"]


@pytest.mark.parametrize("values", [{"rtt_ns": 1.5}, {"rtt_ns": True}, {"rtt_ns": 2**63}, {"seq": None}, {"state": 9}, {"state": "lost"}])
def test_samples_that_cannot_be(values):
    read = by_line(lambda _, samples, line: samples.add("x", line.at_ns, **({"seq": 1, "state": 0} | values)))
    samples = fed(read, b"line\n", kind="latency")
    assert samples.garbage == 1 and samples.take() == {}


def test_a_key_that_the_runner_did_not_name():
    assert fed(by_line(lambda _, samples, line: samples.value("y", 0, 1)), b"line\n").garbage == 1


def test_a_place_is_named_in_the_plan():
    schedule = make(icmp(Setting("H", 1, 0), place="ssh:router"), Setting("H", 1, 0), Options("/here/ktrxer"))
    assert schedule.jobs[0].command()[0] == "ktrxer" and schedule.jobs[0].stored.place == "ssh:router"


# ------------------------------------------------------------------------------------------------- tools of other projects

FPING = b"""[1795411612.41870] 127.0.0.1 : [0], 64 bytes, 0.032 ms (0.032 avg, 0% loss)
[1795411612.43880] 127.0.0.1 : [1], 64 bytes, 1.5 ms (0.033 avg, 0% loss)
[1795411614.45880] 127.0.0.1 : [2], timed out (0.033 avg, 33% loss)
"""


def test_fping_as_recorded():
    samples = outcome("fping", FPING, 1795411612 * S)
    (rows,) = samples.take().values()
    assert samples.garbage == 0 and rows["seq"] == [0, 1, 2] and rows["state"] == [0, 0, 1] and rows["rtt_ns"] == [32_000, 1_500_000, None]
    assert rows["t_ns"] == [418_700_000 - 32_000, 438_800_000 - 1_500_000, 458_800_000], "send times: a probe is lost a time-out after it was sent"


@pytest.mark.parametrize("output, garbage", [
    (FPING[:-30], 1), (FPING.replace(b"0.032 ms", b"0..3 ms"), 1), (b"PING localhost (127.0.0.1) 56(84) bytes of data.\n" * 30, 30),
    (FPING.replace(b"[1795411612", b"[17954"), 2), (b"\xff\xfe\x00\n", 1),
])
def test_fping_that_is_none(output, garbage):
    assert outcome("fping", output, 1795411612 * S).garbage == garbage


@pytest.mark.tool
def test_fping_itself(tmp_path):
    """The real tool, to this host."""
    setting = Setting("127.0.0.1", 1.0, 0)
    schedule = make(invoke("fping", "Ping (ms) fping", interval_ns=50 * MS, mark="EF"), setting, Options())
    with checks.places_of(schedule) as places:
        checks.tools(schedule, places)
        meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), 0)
        run = open_run(Session(schedule, meta, tmp_path, places=places).run())
    arrays = run.arrays(run.series("Ping (ms) fping"))
    assert arrays["seq"].tolist() == list(range(20)) and (arrays["state"] == 0).all(), run.meta.sentences
    assert (arrays["rtt_ns"] > 0).all() and -10 * MS < arrays["t_ns"].min() < S and run.meta.runners[0].protocol == "ICMP"
    assert run.meta.verdict == "valid", run.meta.sentences


@pytest.mark.parametrize("size_ms", [50, -50, 2000, -2000])
def test_times_after_a_step_of_this_hosts_clock(size_ms):
    """A time each 10 ms by the true clock, stepped at 1 s. The last look before the step was at 0.9 s, the first after it at 1.1 s."""
    from ktrxer.runners.samples import ClockStep

    clock = Clock(1000, None, steps=[ClockStep(1000 + 900 * MS, 1000 + 1100 * MS, size_ms * MS)])
    for true_ms in range(0, 2000, 10):
        found = clock.real(1000 + (true_ms + (size_ms if true_ms >= 1000 else 0)) * MS)
        assert found == true_ms * MS or 1000 <= true_ms <= 1100, true_ms
        assert abs(found - true_ms * MS) <= 50 * MS, "beside a large step nothing is wrong"
    assert clock.corrected


def test_a_run_waits_for_udp_flows_as_long_as_their_receiver_does():
    limits = (Path(__file__).parents[2] / "methods/flow/flow_udp.c").read_text()
    (seconds,) = re.findall(r"KTRXER_FLOW_QUEUE_S = (\d+)\b", limits)
    assert int(seconds) * S == flow.QUEUE_NS
