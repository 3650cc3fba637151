# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer check` over a line with one deep queue, and over one without, in virtual time. The answer must name the direction and the place of
that queue, and its delay; the reference is the queue's backlog by tc.

    client ---- home ==== street ---- isp ---- server
"""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from guests import FOR_RUNS, Lab

FILE = """
hosts = ["client", "server"]
routers = ["home", "street", "isp"]
[[links]]
ends = ["client", "home"]
[[links]]
ends = ["home", "street"]
delay = "5ms"
{home}
{street}
[[links]]
ends = ["street", "isp"]
delay = "5ms"
{isp}
[[links]]
ends = ["isp", "server"]
"""
# Prints the backlog of each queue, and the bytes that it has sent, from tc.
COUNT = """
import json, subprocess, sys, time
while True:
    found = dict()
    for name in sys.argv[1:]:
        node, device = name.split(":")
        words = ["tc", "-n", node, "-s", "-j", "qdisc", "show", "dev", device]
        (leaf,) = [one for one in json.loads(subprocess.run(words, capture_output=True).stdout) if one["kind"] != "htb"]
        found[name] = [time.monotonic(), leaf["backlog"], leaf["bytes"]]
    print(json.dumps(found), flush=True)
    time.sleep(0.1)
"""
SETTLE_S = 2.0  # of a load, in which its queue fills: the check leaves it out
FAIR = "fq_codel"
NOT_BLOATED_MS, BLOATED_MS = 30, 100  # docs/howto/bloated.md


@dataclass(frozen=True)
class Queue:
    """A queue in front of a rate."""

    way: str
    node: str
    device: str
    mbit: int
    queue: str = FAIR

    @property
    def name(self) -> str:
        return f"{self.node}:{self.device}"

    @property
    def line(self) -> str:
        return f'from.{self.node} = {{ rate = "{self.mbit}mbit", queue = "{self.queue}" }}'


@dataclass(frozen=True)
class Scenario:
    """Two queues of which at most one is deep; then the answer."""

    queues: tuple[Queue, ...]
    before_hop: int | None = None  # the number of the router behind the deep queue
    where: str = ""


def fair(way: str) -> Queue:
    node, device = ("home", "to-street") if way == "up" else ("street", "to-home")
    return Queue(way, node, device, 20)


LINE = "between router 1 (10.64.1.2) and router 2 (10.64.2.2)"
SHAPER = "Set a shaper with cake or fq_codel (OpenWrt: SQM) in your router to 90% of the measured rate, "
SCENARIOS = {
    "up": Scenario(
        (Queue("up", "home", "to-street", 10, "bfifo limit 125000"), fair("down")),
        2, f"under an upload the queue is on the path up (100% of the delay), {LINE}",
    ),
    "down": Scenario(
        (fair("up"), Queue("down", "street", "to-home", 10, "bfifo limit 250000")),
        2, f"under a download the queue is on the path down (100% of the delay), {LINE}",
    ),
    "behind the second router": Scenario(
        (Queue("up", "street", "to-isp", 10, "bfifo limit 125000"), fair("down")),
        3, "under an upload the queue is on the path up (100% of the delay), between router 2 (10.64.2.2) and router 3 (10.64.3.2)",
    ),
    "none": Scenario((fair("up"), fair("down"))),
}  # fmt: skip


@dataclass(frozen=True)
class Found:
    answer: dict[str, Any]
    counts: list[dict[str, tuple[float, int, int]]]

    def true_ms(self, queue: Queue) -> float:
        """The median of the queue's delay in the longest time in which the device sends more than half of its rate."""
        samples = [one[queue.name] for one in self.counts]
        busy = [(8 * (b[2] - a[2]) / (b[0] - a[0]) > 0.5e6 * queue.mbit, b) for a, b in pairwise(samples)]
        stretches = [[sample for _, sample in group] for is_busy, group in groupby(busy, key=lambda one: one[0]) if is_busy]
        longest = max(stretches, key=len)
        return statistics.median(backlog * 8 / queue.mbit / 1e3 for at_s, backlog, _ in longest if at_s >= longest[0][0] + SETTLE_S)


def check(folder: Path, queues: tuple[Queue, ...], before: str = "") -> Found:
    lab = Lab(folder, FOR_RUNS)
    shaped = dict.fromkeys(("home", "street", "isp"), "")
    for one in queues:
        shaped["isp" if one.device == "to-isp" else one.node] = one.line
    (lab.folder / "line.toml").write_text(FILE.format(**shaped))
    (lab.folder / "count.py").write_text(COUNT)
    lab.write_token()
    command = f"{sys.executable} -m ktrxer check --server server --token-file token --for 8 --delay 4 -i 20ms --json -D ."
    count = f"{sys.executable} -I -S count.py {' '.join(one.name for one in queues)}"
    job = f"{before}{count} >counts & {command} >answer; status=$?; kill $!; wait $!; exit $status"
    done = lab(
        "run",
        "./line.toml",
        "--time",
        "virtual",
        "--beside",
        "server=ktrxer serve --quiet --token-file token",
        "--",
        "sh",
        "-c",
        job,
    )
    assert done.returncode == 0, done.stdout + done.stderr + (lab.folder / "answer").read_text()
    counts = [json.loads(line) for line in (lab.folder / "counts").read_text().splitlines() if line.endswith("}")]
    return Found(json.loads((lab.folder / "answer").read_text()), counts)


@pytest.mark.parametrize(
    "name",
    [one if one == "up" else pytest.param(one, marks=pytest.mark.slow) for one in SCENARIOS],
)
def test_the_queue_and_its_direction(tmp_path: Path, name: str) -> None:
    scenario = SCENARIOS[name]
    found = check(tmp_path, scenario.queues)
    first, second, third = found.answer["answer"]
    print(first, second, third, sep="\n")
    assert found.answer["verdict"] == "valid", found.answer["reasons"]
    worst = 0.0
    for queue in scenario.queues:
        (load,) = [one for one in found.answer["loads"] if one["direction"] == queue.way]
        true_ms = found.true_ms(queue)
        print(f"figure: {queue.name}: {load['added_ms']:.2f} ms ({load['low_ms']:.2f} to {load['high_ms']:.2f}), by tc {true_ms:.2f} ms")
        assert 0.85 * queue.mbit < load["rate_bps"] / 1e6 < queue.mbit
        if queue.queue == FAIR:
            # Each flow has a queue of its own, so a probe waits for one packet of each at most, and not for their backlog.
            assert load["added_ms"] < 5 * 1514 * 8 / queue.mbit / 1e3 < true_ms
            continue
        worst = true_ms
        packet_ms = 1514 * 8 / queue.mbit / 1e3  # a probe may arrive while a packet is sent
        assert load["added_ms"] == pytest.approx(true_ms, rel=0.05, abs=packet_ms)
        assert load["low_ms"] - packet_ms <= true_ms <= load["high_ms"]
        assert (load["queue"]["place"], load["queue"]["before_hop"]) == (
            queue.way,
            scenario.before_hop,
        )
        assert load["queue"]["share"] > 0.97
    bloated = "no" if worst < NOT_BLOATED_MS else "somewhat" if worst < BLOATED_MS else "yes"
    assert found.answer["bloated"] == bloated
    says = {
        "no": "The line is not bloated: ",
        "somewhat": "The line is somewhat bloated",
        "yes": "The line is bloated",
    }
    assert first.startswith(says[bloated])
    assert scenario.where.lower() in second.lower()
    deep = [one for one in scenario.queues if one.queue != FAIR]
    assert third.startswith(SHAPER if deep else "There is nothing to repair")
    assert not deep or (third.count("Mbit/s") == 1 and f" Mbit/s {deep[0].way};" in third), "the shaper is for the deep queue alone"


@pytest.mark.slow
def test_a_shaper_whose_bucket_becomes_empty(tmp_path: Path) -> None:
    """40 Mbit/s pass for four seconds of the upload, then 10: 90 % of the mean would leave the queue where it is."""
    shaper = "ip netns exec home tc qdisc replace dev to-street root tbf rate 10mbit burst 15mb limit 125000; "
    found = check(tmp_path, (Queue("up", "street", "to-isp", 40, "bfifo limit 50000"),), shaper)
    print(*found.answer["answer"], sep="\n")
    assert found.answer["verdict"] == "valid", found.answer["reasons"]
    (up,) = [one for one in found.answer["loads"] if one["direction"] == "up"]
    assert 8.5e6 < up["rate_bps"] < 10e6 and up["shaper_bps"] < 9e6
    assert up["added_ms"] > 60, "up to 100 ms are in the queue of the shaper"
    assert "the rate up changed: 3" in found.answer["answer"][2] and ", then 9." in found.answer["answer"][2]
