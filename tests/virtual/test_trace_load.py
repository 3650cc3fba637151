# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer trace --load` over three routers in virtual time: the hop of the bottleneck, and its delay compared with the counters of tc."""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from guests import KTRXER, Lab

pytestmark = pytest.mark.slow

MBIT, PACKETS = 5, 30

FILE = """
hosts = ["near", "far"]
routers = ["one", "two", "three"]
[[links]]
ends = ["near", "one"]
delay = "1ms"
[[links]]
ends = ["one", "two"]
delay = "2ms"
[[links]]
ends = ["two", "three"]
[[links]]
ends = ["three", "far"]
delay = "3ms"
"""
# Prints the backlog of a device's queue, from tc. A guest needs about 50 ms of real time to start a program.
COUNT = """
import json, subprocess, sys, time
words = ["tc", "-s", "-j", "qdisc", "show", "dev", sys.argv[1]]
while True:
    now = time.monotonic_ns()
    (queue,) = [one for one in json.loads(subprocess.run(words, capture_output=True).stdout) if one.get("root")]
    print(json.dumps([now, queue["backlog"]]), flush=True)
    time.sleep(0.05)
"""


@dataclass(frozen=True)
class Scenario:
    direction: str
    router: str
    device: str
    before_hop: int


SCENARIOS = {
    "up, behind the second router": Scenario("up", "two", "to-three", 3),
    "down, behind the third router": Scenario("down", "three", "to-two", 3),
}


@dataclass(frozen=True)
class Found:
    samples: list[dict[str, Any]]
    end: dict[str, Any]
    backlog: list[tuple[int, int]]  # time, bytes


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Found]:
    """Each scenario in a guest of its own."""
    return {name: run(tmp_path_factory.mktemp("load"), one) for name, one in SCENARIOS.items()}


def run(folder: Path, one: Scenario) -> Found:
    lab = Lab(folder)
    (lab.folder / "path.toml").write_text(FILE)
    (lab.folder / "count.py").write_text(COUNT)
    lab.write_token()
    job = [
        # Routers limit their ICMP errors to one a second for each host by default.
        "for h in one two three far; do ip netns exec $h sysctl -q -w net.ipv4.icmp_ratelimit=0; done",
        f"ip netns exec {one.router} tc qdisc add dev {one.device} root netem rate {MBIT}mbit limit {PACKETS}",
        f"ip netns exec {one.router} {sys.executable} -I -S count.py {one.device} >backlog & counting=$!",
        f"{KTRXER} trace far -4 --load {one.direction} --load-for 2s --one-route --jsonl --token-file token >jsonl",
        "kill $counting; wait $counting; true",
    ]
    serve = f"far={KTRXER} serve --quiet --token-file token"
    done = lab("run", "./path.toml", "--time", "virtual", "--beside", serve, "--", "sh", "-c", "\n".join(job), timeout=230)
    assert done.returncode == 0, done.stdout + done.stderr
    objects = [json.loads(line) for line in (lab.folder / "jsonl").read_text().splitlines()]
    counts = [json.loads(line) for line in (lab.folder / "backlog").read_text().splitlines() if line.endswith("]")]
    return Found([sample for sample in objects if sample.get("kind") == "hop_answer"], objects[-1], counts)


def truth_us(one: Found) -> list[float]:
    """The delay of the queue while the hops were probed under load."""
    times = [sample["sent_ns"] for sample in one.samples if sample["stage"] == "loaded"]
    return [8 * size / MBIT for at_ns, size in one.backlog if min(times) <= at_ns <= max(times)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_hop_behind_the_bottleneck(found: dict[str, Found], name: str) -> None:
    end = found[name].end
    assert end["verdict"] == "valid", end["reasons"]
    assert end["load"]["queue_before_hop"] == SCENARIOS[name].before_hop
    assert [one["hop"] for one in end["load"]["hops"] if one["fills"]] == [SCENARIOS[name].before_hop]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_added_delay_is_that_of_the_queue(found: dict[str, Found], name: str) -> None:
    """The delay is correct within its uncertainty plus the time of one packet, because a probe may arrive during a transmission."""
    one = found[name]
    truth = statistics.median(truth_us(one))
    (queue,) = [hop for hop in one.end["load"]["hops"] if hop["fills"]]
    assert truth > 10_000  # otherwise there was no queue to find
    assert abs(queue["queue_us"] - truth) <= queue["queue_uncertainty_us"] + 1514 * 8 / MBIT, (queue, truth)
    assert queue["queue_uncertainty_us"] < truth / 3


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_flows_filled_the_link(found: dict[str, Found], name: str) -> None:
    way = found[name].end["load"][SCENARIOS[name].direction]
    assert 0.85e6 * MBIT < way["bit_s"] < 1e6 * MBIT
