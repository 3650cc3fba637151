# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Flent paper's topology: CUBIC fills the bottleneck's FIFO to a second, BBR does not; CoDel keeps both short."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass

import pytest
from ktrxer_lab import topology, vm, wiring
from ktrxer_lab.errors import Unavailable

SERVER = """
ip netns exec server iperf3 -s -D >/dev/null
sleep 0.5
"""
TRANSFER = """
ip netns exec client ping -i 0.2 {server} >/tmp/ping &
ip netns exec client iperf3 -c {server} -C {congestion} -t {seconds} -J >/tmp/iperf.json
kill $!
sleep 3
cat /tmp/iperf.json
echo
echo PINGS
grep -o 'time=[0-9.]*' /tmp/ping
echo NEXT
"""


@dataclass
class Transfer:
    rate: float  # Mbit/s at the receiver
    times: list[float]  # round trips beside it, in ms, five a second
    seconds: int

    def last(self, seconds: int) -> list[float]:
        """The round trips of its last seconds, when the queue has had time to fill."""
        return self.times[5 * (self.seconds - seconds) : 5 * self.seconds]


def transfers(leaf: str, *wanted: tuple[str, int]) -> tuple[list[Transfer], float]:
    """Runs flows one after another, each with a congestion control and a duration. Also returns the emulator's CPU time."""
    flent = topology.load("flent", {"leaf": leaf})
    server = flent.address(flent.server)
    script = SERVER + "".join(TRANSFER.format(server=server, congestion=one, seconds=seconds) for one, seconds in wanted)
    try:
        answer = vm.boot(vm.Machine.named("pc"), vm.Job(("sh", "-c", script), setup=wiring.script(flent), limit_s=360))
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert answer.status == 0, answer.stderr.decode()
    found = []
    for (congestion, seconds), message in zip(wanted, answer.stdout.decode().split("NEXT"), strict=False):
        text, _, pings = message.partition("PINGS")
        rate = json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e6
        times = [float(line.removeprefix("time=")) for line in pings.split()]
        print(f"{congestion} over {leaf}, {seconds} s: {rate:.2f} Mbit/s, ping median {statistics.median(times):.1f} ms, max {max(times):.0f} ms")
        found.append(Transfer(rate, times, seconds))
    print(f"{answer.wall_s:.0f} s wall, {answer.cpu_s:.0f} s CPU")
    return found, answer.cpu_s


def test_cubic_fills_the_fifo_with_a_second_of_delay_and_bbr_does_not() -> None:
    (cubic, bbr), _ = transfers("pfifo limit 1000", ("cubic", 18), ("bbr", 8))
    assert 9.0 < cubic.rate < 9.65
    assert 900 < statistics.median(cubic.last(4)) < 1260  # it has filled after some 14 s
    assert 1200 < max(cubic.times) < 1300  # 1000 frames of 1514 bytes at 10 Mbit/s, and 50 ms
    assert 9.0 < bbr.rate < 9.6
    assert 50 <= statistics.median(bbr.last(4)) < 75


@pytest.mark.slow
def test_a_minute_of_cubic_takes_less_than_a_minute() -> None:
    """The limit applies to CPU time, which equals the wall time on an idle host."""
    (cubic,), cpu_s = transfers("pfifo limit 1000", ("cubic", 60))
    assert 9.4 < cubic.rate < 9.65
    assert 900 < statistics.median(cubic.times) < 1200
    assert cpu_s < 60


@pytest.mark.slow
@pytest.mark.parametrize(("congestion", "leaf", "low", "high"), [
    ("bbr", "pfifo limit 1000", 50, 75),
    ("cubic", "codel", 50, 56),
    ("cubic", "pie", 50, 75),
    ("cubic", "fq_codel", 50, 54),
    ("bbr", "codel", 50, 62),
    ("bbr", "pie", 50, 65),
])
def test_active_queues_and_bbr_keep_it_shorter(congestion: str, leaf: str, low: float, high: float) -> None:
    (one,), _ = transfers(leaf, (congestion, 30))
    assert 8.5 < one.rate < 9.65
    assert low <= statistics.median(one.times) < high
