# SPDX-License-Identifier: MIT OR Apache-2.0
"""The clock of one end is stepped or slewed in mid-run, by less than a round trip and by more. Reference: the delays of the network.

The clock of a host is set as a time daemon sets it: clock_settime(2) steps it, adjtimex(2) slews it, and CLOCK_MONOTONIC_RAW stays.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from guests import KTRXER, Lab

PYTHON = (sys.executable, "-I", "-S")
UP_MS, DOWN_MS = 2, 18
MS = 1_000_000
FILE = f"""
hosts = ["near", "far"]
[[links]]
ends = ["near", "far"]
from.near = {{ delay = "{UP_MS}ms" }}
from.far = {{ delay = "{DOWN_MS}ms" }}
"""
Fault = dict[str, int]
STEPS: list[Fault] = [{"step_ns": 8 * MS}, {"step_ns": -8 * MS}, {"step_ns": 700_000}, {"step_ns": 1_000 * MS}, {"step_ns": 5 * MS, "back_ms": 700}]
SLEWS: list[Fault] = [{"slew_ppm": 2000, "back_ms": 1000}, {"slew_ppm": -20_000, "back_ms": 300}]
USUAL: list[Fault] = [{}, {"slew_ppm": 450, "back_ms": 1500}, {"slew_ppm": -450, "back_ms": 60_000}]
CASES = [*(("far", fault) for fault in (*STEPS, *SLEWS, *USUAL)), *(("near", fault) for fault in (*SLEWS, *USUAL))]

# argv: the program, and [host, fault] for each run. Changes the clock of the host after a third of the probes. Prints the last line of each run.
JOB = """
import ctypes, json, os, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
class Timex(ctypes.Structure):
    _fields_ = [("modes", ctypes.c_uint), *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")), ("status", ctypes.c_int),
                *((name, ctypes.c_long) for name in ("constant", "precision", "tolerance", "sec", "usec", "tick")), ("rest", ctypes.c_char * 96)]
TICK, FREQUENCY = 0x4000, 0x2
def change(host, step_ns, slew_ppm):
    def there():
        with open(f"/run/netns/{host}") as place:
            assert libc.setns(place.fileno(), 0x40000000) == 0
        if step_ns:
            time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + step_ns)
        usual = abs(slew_ppm) <= 500
        timex = Timex(TICK | FREQUENCY, freq=slew_ppm * 65536 * usual, tick=10000 + (0 if usual else slew_ppm // 100))
        assert libc.adjtimex(ctypes.byref(timex)) >= 0
    thread = threading.Thread(target=there)  # of the host, unlike this one
    thread.start()
    thread.join()
def run(host, fault):
    words = [sys.argv[1], "stamp", "far", "-i", "10ms", "-c", "300", "--jsonl"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    step_ns, at, back = fault.get("step_ns", 0), None, False
    for line in child.stdout:
        last = json.loads(line)
        if at is None and last["type"] == "sample" and last.get("number") == 100:
            at = time.monotonic()
            change(host, step_ns, fault.get("slew_ppm", 0))
        if at is not None and not back and time.monotonic() > at + fault.get("back_ms", 1e9) / 1000:
            back = True
            change(host, -step_ns, 0)
    child.wait()
    change(host, 0, 0)
    return last
json.dump([run(*one) for one in json.loads(sys.argv[2])], sys.stdout)
"""


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("clocks")
    lab = Lab(folder)
    (lab.folder / "net.toml").write_text(FILE)
    (lab.folder / "job.py").write_text(JOB)
    job = (*PYTHON, "job.py", KTRXER, json.dumps(CASES))
    done = lab("run", "./net.toml", "--time", "virtual", "--beside", f"far={KTRXER} serve --quiet", "--", *job)
    assert done.returncode == 0, done.stderr
    return {str(case): end for case, end in zip(CASES, json.loads(done.stdout), strict=True)}


def holds(end: dict[str, Any]) -> None:
    """The true delays lie in the stated intervals, which are at most half of the round trip: the change is known, and widens nothing."""
    total = end["one_way_uncertainty_us"]["total"]
    for way, true_ms in (("up_us", UP_MS), ("down_us", DOWN_MS)):
        for name in ("min", "p50", "max"):
            assert abs(end[way][name] - true_ms * 1000) <= total + 50, (way, name)
    assert total < 1000 * (UP_MS + DOWN_MS) / 2 * 1.02 + 200, "round trips are measured by this host's clock, which is slewed by 2 %"


@pytest.mark.parametrize("fault", STEPS + SLEWS, ids=str)
def test_the_reflectors_clock_is_changed(ends: dict[str, dict[str, Any]], fault: Fault) -> None:
    end = ends[str(("far", fault))]
    assert end["verdict"] != "valid" and end["reflector_clock_changes"] >= 1 and end["own_clock_changes"] == 0
    assert any("the clock of the reflector was stepped, or slewed by more than 600 ppm" in reason["text"] for reason in end["reasons"])
    if "step_ns" in fault:
        assert abs(end["reflector_clock_change_us"] * 1000) == pytest.approx(abs(fault["step_ns"]), abs=20_000)
    holds(end)


@pytest.mark.parametrize("fault", USUAL, ids=str)
@pytest.mark.parametrize("host", ["far", "near"])
def test_a_usual_slew_is_no_fault(ends: dict[str, dict[str, Any]], host: str, fault: Fault) -> None:
    end = ends[str((host, fault))]
    assert end["reflector_clock_changes"] == end["own_clock_changes"] == 0 and end["clocks_adjusted"]
    assert not any("clock" in reason["text"] for reason in end["reasons"]), end["reasons"]
    holds(end)


@pytest.mark.parametrize("fault", SLEWS, ids=str)
def test_this_hosts_clock_is_slewed(ends: dict[str, dict[str, Any]], fault: Fault) -> None:
    end = ends[str(("near", fault))]
    assert end["verdict"] != "valid" and end["own_clock_changes"] >= 1 and end["reflector_clock_changes"] == 0
    assert any("the clock of this host was stepped, or slewed by more than 600 ppm" in reason["text"] for reason in end["reasons"])
    holds(end)
