# SPDX-License-Identifier: MIT OR Apache-2.0
"""The process that measures the round trips of UDP and of ICMP is killed in mid-run. Reference: the time of the kill."""

import os
import signal
from pathlib import Path

from ktrxer.store.columns import ANSWERED


def prober(run):
    """The child of the run's process that has the probes of both kinds."""
    children = " ".join(path.read_text() for path in Path(f"/proc/{run}/task").glob("*/children")).split()
    (pid,) = [child for child in children if {b"stamp", b"--echo"} <= {*Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")}]
    return int(pid)


def test_neither_series_looks_complete(path, serve):
    serve(path.b, "--token-file", path.token)
    child = path.start("ping", "--for", "6", "--delay", "0.5", "-i", "20ms", "--no-extras")
    path.wait_for_samples(100)
    os.kill(prober(child.pid), signal.SIGKILL)
    made = path.result(child)
    assert made.verdict != "valid" and made.says("Ping (ms) UDP", "Ping (ms) ICMP", "killed by signal 9"), made.reasons
    series = made.run.meta.of_kind("latency")
    answered = {one.name: made.run.arrays(one)["state"].tolist().count(ANSWERED) for one in series}
    print(f"figure: {answered} of 350 answered")
    assert len(answered) == 2 and all(0 < count < 300 for count in answered.values())
    assert made.summary.grade is None
