# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer flow` where 30 % of all packets are lost in each direction, those of its control connection too: each flow has its result."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from guests import ROOT, Lab

KTRXER = Path(os.environ.get("KTRXER_BUILD", ROOT / "build")) / "cli" / "ktrxer"
RUNS = 12
FILE = """
hosts = ["client", "server"]
[[links]]
ends = ["client", "server"]
delay = "10ms"
loss = "30%"
"""


@pytest.mark.parametrize("way", ["up", "down"])
def test_each_flow_has_its_counts(lab: Lab, way: str) -> None:
    (lab.folder / "lossy.toml").write_text(FILE)
    job = f"for i in $(seq {RUNS}); do {KTRXER} flow -u {way} server -b 2000k --for 1s --json > $i.json; done; true"
    done = lab("run", "./lossy.toml", "--time", "virtual", "--beside", f"server={KTRXER} serve", "--", "sh", "-c", job)
    assert done.returncode == 0, done.stderr
    ends: list[dict[str, Any]] = [json.loads((lab.folder / f"{i}.json").read_text()) for i in range(1, RUNS + 1)]
    assert [end["reasons"] for end in ends if "flows" not in end] == []
    flows = [flow for end in ends for flow in end["flows"]]
    assert all(flow["sent_packets"] is not None and flow["received_packets"] is not None for flow in flows), done.stderr
    sent, lost = (sum(flow[key] for flow in flows) for key in ("sent_packets", "lost"))
    assert len(flows) == RUNS and lost / sent == pytest.approx(0.3, abs=5 * (0.3 * 0.7 / sent) ** 0.5), (lost, sent)


ROUTED = """
hosts = ["client", "server"]
routers = ["hub"]
[[links]]
ends = ["client", "hub"]
[[links]]
ends = ["hub", "server"]
"""


@pytest.mark.parametrize("way", ["up", "down"])
def test_the_sender_sleeps_after_an_icmp_error(lab: Lab, way: str) -> None:
    """The clock stands still while a program computes, and each system call takes a time: a loop of them is seen as a busy processor."""
    (lab.folder / "routed.toml").write_text(ROUTED)
    flow = f"{KTRXER} flow -u {way} server -b 2000k --for 600ms --json"
    rule = "(sleep 0.4; ip -n hub rule add pref 1 ipproto udp prohibit) &"
    job = ("sh", "-c", f"{rule} head -1 /proc/stat > before; {flow}; head -1 /proc/stat > after")
    done = lab("run", "./routed.toml", "--time", "virtual", "--beside", f"server={KTRXER} serve", "--", *job)
    (one,) = json.loads(done.stdout)["flows"]
    assert one["received_packets"] > 10 and one["lost"] > 10, one
    before, after = ([int(word) for word in (lab.folder / name).read_text().split()[1:]] for name in ("before", "after"))
    ticks = [b - a for a, b in zip(before, after, strict=True)]
    assert ticks[3] / sum(ticks) > 0.9, f"idle {ticks[3]} of {sum(ticks)} ticks"
