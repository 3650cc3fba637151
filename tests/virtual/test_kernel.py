# SPDX-License-Identifier: MIT OR Apache-2.0
"""Differences of the kernels of virtual time."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path

import pytest
from flows import Flow, run_flows
from guests import Lab, members, until

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
PRINT_AND_COMPUTE = "import os\nprint(os.uname().release, flush=True)\nwhile True: pass"


@pytest.mark.parametrize(("kernel", "filters"), [("7.3", True), *(pytest.param(older, False, marks=pytest.mark.slow) for older in ("6.12", "6.1"))])
def test_how_system_calls_are_caught(lab: Lab, kernel: str, filters: bool) -> None:
    running = lab.start("vm", "--device", "uml", "--kernel", kernel, "--", sys.executable, "-c", PRINT_AND_COMPUTE)
    assert running.stdout is not None and running.stdout.readline().startswith(f"{kernel}.")
    leader = lab.kernel()
    assert leader is not None
    inherited = "Seccomp_filters:\t0\n" not in Path("/proc/self/status").read_text()
    wanted = ({filters or inherited}, {not filters})
    # A process that begins has no filter for 10 to 20 ms on a busy machine, and one that ends has no status.
    reached = until(lambda: caught(leader, inherited) == wanted)
    found = caught(leader, inherited)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert reached, found


def caught(leader: int, inherited: bool) -> tuple[set[bool], set[bool]]:
    """Whether the guest's processes have filters, and whether they are traced."""
    programs = list[str]()
    for pid in members(leader):
        with contextlib.suppress(OSError):
            programs += [Path(f"/proc/{pid}/status").read_text()] if int(pid) != leader else []
    return {inherited or "Seccomp_filters:\t0\n" not in one for one in programs}, {"TracerPid:\t0\n" not in one for one in programs}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_a_queue_that_an_older_kernel_lacks_is_named(lab: Lab, kernel: str) -> None:
    done = lab("run", "flent", "--time", "virtual", "--kernel", kernel, "--set", "leaf=dualpi2", "--", "true")
    assert done.returncode == 125 and "this kernel has no dualpi2 (the queue" in done.stderr


def test_dualpi2_marks_l4s_and_drops_what_cannot_be_marked(tmp_path: Path) -> None:
    flows = (Flow("a", 2000, 0.002, 1000, ECT1), Flow("b", 2000, 0.002, 1000))
    came = run_flows(tmp_path, FILE, flows).arrived
    l4s, classic = ([mark for *_, mark, _ in came[name]] for name in ("a", "b"))
    assert set(l4s) <= {ECT1, CE} and set(classic) == {0}
    assert l4s.count(CE) > len(l4s) / 2, "8.3 Mbit/s through 5 Mbit/s: the marks are of the link's queue"
    assert len(classic) < 2000, "what has no ECN is dropped"
