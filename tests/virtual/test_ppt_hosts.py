# SPDX-License-Identifier: MIT OR Apache-2.0
"""dPPT of hosts whose packet processing time is known: it is in the stated interval of `ktrxer ppt measure` as often as stated.

near - one - two - nic - far. two shapes the end link. nic and far are the receiving host: nic is where packets leave the wire, and holds each
packet up for as long as the host needs until far's kernel stamps it, heading and trailing packets for different, varying times. tcpdump on both
sides of nic shows the same times without ktrxer: the arrival on the wire, which a NIC would stamp, and the kernel's stamp. That is the layer
NIC to kernel of `ktrxer ppt direct`, which no device of this network has."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from guests import KTRXER, Lab

FILE = """
hosts = ["near", "far"]
routers = ["one", "two", "nic"]
[[links]]
ends = ["near", "one"]
delay = "2ms"
[[links]]
ends = ["one", "two"]
[[links]]
ends = ["two", "nic"]
[[links]]
ends = ["nic", "far"]
"""
pytestmark = pytest.mark.slow
PORT = 8620
HEADING_IP_BYTES = 1476  # the usual heading packet; no trailing packet has this size
STEP_NS = 256  # of the guest's clock
RUNS = int(os.environ.get("PPT_RUNS", "4"))  # of each host
MISS = 0.05  # an interval of 95 % does so in this share of the runs

# netem counts 24 bytes more of each packet: preamble, check sequence and inter-frame gap.
LINK = "ip netns exec two tc qdisc replace dev to-nic root netem rate {}mbit 24 limit 10000"
HOST = """ip netns exec nic tc qdisc del dev to-far root 2>/dev/null
ip netns exec nic tc qdisc add dev to-far root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
ip netns exec nic tc qdisc add dev to-far parent 1:1 netem delay {}us {}us limit 10000
ip netns exec nic tc qdisc add dev to-far parent 1:2 netem delay {}us {}us limit 10000
ip netns exec nic tc filter add dev to-far parent 1: protocol ip u32 match u16 {} 0xffff at 2 flowid 1:1"""
CAPTURE = "ip netns exec {} tcpdump -i {} --time-stamp-precision=nano -U -s 96 -w {} -Q in udp port " + str(PORT) + " 2>/dev/null &"


@dataclass
class Host:
    """Packet processing times are uniform around these."""

    mbit: int
    heading_us: int
    trailing_us: int
    spread_us: int
    options: str

    @property
    def delta_ns(self) -> int:
        return 1000 * (self.trailing_us - self.heading_us)


HOSTS = {
    "10 Mbit/s, the trailing packet faster": Host(10, 40, 24, 5, "--interval 100ms"),
    "10 Mbit/s, the trailing packet slower": Host(10, 24, 32, 5, "--interval 100ms"),
    "100 Mbit/s, the trailing packet faster": Host(100, 16, 12, 1, "--interval 10ms --size2 600"),
    "100 Mbit/s, the trailing packet slower": Host(100, 16, 20, 2, "--interval 10ms --size2 600"),
    "100 Mbit/s, both the same": Host(100, 16, 16, 2, "--interval 10ms --size2 600"),
    "1000 Mbit/s, the trailing packet slower": Host(1000, 8, 12, 1, "--interval 10ms --size2 1472"),
}


def stamps(path: Path) -> dict[bytes, tuple[int, int]]:
    """Arrival and IP length of each packet by its UDP payload, which contains its number."""
    data = path.read_bytes()
    assert data[:4] == struct.pack("<I", 0xA1B23C4D), path  # pcap with nanoseconds
    found, at = dict[bytes, tuple[int, int]](), 24
    while at < len(data):
        seconds, nanoseconds, kept, length = struct.unpack_from("<IIII", data, at)
        frame, at = data[at + 16 : at + 16 + kept], at + 16 + kept
        found[frame[42:]] = (seconds * 10**9 + nanoseconds, length - 14)
    return found


def by_tcpdump(wire: Path, kernel: Path, trailing: set[int]) -> float:
    """dPPT of the probes of a run: the mean over all trailing packets, of these IP lengths, minus that over all heading packets."""
    arrived, times = stamps(wire), dict[bool, list[int]]()
    for payload, (at, ip_bytes) in stamps(kernel).items():
        if ip_bytes == HEADING_IP_BYTES or ip_bytes in trailing:
            times.setdefault(ip_bytes == HEADING_IP_BYTES, []).append(at - arrived[payload][0])
    assert len(times[True]) == len(times[False]) == 100, {heading: len(each) for heading, each in times.items()}
    return fmean(times[False]) - fmean(times[True])


@dataclass
class Run:
    result: dict[str, Any]
    by_tcpdump_ns: float


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Run]]:
    lab = Lab(tmp_path_factory.mktemp("ppt-hosts"))
    (lab.folder / "hosts.toml").write_text(FILE)
    lab.write_token()
    job = list[str]()
    for number, host in enumerate(HOSTS.values()):
        job.append(LINK.format(host.mbit))
        job.append(HOST.format(host.heading_us, host.spread_us, host.trailing_us, host.spread_us, HEADING_IP_BYTES))
        for run in range(RUNS):
            name = f"{number}-{run}"
            job += [CAPTURE.format("nic", "to-two", f"{name}.wire"), "wire=$!", CAPTURE.format("far", "to-nic", f"{name}.kernel"), "kernel=$!", "sleep 0.5"]
            job.append(f"{KTRXER} ppt measure far --direction up --json --token-file token {host.options} >{name}.json")
            job.append("sleep 0.5; kill -INT $wire $kernel; wait $wire $kernel")
    (lab.folder / "job").write_text("\n".join(job))
    serve = f"far={KTRXER} serve --quiet --token-file token"
    done = lab("run", "./hosts.toml", "--time", "virtual", "--beside", serve, "--", "sh", "./job", timeout=230 + 10 * RUNS)
    assert done.returncode == 0, done.stdout + done.stderr

    def read(name: str) -> Run:
        result = json.loads((lab.folder / f"{name}.json").read_text())
        trailing = {train["trailing_wire_bytes"] - 26 for train in result["up"]["trains"]}
        return Run(result, by_tcpdump(lab.folder / f"{name}.wire", lab.folder / f"{name}.kernel", trailing))

    return {host: [read(f"{number}-{run}") for run in range(RUNS)] for number, host in enumerate(HOSTS)}


def holds(run: Run, delta_ns: float) -> bool:
    delta = run.result["up"]["delta_ns"]
    return bool(delta) and delta["low"] <= delta_ns <= delta["high"]


def test_tcpdump_shows_the_processing_times_that_were_made(runs: dict[str, list[Run]]) -> None:
    """The reference itself: uniform times, 100 of each kind in a run."""
    for name, host in HOSTS.items():
        error_ns = 1000 * host.spread_us * (2 / 3 / 100 / RUNS) ** 0.5  # of the difference of both means
        assert fmean(run.by_tcpdump_ns for run in runs[name]) == pytest.approx(host.delta_ns, abs=4 * error_ns + STEP_NS), name


@pytest.mark.parametrize("name", HOSTS)
def test_each_host_has_a_result(runs: dict[str, list[Run]], name: str) -> None:
    for run in runs[name]:
        # At 1000 Mbit/s the processing times vary more than the packets last.
        assert not [reason["text"] for reason in run.result["reasons"] if HOSTS[name].mbit < 1000 or "wider than 15 %" not in reason["text"]]
        assert run.result["up"]["reading"] == "resolved", run.result["up"]
    found = fmean(run.result["up"]["delta_ns"]["value"] for run in runs[name])
    wide = max(run.result["up"]["delta_ns"]["high"] - run.result["up"]["delta_ns"]["low"] for run in runs[name])
    assert found == pytest.approx(HOSTS[name].delta_ns, abs=wide / 2), name


@pytest.mark.parametrize("reference", ["as made", "by tcpdump"])
def test_the_interval_holds_the_difference_as_often_as_stated(runs: dict[str, list[Run]], reference: str) -> None:
    """So many misses of all runs are allowed that an interval of 95 % has more in one of 1000 tests."""
    misses = list[str]()
    for name, each in runs.items():
        for run in each:
            truth = HOSTS[name].delta_ns if reference == "as made" else run.by_tcpdump_ns
            if not holds(run, truth):
                misses.append(f"{name}: {truth} ns, {run.result['up']['delta_ns']}")
    count = len(HOSTS) * RUNS
    assert len(misses) <= most_misses(count), misses


def most_misses(count: int) -> int:
    """The least k with P(more than k of `count` intervals miss) < 1/1000."""
    at_most, k = (1 - MISS) ** count, 0
    while 1 - at_most >= 0.001:
        k += 1
        at_most += comb(count, k) * MISS**k * (1 - MISS) ** (count - k)
    return k


def test_other_differences_are_outside(runs: dict[str, list[Run]]) -> None:
    """The intervals are not so wide that they hold any difference: 0 is outside where the host's difference is 4 us and more."""
    for name, host in HOSTS.items():
        if abs(host.delta_ns) >= 4000 and host.mbit >= 100:
            assert not any(holds(run, 0) for run in runs[name]), name
