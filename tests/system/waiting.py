# SPDX-License-Identifier: MIT OR Apache-2.0
"""Waiting for an event with a deadline: a busy machine is ten times slower than a quiet one."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value")


def until(condition: Callable[[], Value], event: str, within_s: float = 20, every_s: float = 0.01) -> Value:
    """The first true value of `condition`. `event` names what did not happen, for the failure."""
    end = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {within_s} s: {event}"
        time.sleep(every_s)
    return value


def read_until(child: "subprocess.Popen[str]", wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Reads the JSON lines of `child` up to the first one that is wanted."""
    assert child.stdout is not None
    while line := child.stdout.readline():
        one: dict[str, Any] = json.loads(line)
        if wanted(one):
            return one
    raise AssertionError(f"it ended before: {child.communicate()[1]}")


def event(child: "subprocess.Popen[str]", name: str) -> dict[str, Any]:
    return read_until(child, lambda one: one.get("name") == name)


def received(child: "subprocess.Popen[str]", flows: int, more_than: int = 0) -> None:
    """Reads until the receiving end of so many flows has counted more bytes than that."""
    seen = set[int]()

    def counted(one: dict[str, Any]) -> bool:
        ends = {"up": "remote", "down": "local"}
        if one.get("kind") in ("bytes", "udp") and one["end"] == ends[one["direction"]] and one["bytes"] > more_than:
            seen.add(one["flow"])
        return len(seen) == flows

    read_until(child, counted)


def stand_still(process: "subprocess.Popen[str]", seconds: float) -> None:
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def processor_s(pid: int) -> float:
    """The processor time of a process up to now."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def waited_ns(pid: int) -> int:
    """The time for which the first thread of this process was ready and had no processor (sched-stats.rst)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])


def has_run(pid: int, seconds: float) -> None:
    """Waits until the process has used so much more processor time."""
    enough = processor_s(pid) + seconds
    until(lambda: processor_s(pid) >= enough, f"process {pid} has run for {seconds} s")
