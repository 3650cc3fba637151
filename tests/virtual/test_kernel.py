# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the newer kernel of virtual time has that the default one lacks."""

from __future__ import annotations

from pathlib import Path

from flows import Flow, run_flows
from guests import Lab

FILE = """
hosts = ["a", "b", "server"]
routers = ["r"]
[[links]]
ends = ["a", "r"]
[[links]]
ends = ["b", "r"]
[[links]]
ends = ["r", "server"]
from.r = { rate = "5mbit", queue = "dualpi2" }
"""
ECT1, CE = 1, 3
KERNEL = "7.3"


def test_system_calls_are_caught_by_seccomp(lab: Lab) -> None:
    done = lab("vm", "--device", "uml", "--kernel", KERNEL, "--", "sh", "-c", "uname -r; dmesg")
    assert done.returncode == 0 and done.stdout.startswith("7.3.")


def test_dualpi2_marks_l4s_and_drops_what_cannot_be_marked(tmp_path: Path) -> None:
    flows = (Flow("a", 2000, 0.002, 1000, ECT1), Flow("b", 2000, 0.002, 1000))
    came = run_flows(tmp_path, FILE, flows, kernel=KERNEL).arrived
    l4s, classic = ([mark for *_, mark, _ in came[name]] for name in ("a", "b"))
    assert set(l4s) <= {ECT1, CE} and set(classic) == {0}
    assert l4s.count(CE) > len(l4s) / 2, "8.3 Mbit/s through 5 Mbit/s: the marks are of the link's queue"
    assert len(classic) < 2000, "what has no ECN is dropped"
