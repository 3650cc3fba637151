# SPDX-License-Identifier: MIT OR Apache-2.0
"""A topology file makes the same network in a device, also with features that this host's kernel may lack: delay, and queues that mark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ktrxer_lab import topology, vm, wiring
from ktrxer_lab.errors import Unavailable

FILE = b"""
hosts = ["near", "far"]
routers = ["mid"]
[[links]]
ends = ["near", "mid"]
from.near = { rate = "4mbit", queue = "fq_codel", delay = "10ms", loss = "20%" }
from.mid = { rate = "4mbit", queue = "codel", delay = "15ms" }
[[links]]
ends = ["mid", "far"]
delay = "1ms"
"""
JOB = """
ip netns exec near ping -c 200 -i 0.02 -q far
ip netns exec near ping -6 -c 30 -i 0.02 far-6
ip netns exec wire-1 tc qdisc show dev from-near
ip netns exec wire-1 tc qdisc show dev to-mid
ip netns exec near tc qdisc show dev to-mid
"""


def test_delay_and_loss_behind_a_queue() -> None:
    made = topology.parse(FILE, Path("here.toml"))
    try:
        answer = vm.boot(vm.Machine.named("pc"), vm.Job(("sh", "-c", JOB), setup=wiring.script(made), limit_s=120))
    except Unavailable as reason:
        pytest.skip(str(reason))
    message = answer.stdout.decode()
    assert answer.status == 0, answer.stderr.decode() + message
    counted, times = re.search(r"(\d+) received", message), re.search(r"= ([0-9.]+)/", message)
    assert counted and times, message
    received, fastest = int(counted[1]), float(times[1])
    assert received == pytest.approx(160, abs=5 * (200 * 0.8 * 0.2) ** 0.5)
    assert fastest == pytest.approx(27, abs=0.5), "10 and 15 ms on the first link, twice 1 ms on the second"
    assert "bytes from far-6" in message
    assert message.rstrip().endswith("qdisc noqueue 0: root refcnt 2"), "what happens to a host's packets happens in the network"
    assert "qdisc fq_codel 10:" in message and "qdisc netem 20: root" in message and "delay 10ms loss 20%" in message
    assert answer.warnings == []
