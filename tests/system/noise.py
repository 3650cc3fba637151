# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests on a machine with other load: noise in figures and in verdicts."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")

TRIES = 10
LIMIT_S = 240  # of one test

# Prints the time by which each sleep of a program ended late, in ns, when its standard input ends.
_SLEEPER = """
import json, select, sys, time
at, late = time.monotonic_ns(), []
while not select.select([0], [], [], 0)[0]:
    at += int(sys.argv[1])
    time.sleep(max(0, at - time.monotonic_ns()) / 1e9)
    late.append(time.monotonic_ns() - at)
print(json.dumps(late))
"""


@contextlib.contextmanager
def plain_sleeps(interval_ns: int) -> Iterator[list[int]]:
    """The reference for late probes: the time by which each sleep of another program ended late, in the same seconds on the same machine.
    Threads without a processor, and a hypervisor that stops the machine, delay both. The list is filled when the block ends."""
    late = list[int]()
    with subprocess.Popen([sys.executable, "-c", _SLEEPER, str(interval_ns)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield late
        finally:
            late += json.loads(child.communicate("\n")[0])


def least(measure: Callable[[], float], enough: float) -> float:
    """The smallest result of `measure` in at most TRIES tries, until one is small enough. Other load only increases lateness and
    differences, so a fault of ktrxer shows in each try."""
    best = measure()
    for _ in range(TRIES - 1):
        if best <= enough:
            break
        best = min(best, measure())
    return best


def ahead(measure: Callable[[int], Result], too_late: Callable[[Result], bool]) -> Result:
    """`measure` begins something so many nanoseconds ahead. A busy machine that is not ready by then gets more time."""
    for lead_ms in (700, 3000):
        made = measure(lead_ms * 1_000_000)
        if not too_late(made):
            return made
    return measure(10_000 * 1_000_000)


def before_others() -> list[str]:
    """Words before a command which other work of this machine must not delay, also that of real_time_work.py; none if SCHED_FIFO is not permitted."""
    words = ["chrt", "-f", "60"]
    return words if subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0 else []


# Causes of reasons: a processor which other work took.
BUSY = ("host_cpu", "far_cpu")
BY_WORK = ("all_skipped",)
# Bounds that are too wide, and those of their causes that are of this machine, not of the path or of the clocks.
WIDE = ("bound_wide", "bound_unknown")
WIDE_BY_WORK = ("send_time", "receive_time", "left_out", "skipped", "receive_buffer", "dwell", "coverage")


def wide_by_work(one: dict[str, Any], result: dict[str, Any]) -> bool:
    """The bounds that are too wide have one reason each, in the same order."""
    told = [reason for reason in result["reasons"] if reason["id"] in WIDE]
    wide = [bound["cause"] for bound in result.get("bounds", []) if bound["bound"] is None or bound["bound"] > bound["tolerance"]]
    causes = [wide[told.index(one)]] if len(told) == len(wide) else wide
    return all(cause in WIDE_BY_WORK for cause in causes)


def by_work(one: dict[str, Any], result: dict[str, Any]) -> bool:
    """Whether other work of this machine may be behind a reason of this result."""
    return one["cause"] in BUSY or one["id"] in BY_WORK or (one["id"] in WIDE and wide_by_work(one, result))


def reasons(result: dict[str, Any], *more: str) -> list[str]:
    """The sentences of its reasons without those that other work of this machine causes. `more`: words of further ones."""
    told = [one["text"] for one in result["reasons"] if not by_work(one, result)]
    return [text for text in told if not any(words in text for words in more)]


def busy(result: dict[str, Any]) -> bool:
    """Whether its verdict names a processor which other work took."""
    return len(reasons(result)) != len(result["reasons"])


def late(result: dict[str, Any]) -> bool:
    """Whether the verdict says that probes were not sent, because the machine was busy."""
    return any(one["id"] in BY_WORK or (one["id"] in WIDE and wide_by_work(one, result)) for one in result["reasons"])


def degraded(result: dict[str, Any]) -> dict[str, Any]:
    """Check that the fault of the test degrades the verdict. Late probes of a busy machine may be reported, too."""
    assert result["verdict"] == "degraded" or (late(result) and result["verdict"] == "invalid"), (result["verdict"], result["reasons"])
    return result
