# SPDX-License-Identifier: MIT OR Apache-2.0
"""The clock of one end is stepped or slewed in mid-run, by less than a round trip. Reference: the forwarder
on the path, which holds each packet and measures for how long.

The machine's clock is shared by all hosts here, so clock_shim.c changes it for one process: CLOCK_REALTIME, CLOCK_MONOTONIC where the clock is slewed,
and the stamps of the kernel, but not CLOCK_MONOTONIC_RAW, as a kernel does.
"""

import json
import statistics
import struct
import subprocess
import sys
import time

import pytest
from shims import shim

UP_MS, DOWN_MS = 2, 18
MS = 1_000_000

STEPS = [{"STEP_NS": 8 * MS}, {"STEP_NS": -8 * MS}, {"STEP_NS": 700_000}, {"STEP_NS": 1_000 * MS}, {"STEP_NS": 5 * MS, "BACK_MS": 700}]
SLEWS = [{"SLEW_PPM": 2000, "BACK_MS": 1000}, {"SLEW_PPM": -20_000, "BACK_MS": 300}]
USUAL = [{}, {"SLEW_PPM": 450, "BACK_MS": 1500}, {"SLEW_PPM": -450, "BACK_MS": 60_000}]


# argv: milliseconds up and down. It delays each packet by that time; at the end of its input it prints the measured delays in microseconds.
FORWARDER = """
import heapq, json, select, socket, statistics, sys, time
holds = float(sys.argv[1]) / 1000, float(sys.argv[2]) / 1000
outer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); outer.bind(("10.77.0.2", 9000))
inner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); inner.connect(("10.78.0.2", 8620))
queue, client, order, held = [], None, 0, ([], [])
print("up", flush=True)
while True:
    ready, _, _ = select.select([outer, inner, sys.stdin], [], [], max(0, queue[0][0] - time.monotonic()) if queue else None)
    if sys.stdin in ready:
        break
    for one in ready:
        packet, sender = one.recvfrom(9000)
        client = sender if one is outer else client
        order += 1
        came, down = time.monotonic(), one is inner
        heapq.heappush(queue, (came + holds[down], order, down, came, packet))
    while queue and queue[0][0] <= time.monotonic():
        _, _, down, came, packet = heapq.heappop(queue)
        held[down].append((time.monotonic() - came) * 1e6)
        outer.sendto(packet, client) if down else inner.send(packet)
print(json.dumps([{"min": min(one), "p50": statistics.median(one)} for one in held]))
"""


@pytest.fixture
def held(path):
    """Stop the forwarder, and return its measured delays up and down."""
    child = path.r.popen([sys.executable, "-c", FORWARDER, str(UP_MS), str(DOWN_MS)], stdin=subprocess.PIPE)
    assert child.stdout.readline() == "up\n"
    yield lambda: json.loads(child.communicate(timeout=20)[0])
    if child.poll() is None:
        child.kill()
        child.communicate()


class ChangedClock:
    """The words before a command whose clock is to be changed; begin() changes it from now on."""

    def __init__(self, built, at):
        self.built, self.at = built, at
        at.write_bytes(bytes(8))

    def words(self, fault):
        return ["env", f"LD_PRELOAD={self.built}", f"CLOCK_SHIM_AT={self.at}", *(f"CLOCK_SHIM_{name}={value}" for name, value in fault.items())]

    def begin(self):
        with self.at.open("r+b") as file:
            file.write(struct.pack("=q", time.time_ns()))


@pytest.fixture
def clock(ktrxer, tmp_path):
    return ChangedClock(shim(ktrxer), tmp_path / "clock")


def stamp(path, clock, words, *more):
    """The clock is changed after a third of the probes."""
    child = path.a.popen([*words, path.ktrxer, "stamp", "10.77.0.2", "-p", "9000", "-i", "10ms", "-c", "300", "--jsonl", *more])
    for line in child.stdout:
        last = json.loads(line)
        if last["type"] == "sample" and last.get("number") == 100:
            clock.begin()
    child.communicate()
    return last


def holds(end, truth):
    """The true delays lie in the stated intervals. What the kernels and the scheduler add to the forwarder's delays is in the round trip, which no clock
    changes, so the medians have an upper limit."""
    total = end["one_way_uncertainty_us"]["total"]
    added = max(0, end["rtt_us"]["p50"] - sum(true["p50"] for true in truth))
    for way, true in zip(("up_us", "down_us"), truth, strict=True):
        print(f"figure: {way} min {end[way]['min']}, p50 {end[way]['p50']} +- {total} us; the path has {true}; {end['reasons']}")
        assert true["min"] - total <= end[way]["min"] <= true["min"] + total + 1000
        assert true["p50"] - total <= end[way]["p50"] <= true["p50"] + total + added + 1000
    # At most half of the round trip: the change is known, so it does not widen the interval.
    assert total < 1000 * (UP_MS + DOWN_MS) / 2 + 1500


@pytest.mark.parametrize("fault", STEPS + SLEWS, ids=str)
def test_the_reflectors_clock_is_changed(path, held, serve, clock, fault):
    serve(path.b, prefix=clock.words(fault))
    end = stamp(path, clock, [])
    assert end["verdict"] != "valid" and end["reflector_clock_changes"] >= 1 and end["own_clock_changes"] == 0
    assert any("the clock of the reflector was stepped, or slewed by more than 600 ppm" in reason for reason in end["reasons"])
    if "STEP_NS" in fault:
        assert abs(end["reflector_clock_change_us"] * 1000) == pytest.approx(abs(fault["STEP_NS"]), abs=20_000)
    holds(end, held())


@pytest.mark.parametrize("fault", USUAL, ids=str)
@pytest.mark.parametrize("there", [True, False])
def test_a_usual_slew_is_no_fault(path, held, serve, clock, fault, there):
    serve(path.b, prefix=clock.words(fault) if there else [])
    end = stamp(path, clock, [] if there else clock.words(fault))
    assert end["reflector_clock_changes"] == end["own_clock_changes"] == 0 and end["clocks_adjusted"]
    assert not any("clock" in reason for reason in end["reasons"]), end["reasons"]
    holds(end, held())


@pytest.mark.parametrize("fault", SLEWS, ids=str)
def test_this_hosts_clock_is_slewed(path, held, serve, clock, fault):
    serve(path.b)
    end = stamp(path, clock, clock.words(fault))
    assert end["verdict"] != "valid" and end["own_clock_changes"] >= 1 and end["reflector_clock_changes"] == 0
    assert any("the clock of this host was stepped, or slewed by more than 600 ppm" in reason for reason in end["reasons"])
    holds(end, held())


@pytest.mark.parametrize("fault", [{"STEP_NS": 8 * MS}, {"SLEW_PPM": 2000, "BACK_MS": 1000}], ids=str)
def test_a_run_names_the_clock(path, serve, clock, fault):
    serve(path.b, "--token-file", path.token, prefix=clock.words(fault))
    child = path.start("ping", "-l", "6", "--delay", "0.2", "-i", "10ms", "--no-extras")
    path.wait_for_samples(200)
    clock.begin()
    made = path.result(child)
    assert made.verdict != "valid" and made.says("the clock of the reflector was stepped, or slewed")
    latency = made.run.table("latency")
    delays = [delay for delay in latency.column("up_ns").to_pylist() if delay is not None]
    print(f"figure: {len(delays)} delays up, p50 {statistics.median(delays) / 1000:.1f} us; {made.reasons}")
    assert len(delays) > 400 and not made.says("stepped against each other")
    assert statistics.median(delays) < MS
