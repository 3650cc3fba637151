# SPDX-License-Identifier: MIT OR Apache-2.0
"""The clock of the measuring host is stepped or slewed in the middle of `ktrxer run`. Programs of others (fping, ping) print times of that clock only.
References: the delays and the rate of the network, and the interval of the probes.

The clock of a host is set as a time daemon sets it: clock_settime(2) steps it, adjtimex(2) slews it, and CLOCK_MONOTONIC_RAW stays.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np
import pytest
from guests import Lab
from ktrxer.statistics.throughput import receiver_end
from ktrxer.store import Run, open_run

UP_MS, DOWN_MS = 2, 18
MS = 1_000_000
FILE = f"""
hosts = ["near", "far"]
[[links]]
ends = ["near", "far"]
rate = "20mbit"
from.near = {{ delay = "{UP_MS}ms" }}
from.far = {{ delay = "{DOWN_MS}ms" }}
"""
RECIPE = """
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, uploads, icmp, run, udp
def plan(setting: Setting, _: NoParameters) -> Plan:
    tools = [run(name, name, interval_ns=20_000_000) for name in ("fping", "iputils")]
    return combine(icmp(setting), udp(setting, "Ping (ms) UDP"), uploads(setting, ["TCP"]), *tools)
TEST = Test("mine", "a flow beside probes", plan)
"""
Fault = dict[str, int]
STEPS: list[Fault] = [{"step_ns": 50 * MS}, {"step_ns": -50 * MS}, {"step_ns": 1_500_000}]
USUAL: list[Fault] = [{}, {"slew_ppm": 500}]
BIG: list[Fault] = [{"step_ns": 2000 * MS}, {"step_ns": -2000 * MS}]
# "all": the kernel's own clock, that of all hosts. The kernel reports its steps; those of one host's clock are a patch of the virtual kernel, and are not reported.
CASES = [*(("near", fault) for fault in (*STEPS, *BIG, *USUAL)), ("all", STEPS[0]), ("all", STEPS[1])]
SECONDS = 6  # of load
INTERVAL_NS = 20 * MS
CHANGED_NS = 3_900 * MS  # some 3 s after the first samples were stored
RATE = 20 * 1448 / 1514  # Mbit/s of TCP's payload in the frames that the link counts
TOOLS = ("fping", "iputils")

# argv: [host, fault] for each run. Changes the clock of the host 3 s after the first samples. Prints the last words of each run.
JOB = """
import ctypes, threading
libc = ctypes.CDLL(None, use_errno=True)
class Timex(ctypes.Structure):
    _fields_ = [("modes", ctypes.c_uint), *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")), ("status", ctypes.c_int),
                *((name, ctypes.c_long) for name in ("constant", "precision", "tolerance", "sec", "usec", "tick")), ("rest", ctypes.c_char * 96)]
FREQUENCY = 0x2
def change(host, step_ns, slew_ppm):
    def there():
        with open("/proc/1/ns/net" if host == "all" else f"/run/netns/{host}") as place:
            assert libc.setns(place.fileno(), 0x40000000) == 0
        if step_ns:
            time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + step_ns)
        assert libc.adjtimex(ctypes.byref(Timex(FREQUENCY, freq=slew_ppm * 65536))) >= 0
    thread = threading.Thread(target=there)  # of the host, unlike this one
    thread.start()
    thread.join()
def run(host, fault):
    words = f"{sys.executable} -m ktrxer run ./mine.py -H far -D runs --for SECONDS --delay 1 -i 20ms --no-extras --json".split()
    child = begin_run(words)
    time.sleep(3)
    change(host, fault.get("step_ns", 0), fault.get("slew_ppm", 0))
    end = json.loads(child.communicate()[0])
    change(host, 0, 0)
    return end["file"]
json.dump([run(*one) for one in json.loads(sys.argv[1])], sys.stdout)
""".replace("SECONDS", str(SECONDS))


@dataclass(frozen=True)
class Made:
    run: Run
    reasons: list[str]

    def says(self, *words: str) -> bool:
        return any(all(word in reason for word in words) for reason in self.reasons)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    folder = tmp_path_factory.mktemp("own")
    lab = Lab(folder)
    (lab.folder / "net.toml").write_text(FILE)
    (lab.folder / "mine.py").write_text(RECIPE)
    found = {}
    for case, one in zip(CASES, lab.runs_in_virtual_time("far", JOB, json.dumps(CASES), timeout=500), strict=True):
        run = open_run(lab.folder / one)
        print(f"figure: {case}: {run.meta.verdict}, {run.meta.sentences}")
        found[str(case)] = Made(run, run.meta.sentences)
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_own_figures_are_those_of_the_network(made: dict[str, Made], case: tuple[str, Fault]) -> None:
    """The commands of ktrxer convert each stamp to CLOCK_MONOTONIC, which no step changes. Round trips beside a step are left out."""
    run = made[str(case)].run
    for series in run.meta.of_kind("latency"):
        if series.name in TOOLS:
            continue
        arrays = run.arrays(series)
        answered, times = arrays["state"] == 0, arrays["t_ns"]
        late, trips = arrays["lateness_ns"][answered] / MS, arrays["rtt_ns"][answered] / MS
        assert answered.all() and len(times) > 0.98 * 8 * 50, (series.name, len(times))
        assert late.min() >= 0 and late.max() < 0.2, "the step is not this host's lateness"
        assert trips.min() == pytest.approx(UP_MS + DOWN_MS, rel=0.002) and trips.max() < UP_MS + DOWN_MS + 6, series.name
        assert np.abs(times - arrays["seq"] * INTERVAL_NS).max() < MS, "sent when they were due, by the run's own axis"
        for way, true_ms in (("up", UP_MS), ("down", DOWN_MS)):
            known = ~np.isnan(arrays[f"{way}_ns"])
            assert known.any() == ("UDP" in series.name)
            if not known.any():
                continue
            # Before the load there is no queue.
            idle = known & (times < 900 * MS)
            off = np.abs(arrays[f"{way}_ns"][idle] / MS - true_ms)
            assert (off <= arrays[f"{way}_bound_ns"][idle] / MS).all()
            least = (arrays[f"{way}_ns"] - arrays[f"{way}_bound_ns"])[known] / MS
            assert least.max() < true_ms + 6, "the step is in no one-way delay"
    (flow,) = run.meta.of_kind("bytes")
    arrays = run.arrays(flow)
    there = arrays["end"] == receiver_end(flow.direction)
    times, counts = arrays["t_ns"][there], arrays["bytes"][there]
    assert (np.diff(times) > 0).all() and (np.diff(counts) >= 0).all()
    spans = np.interp([2e9, 4e9, 6.9e9], times, counts.astype(float))
    for count, seconds in zip(np.diff(spans), (2, 2.9), strict=True):
        assert float(count) * 8 / 1e6 / seconds == pytest.approx(RATE, rel=0.02)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_times_of_other_programs_are_those_of_the_run(made: dict[str, Made], case: tuple[str, Fault]) -> None:
    one, step_ns = made[str(case)], case[1].get("step_ns", 0)
    named = [reason for reason in one.reasons if "fping" in reason and "CLOCK_REALTIME of this host" in reason]
    found = [float(step) * MS for reason in named for step in re.findall(r"was stepped by ([-+][\d.]+) ms at", reason)]
    assert found == ([step_ns] if step_ns else []), one.reasons
    assert one.run.meta.verdict == ("degraded" if step_ns else "valid")
    arrays = one.run.arrays(one.run.series("iputils"))  # it sends by CLOCK_MONOTONIC
    times, due = arrays["t_ns"], (arrays["seq"] - 1) * INTERVAL_NS
    ordinary = np.abs(due - CHANGED_NS) > 900 * MS
    spread = (times - due)[ordinary] / MS
    print(f"figure: {case}: the times of ping are {spread.min():.1f} to {spread.max():.1f} ms after the due times")
    assert ordinary.sum() > 300 and spread.max() - spread.min() < 250, "it sends up to 0.21 s late at the end of such a run, without a step"


@pytest.mark.parametrize("case", CASES[-2:], ids=str)
def test_a_step_that_the_kernel_reports_is_named(made: dict[str, Made], case: tuple[str, Fault]) -> None:
    """The clock of both hosts is stepped."""
    one = made[str(case)]
    assert one.says("Ping (ms) ICMP", "CLOCK_REALTIME was stepped 1 times during the run", f"{case[1]['step_ns'] / MS:.3f} ms")
    assert one.says("Ping (ms) UDP: the clock of the reflector was stepped")
