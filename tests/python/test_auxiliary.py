# SPDX-License-Identifier: MIT OR Apache-2.0
"""The state of hosts beside a measurement: `--with`, its samples in the file of a run, and the verdict when it cannot be recorded."""

import re
import subprocess
import sys

import numpy as np
import pytest
from ktrxer import runners
from ktrxer.analyse.figures import of_summary
from ktrxer.catalogue import extras
from ktrxer.catalogue.recipe import Invocation, PlanError, Setting, combine
from ktrxer.catalogue.recipe import run as invoke
from ktrxer.run import checks
from ktrxer.run.schedule import make
from ktrxer.run.session import Session
from ktrxer.runners import Options
from ktrxer.store import Host, Meta, Zero, open_run
from ktrxer.summary import figures
from test_places import far, server
from test_runners import counter

__all__ = ["counter", "far", "server"]
MS = 10**6
SETTING = Setting("127.0.0.1", 1.0, 0)

# State that this program reads, with the faults that its parameter names.
STATE = '''
from dataclasses import dataclass
from ktrxer.runners.runner import MS, Parameters, Runner, RunnerError, ends_well
from ktrxer.runners.samples import NotUnderstood, by_line
from ktrxer.store.meta import Series

@dataclass(frozen=True, kw_only=True)
class Faults(Parameters):
    interval_ns: int = 50 * MS
    how: str = "good"

class Source:
    def __init__(self, how):
        self.how, self.calls = how, 0
    def sample(self, samples, at_ns):
        self.calls += 1
        if self.how == "ends" and self.calls > 2: raise RunnerError("eth0 is gone")
        if self.how == "defect": raise ZeroDivisionError("oops")
        if self.how == "strange": raise NotUnderstood("no sense")
        if self.how == "busy": samples.add("host", at_ns, cpu_percent=95.0); return
        samples.gauge("a", at_ns, self.calls, "twin")
        samples.gauge("b", at_ns, self.calls, "twin" if self.how == "twins" else "\\x07bell")
        if self.how == "huge": samples.gauge("c", at_ns, 2**64 - 1, "huge")
    def close(self):
        if self.how == "defect": raise ZeroDivisionError("again")

def here(p, o):
    if p.how == "never": raise RunnerError("no netlink here")
    if p.how == "broken": raise KeyError("x")
    return Source(p.how)

def series(p, name):
    return {"host": Series(0, name, "host", "%")} if p.how == "busy" else {}

RUNNER = Runner("state", "state", Faults, lambda p: None, lambda p, o, t: ["true"], series, by_line(lambda p, s, l: None), ends_well,
                auxiliary=True, here=here)
'''


@pytest.fixture
def state_runner(counter, tmp_path):
    """A runner of the user beside `counter`."""
    counter()
    (runners.folder() / "state.py").write_text(STATE)
    runners.find.cache_clear()


def measure(tmp_path, *plans, setting=SETTING, check=True):
    schedule = make(combine(*plans), setting, Options())
    meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), 0)
    (tmp_path / "runs").mkdir(exist_ok=True)
    with checks.places_of(schedule) as places:
        if check:
            checks.tools(schedule, places)
        return open_run(Session(schedule, meta, tmp_path / "runs", places=places).run())


@pytest.mark.slow
def test_state_is_stored_with_a_run(state_runner, tmp_path):
    run = measure(tmp_path, invoke("counter", "number"), invoke("state", "state"), invoke("state", "twins", how="twins"))
    assert run.meta.verdict == "valid", run.meta.sentences
    names = [series.name for series in run.meta.series]
    assert names == ["number", "twin", "?bell", "twin (2)", "twin (3)"], "names are plain and unique"
    assert [series.id for series in run.meta.series] == list(range(5)) and {series.runner for series in run.meta.series} == {0, 1, 2}
    one = run.arrays(run.series("twin"))
    assert one["value"].tolist() == list(range(1, len(one["value"]) + 1)) and 5 <= len(one["value"]) <= 21
    steps = np.diff(one["t_ns"])
    assert one["t_ns"].min() >= 0 and np.all(steps > 0) and np.median(steps) < 120 * MS, "a short interval is kept between reads of the pipes"
    assert [(stored.status, stored.argv, stored.place) for stored in run.meta.runners[1:]] == [("ended", [], "local")] * 2
    assert {one.name: one.kind for one in figures.summarise(run).series} == dict.fromkeys(names, "state") | {"number": "value"}
    assert not any(one.key.startswith("value.twin") for one in of_summary(figures.summarise(run))), "groups of runs are not compared by it"


@pytest.mark.parametrize(("how", "words"), [
    ("ends", "it was no longer recorded: eth0 is gone"), ("defect", "it was no longer recorded: oops"), ("never", "it was no longer recorded: no netlink here"),
    ("broken", r"the runner state has a defect( \(.*line \d+\))?: KeyError"), ("strange", "cannot be read as results|no longer recorded: no sense"),
])
@pytest.mark.slow
def test_state_that_cannot_be_recorded_degrades_and_ends_nothing(state_runner, tmp_path, how, words):
    run = measure(tmp_path, invoke("counter", "number"), invoke("state", "state", how=how, interval_ns=20 * MS), check=False)
    assert run.meta.verdict == "degraded" and len(run.meta.sentences) == 1, run.meta.sentences
    assert re.search(f"state: .*({words})", run.meta.sentences[0]), run.meta.sentences
    assert len(run.arrays(run.series("number"))["value"]) >= 5


@pytest.mark.parametrize(("how", "words"), [("never", "state: no netlink here"), ("broken", r"state: the runner state has a defect( \(.*line \d+\))?: KeyError")])
def test_state_that_cannot_be_read_is_found_before_the_run(state_runner, how, words):
    schedule = make(invoke("state", "state", how=how), SETTING, Options())
    with checks.places_of(schedule) as places, pytest.raises(checks.CheckError, match=words):
        checks.tools(schedule, places)


@pytest.mark.slow
def test_a_busy_host_is_no_reason(state_runner, tmp_path):
    run = measure(tmp_path, invoke("counter", "number"), invoke("state", "CPU", how="busy"))
    assert (run.meta.verdict, run.meta.sentences) == ("valid", [])


@pytest.mark.slow
def test_a_value_that_a_double_does_not_hold(state_runner, tmp_path):
    run = measure(tmp_path, invoke("counter", "number"), invoke("state", "state", how="huge"))
    assert run.arrays(run.series("huge"))["value"][0] == 2.0**64 and run.meta.verdict == "valid", run.meta.sentences


@pytest.mark.slow
def test_a_run_does_not_wait_for_state(state_runner, tmp_path):
    """The measurement ends early: the state beside it ends with it, and that is no further fault."""
    run = measure(tmp_path, invoke("counter", "number", how="early"), invoke("state", "state"), invoke("processor", "CPU"), setting=Setting("H", 20, 0))
    assert run.meta.runners[1].ended_ns < 10_000 * MS and all("state" not in reason and "CPU" not in reason for reason in run.meta.sentences)


@pytest.mark.slow
def test_state_alone_is_a_measurement(state_runner, tmp_path):
    run = measure(tmp_path, invoke("state", "state"), invoke("netstat", "netstat"))
    assert run.meta.verdict == "valid" and len(run.arrays(run.series("twin"))["value"]) >= 5, run.meta.sentences


@pytest.mark.slow
def test_state_of_which_nothing_came_is_no_measurement(state_runner, tmp_path):
    run = measure(tmp_path, invoke("netstat", "netstat", counters=("No.Such",)))
    assert (run.meta.verdict, run.meta.sentences) == ("invalid", ["nothing at all was recorded"])
    run = measure(tmp_path, invoke("counter", "number"), invoke("netstat", "netstat", counters=("No.Such",)))
    assert run.meta.verdict == "valid", run.meta.sentences


@pytest.mark.tool
def test_state_of_another_host(far, counter, tmp_path):
    """By the loop of a shell over ssh, on the clock of this run."""
    counter()
    there = [invoke(name, f"{name}@far", place="ssh:far", **more) for name, more in
             (("processor", {"cores": True}), ("netstat", {}), ("interface", {"device": "lo"}), ("sockets", {}))]
    run = measure(tmp_path, invoke("counter", "number"), *there, setting=Setting("H", 2.0, 0))
    # A busy machine is a reason with the name of its place.
    assert [reason for reason in run.meta.sentences if not reason.startswith("ssh:far: its processors were busy")] == []
    assert {stored.place for stored in run.meta.runners[1:]} == {"ssh:far"} and not any(stored.host for stored in run.meta.runners[1:])
    cpu = run.arrays(run.series("processor@far"))
    assert len(cpu["t_ns"]) >= 3 and cpu["t_ns"].min() > -100 * MS and cpu["t_ns"].max() < 2500 * MS
    assert any(series.name.startswith("processor@far core 0 ") for series in run.meta.series)
    assert run.meta.of_kind("tcp_info"), "the connection of ssh itself"


@pytest.mark.tool
def test_a_tool_that_is_missing_there_is_found_before_the_run(far, counter, tmp_path):
    counter()
    schedule = make(combine(invoke("counter", "number"), invoke("wifi", "wifi@far", place="ssh:far")), SETTING, Options())
    if subprocess.run(["sh", "-c", "command -v iw"], capture_output=True, check=False).returncode == 0:
        with checks.places_of(schedule) as places:
            checks.tools(schedule, places)
        assert schedule.jobs[1].stored.tool_version
    else:
        with checks.places_of(schedule) as places, pytest.raises(checks.CheckError, match=r"in place ssh:far: iw is not installed"):
            checks.tools(schedule, places)


# ----------------------------------------------------------------------------------------------------------------- --with


def test_parts_of_the_command_line():
    one = extras.part("qdisc@ssh:root@router,device=eth1,interval=50ms,flows=yes")
    assert one == Invocation("qdisc", "qdisc@ssh:root@router", one.parameters, place="ssh:root@router")
    assert (one.parameters.device, one.parameters.interval_ns, one.parameters.flows, one.parameters.classes) == ("eth1", 50 * MS, True, True)
    assert extras.part("processor,cores=yes").name == "CPU" and extras.part("netstat,counters=TcpExt.*+IpExt.*").parameters.counters == ("TcpExt.*", "IpExt.*")
    names = [one.name for one in extras.parts(["qdisc,device=a", "qdisc,device=b", "netstat"])]
    assert names == ["qdisc device=a", "qdisc device=b", "netstat"]


@pytest.mark.parametrize(("text", "words"), [
    ("", "no runner is called ''"), ("qdisk", "did you mean qdisc"), ("qdisc@moon", "'moon' is not a place"), ("qdisc@", "is not a place"),
    ("qdisc,device", "is not a parameter of qdisc, NAME=VALUE; it has: host, family, interval, device, classes, flows"), ("qdisc,color=red", "'color=red' is not"),
    ("qdisc,place=netns:r", "its place is named by qdisc@PLACE"), ("qdisc:place=local", "it is RUNNER[@PLACE][,NAME=VALUE]..."),
    ("qdisc,interval=soon", "is not a duration"), ("qdisc,flows=maybe", "yes or no"), ("sockets,port=http", "no whole number"),
])
def test_parts_that_cannot_be(text, words):
    with pytest.raises(PlanError, match=re.escape(words)):
        extras.part(text)


def test_parameters_are_checked_before_the_run():
    plan = invoke("ping", "Ping")
    for text in ("qdisc,interval=1ms", "qdisc,device=a/b", "sockets,peer=far"):
        with pytest.raises(PlanError):
            extras.beside(plan, extras.parts([text]), [])
    with pytest.raises(PlanError, match="two parts of the test are called 'netstat'"):
        extras.beside(invoke("netstat", "netstat"), extras.parts(["netstat"]), [])


def test_defaults_give_way():
    default, missing = extras.every(Options(host="127.0.0.1"))
    assert [one.name for one in default] == ["CPU"] and re.search(r"qdisc: lo has no queue", missing[0])
    plan = invoke("ping", "Ping")
    assert [one.name for one in extras.beside(plan, [], default).runs] == ["Ping", "CPU"]
    asked = extras.beside(plan, extras.parts(["processor,cores=yes"]), default).runs
    assert [(one.name, one.runner) for one in asked] == [("Ping", "ping"), ("CPU", "processor")] and asked[1].parameters.cores
    far_too = extras.beside(plan, extras.parts(["processor@ssh:router"]), default).runs
    assert [one.name for one in far_too] == ["Ping", "CPU@ssh:router", "CPU"]


def test_the_command_explains_with():
    done = subprocess.run([sys.executable, "-m", "ktrxer", "run", "ping", "-H", "127.0.0.1", "--with", "qdisk"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("ktrxer run: --with qdisk: no runner is called 'qdisk'; did you mean qdisc?")
