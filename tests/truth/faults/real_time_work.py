# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real-time work of another program on one processor."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Uses the processor for 40 of each 50 ms with real-time priority, so that no normal thread can preempt it. The clock gives the phase of these
# 50 ms, so that two of them keep their distance.
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
print("up", flush=True)
end = time.monotonic() + float(sys.argv[2])
while (now := time.monotonic()) < end:
    time.sleep((float(sys.argv[3]) - now) % 0.05)
    until = time.monotonic() + 0.04
    while time.monotonic() < until:
        pass
"""


@contextlib.contextmanager
def real_time_work(cpu, seconds=float("inf"), phase=0.0):
    """At most so many seconds. Each 50 ms of work begin `phase` seconds after a multiple of 50 ms."""
    with subprocess.Popen([sys.executable, "-c", HOG, str(cpu), str(seconds), str(phase)], stdout=subprocess.PIPE, text=True) as child:
        try:
            if child.stdout.readline() != "up\n":
                pytest.skip("SCHED_FIFO is not permitted here")
            yield
        finally:
            child.kill()


def pin(pid, cpu):
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {cpu})


def pin_commands(ktrxer, names, cpu):
    """All processes that are such commands of ktrxer."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cmdline").read_bytes().split(b"\0")[:2] in [[str(ktrxer).encode(), name.encode()] for name in names]:
                pin(int(process.name), cpu)
