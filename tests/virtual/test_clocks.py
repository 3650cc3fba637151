# SPDX-License-Identifier: MIT OR Apache-2.0
"""Clocks of hosts: a process gets all times from its host's clock, and intervals of estimates across two clocks contain the true offset."""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from typing import Any

import pytest
from guests import KTRXER, Lab

PYTHON = (sys.executable, "-I", "-S")
OFFSET_NS, RATE_PPM, STEP_NS, STEP_AT_S = 3_000_000, 40.0, -50_000_000, 30
DELAY_NS = {"a": 4_000_000, "b": 9_000_000}

FILE = f"""
hosts = ["a", "b"]
[[links]]
ends = ["a", "b"]
from.a = {{ delay = "{DELAY_NS["a"]}ns" }}
from.b = {{ delay = "{DELAY_NS["b"]}ns" }}
[[clocks]]
node = "b"
offset = "{OFFSET_NS}ns"
rate_ppm = {RATE_PPM}
[[clocks]]
node = "b"
at = "{STEP_AT_S}s"
offset = "{STEP_NS}ns"
"""

# One process, which enters each host in turn: the clocks of `b` compared with those of the guest's kernel, which is host "".
ENTER = """
import ctypes, json, os, socket, struct, sys, threading, time
CLOCKS = ("REALTIME", "MONOTONIC", "TAI", "BOOTTIME", "MONOTONIC_RAW")
libc = ctypes.CDLL(None)
def enter(host):
    fd = os.open(f"/run/netns/{host}" if host else "/proc/1/ns/net", os.O_RDONLY)
    assert libc.setns(fd, 0x40000000) == 0
    os.close(fd)
def true():
    enter(""); return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
def differences():
    # The kernel's clock before and after, so that what the reading itself takes is known.
    found = {}
    for name in CLOCKS:
        clock = getattr(time, "CLOCK_" + name)
        enter(""); before = time.clock_gettime_ns(clock)
        enter("b"); there = time.clock_gettime_ns(clock)
        enter(""); after = time.clock_gettime_ns(clock)
        found[name] = (there - (before + after) / 2, after - before)
    return true(), found
"""
SHOW = """
def stamp():
    # SO_TIMESTAMPNS of a packet between two readings of the same host.
    enter("b")
    a, b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    b.setsockopt(socket.SOL_SOCKET, 35, 1); b.bind(("127.0.0.1", 0)); b.settimeout(5)
    before = time.time_ns(); a.sendto(b"x", b.getsockname()); after = time.time_ns()
    _, ((_, _, data),), *_ = b.recvmsg(10, 100)
    seconds, ns = struct.unpack("qq", data)
    return before, seconds * 10**9 + ns, after
def packet():
    enter("b")
    taken = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)); taken.bind(("lo", 0x0800))
    taken.setsockopt(socket.SOL_SOCKET, 35, 1); taken.settimeout(5)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    before = time.time_ns(); s.sendto(b"y", ("127.0.0.1", 9)); after = time.time_ns()
    _, ((_, _, data),), *_ = taken.recvmsg(100, 100)
    seconds, ns = struct.unpack("qq", data)
    return before, seconds * 10**9 + ns, after
def waits():
    # Absolute waits of a host end by its own clock.
    enter("b")
    found = {}
    for name in ("REALTIME", "MONOTONIC"):
        clock = getattr(time, "CLOCK_" + name)
        until = time.clock_gettime_ns(clock) + 50_000_000
        libc.clock_nanosleep(clock, 1, struct.pack("qq", until // 10**9, until % 10**9), None)
        found[name] = time.clock_gettime_ns(clock) - until
    held = threading.Lock(); held.acquire()
    begun = time.monotonic_ns(); held.acquire(timeout=0.05); found["lock"] = time.monotonic_ns() - begun - 50_000_000
    return found
answer = {"first": differences(), "stamp": stamp(), "packet": packet(), "waits": waits()}
enter(""); time.sleep(20); answer["drifted"] = differences()
time.sleep(15); answer["stepped"] = differences()
enter("b"); now = time.time_ns(); time.clock_settime_ns(time.CLOCK_REALTIME, now + 7_000_000); answer["set"] = differences()
enter("a"); answer["other"] = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - true()
answer["says"] = open("/proc/net/host_clock").read()
json.dump(answer, sys.stdout)
"""


@pytest.fixture(params=["7.3", *(pytest.param(older, marks=pytest.mark.slow) for older in ("6.12", "6.1"))])
def kernel(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def two(lab: Lab) -> Lab:
    (lab.folder / "two.toml").write_text(FILE)
    return lab


def test_all_times_that_a_process_gets_are_of_its_host(two: Lab, kernel: str) -> None:
    (two.folder / "show.py").write_text(ENTER + SHOW)
    done = two("run", "./two.toml", "--time", "virtual", "--kernel", kernel, "--", *PYTHON, "show.py")
    assert done.returncode == 0, done.stderr
    message: dict[str, Any] = json.loads(done.stdout)

    at, first = message["first"]
    for name, (difference, span) in first.items():
        offset = OFFSET_NS if name in ("REALTIME", "TAI") else 0
        assert -span <= difference - offset <= span + 1e9 * RATE_PPM * 1e-6, f"{name}: less than a second after the clock was set"
    for name in ("stamp", "packet"):
        before, stamp, after = message[name]
        assert before <= stamp <= after, f"the stamp of a packet is between two readings of its host's clock ({name})"
    for name, late in message["waits"].items():
        assert 0 <= late < 100_000, name
    for key, steps in (("drifted", 0), ("stepped", STEP_NS), ("set", STEP_NS + 7_000_000)):
        later, found = message[key]
        drift = (later - at) * RATE_PPM * 1e-6
        for name, (difference, span) in found.items():
            expected = first[name][0] + drift + (steps if name in ("REALTIME", "TAI") else 0)
            assert difference == pytest.approx(expected, abs=span + first[name][1] + 20_000 * (key == "set")), (key, name)
    assert abs(message["other"]) < 100_000 and message["says"] == "0 0\n", "the other host has its own clock"


def test_stamp_between_two_clocks_holds_the_truth(two: Lab, kernel: str) -> None:
    (two.folder / "truth.py").write_text(ENTER + "json.dump(differences(), open('truth', 'w'))")
    job = f"{' '.join(PYTHON)} truth.py && {KTRXER} stamp b -c 1000 -i 50ms --json"
    done = two("run", "./two.toml", "--time", "virtual", "--kernel", kernel, "--beside", f"b={KTRXER} serve", "--", "sh", "-c", job)
    assert done.returncode == 3, done.stderr  # the verdict: a clock was stepped
    found = json.loads(done.stdout)
    at, first = json.loads((two.folder / "truth").read_text())
    # The reflector reports the step of its clock, and the delays are corrected by it, so it begins no new segment.
    assert found["received"] == 1000 and found["clock_steps"] == 0 and found["reflector_clock_changes"] == 1
    assert found["reflector_clock_change_us"] == pytest.approx(STEP_NS / 1e3, abs=1) and found["own_clock_changes"] == 0

    later_s = (found["offset_at_ns"] - at) / 1e9
    truth_us = (first["REALTIME"][0] + later_s * RATE_PPM * 1e3 + (STEP_NS if later_s > STEP_AT_S else 0)) / 1e3
    assert abs(found["offset_us"] - truth_us) <= found["offset_bound_us"] < sum(DELAY_NS.values()) / 2e3 + 100
    assert abs(found["skew_ppm"] - RATE_PPM) <= found["skew_bound_ppm"]
    total_us = found["one_way_uncertainty_us"]["total"]
    for direction, node in (("up_us", "a"), ("down_us", "b")):
        for name in ("min", "p50", "max"):
            assert abs(found[direction][name] - DELAY_NS[node] / 1e3) <= total_us + 50, (direction, name)


SLEWS = """
[[clocks]]
node = "b"
offset = "4ms"
[[clocks]]
node = "b"
at = "5s"
slew = "-4ms"
"""
SAMPLE = """
answer = []
while not answer or answer[-1][0] < 20_000_000_000 + answer[0][0]:
    answer.append(differences()); enter(""); time.sleep(0.5)
json.dump(answer, sys.stdout)
"""


def test_a_slew_corrects_the_clock_without_a_step(lab: Lab) -> None:
    """500 ppm slower for 8 s, against the kernel's own clock."""
    (lab.folder / "slew.toml").write_text(re.sub(r"(?s)\[\[clocks.*", SLEWS, FILE))
    (lab.folder / "sample.py").write_text(ENTER + SAMPLE)
    done = lab("run", "./slew.toml", "--time", "virtual", "--", *PYTHON, "sample.py")
    assert done.returncode == 0, done.stderr
    samples = json.loads(done.stdout)
    ahead = [(at, found["REALTIME"][0], found["MONOTONIC"][0]) for at, found in samples]
    span = max(found["REALTIME"][1] for _, found in samples)
    assert ahead[0][1] == pytest.approx(4_000_000, abs=span) and ahead[-1][1] == pytest.approx(0, abs=2 * span)
    assert ahead[-1][2] - ahead[0][2] == pytest.approx(-4_000_000, abs=2 * span), "a slew is of CLOCK_MONOTONIC, too"
    assert samples[-1][1]["MONOTONIC_RAW"][0] == pytest.approx(samples[0][1]["MONOTONIC_RAW"][0], abs=2 * span), "and not of the oscillator"
    rates = [(after - before) / (later - at) * 1e6 for (at, before, _), (later, after, _) in pairwise(ahead)]
    error = 2 * span / 0.5e9 * 1e6  # ppm
    slewed = [rate for rate in rates if rate == pytest.approx(-500, abs=error)]
    still = [rate for rate in rates if rate == pytest.approx(0, abs=error)]
    assert 14 <= len(slewed) <= 16 and len(still) >= len(rates) - len(slewed) - 2, rates


# A daemon calls adjtimex(2) in `b`: each line is the time by which CLOCK_MONOTONIC has gained on CLOCK_MONOTONIC_RAW after each second, in us.
ADJUST = """
class Timex(ctypes.Structure):
    _fields_ = [("modes", ctypes.c_uint), *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
                ("status", ctypes.c_int), *((name, ctypes.c_long) for name in ("constant", "precision", "tolerance", "sec", "usec", "tick")),
                ("rest", ctypes.c_char * 96)]
libc = ctypes.CDLL(None, use_errno=True)
def adjust(modes, **values):
    timex = Timex(modes, **values)
    done = libc.adjtimex(ctypes.byref(timex))
    return -ctypes.get_errno() if done < 0 else (timex.offset, timex.freq, timex.tick)
def gained():
    return (time.monotonic_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)) / 1000
def after(seconds, *calls):
    base, found = gained(), []
    done = [adjust(modes, **values) for modes, values in calls]
    for _ in range(seconds):
        time.sleep(1); found.append(gained() - base)
    return done, found
enter("b")
json.dump({
    "tick": after(2, (0x4000, {"tick": 11000})), "tick ends": after(1, (0x4000, {"tick": 10000})),
    "adjtime": after(6, (0x8001, {"offset": 2000})), "adjtime ends": after(1, (0xa001, {})),
    "locked": after(40, (0x2031, {"status": 0x81, "constant": 0, "offset": 8_000_000})),
    "first": after(1, (0x2031, {"status": 1, "constant": 2, "offset": -8_000_000})), "wait": after(64),
    "frequency": after(1, (0x0001, {"offset": 0})), "wrong": after(0, (0x4000, {"tick": 20000}), (0x0080, {"constant": 37})),
}, sys.stdout)
"""


def test_a_daemon_slews_the_clock_of_its_host(two: Lab, kernel: str) -> None:
    """By ADJ_TICK, by adjtime(3), and by the phase-locked loop of ADJ_OFFSET, whose shares are those of the kernel's own clock."""
    (two.folder / "adjust.py").write_text(ENTER + ADJUST)
    done = two("run", "./two.toml", "--time", "virtual", "--kernel", kernel, "--", *PYTHON, "adjust.py")
    assert done.returncode == 0, done.stderr
    message: dict[str, Any] = json.loads(done.stdout)
    tick = 1e6 * 0.1 / 1.1  # sleep() waits for a second of the host's CLOCK_MONOTONIC
    expected = {"tick": [tick, 2 * tick], "tick ends": [0.0], "adjtime": [500.0, 1000, 1500, 2000, 2000, 2000], "adjtime ends": [0.0]}
    for name, gains in expected.items():
        assert message[name][1] == pytest.approx(gains, rel=0.001, abs=1), name
    assert message["adjtime"][0] == [[0, 0, 10000]] and message["adjtime ends"][0] == [[0, 0, 10000]], "what is left to adjust, before the call"
    left = [8000 - gain for gain in message["locked"][1]]
    assert [later / before for before, later in pairwise(left[:10])] == pytest.approx([0.75] * 9, abs=0.005), "a quarter of the rest each second"
    assert left[-1] == pytest.approx(0, abs=1)
    (first,), (later,) = message["first"][0], message["frequency"][0]
    # The loop's gain at a time constant of 2: offset x seconds / 2^12, in 2^-16 ppm, where the seconds are at most 2^5.
    assert first[1] == pytest.approx(-8e6 * 2**5 / 2**12 * 65.536, rel=0.001) and later[1] == first[1]
    assert message["wrong"][0] == [-22, -95]


def test_without_clocks_of_hosts_it_is_said_and_nothing_is_changed(two: Lab) -> None:
    file = two.folder / "two.toml"
    file.write_text(re.sub("from.*\n", "", FILE))  # this machine may have no netem
    done = two("run", file, "--", "true")
    assert done.returncode == 125
    assert "this kernel has one clock for all hosts; use ktrxer lab run --time virtual" in done.stderr
