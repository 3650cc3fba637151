# SPDX-License-Identifier: MIT OR Apache-2.0
"""The debug kernel (lab/ktrxer_lab/data/kernels/debug.config), from inside: its reports, and memory failures on request."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from inside import run

DEBUG = Path("/sys/kernel/debug")
LEAKS = DEBUG / "kmemleak"
KINDS = ("failslab", "fail_page_alloc", "fail_usercopy")
# The first line of each checker's report. Messages about memory that was refused on request are not faults.
REPORTS = re.compile(
    r"BUG: |UBSAN: |WARNING: |ODEBUG: |INFO: task .* blocked|INFO: trying to register non-static|rcu: INFO|possible (circular|recursive|irq lock)|"
    r"inconsistent lock state|bad unlock balance|held lock freed|lock held when returning|suspicious RCU|sleeping function|scheduling while atomic|"
    r"refcount_t: |ref_tracker: .*@|corruption|Bad page|general protection|Oops|kernel BUG|soft lockup|hung_task|kmemleak: \d+ new suspected|"
    r"unregister_netdevice: waiting|Object .*(overwritten|already free)"
)
LEAK_AGE_S = 6  # younger memory does not count as lost


def reports(log: str) -> list[str]:
    """The reports in a kernel log."""
    return [line for line in log.splitlines() if REPORTS.search(line)]


def kernel_log() -> str:
    """The whole kernel log, also the part before a `dmesg -c`."""
    lines = []
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            try:
                lines.append(os.read(fd, 8192).decode(errors="replace").split(";", 1)[-1].splitlines()[0])
            except BlockingIOError:
                return "\n".join(lines)
            except BrokenPipeError:  # the oldest ones have been overwritten
                lines.append("(some lines are gone)")
    finally:
        os.close(fd)


def debugfs() -> None:
    if not (DEBUG / "kmemleak").exists():
        run("mount", "-t", "debugfs", "debugfs", str(DEBUG))


def leaks() -> str:
    """Leaked memory: objects that two scans found unreachable and unchanged."""
    debugfs()
    time.sleep(LEAK_AGE_S)
    for _ in range(2):
        LEAKS.write_text("scan")
        time.sleep(0.1)
    return LEAKS.read_text()


# -------------------------------------------------------------------------------------------------------- memory that runs short


def module_text() -> tuple[int, int]:
    start = int(Path("/sys/module/ktrxer/sections/.text").read_text(), 16)
    size = next(int(line.split()[1]) for line in Path("/proc/modules").read_text().splitlines() if line.startswith("ktrxer "))
    return start, start + size


def _set(kind: str, **values: object) -> None:
    for name, value in values.items():
        path = DEBUG / kind / name.replace("_", "-")
        if path.exists():
            path.write_text(str(value))


def only_for_the_module() -> None:
    """Requested failures occur only in calls from the module."""
    debugfs()
    start, end = module_text()
    for kind in KINDS:
        _set(kind, probability=0, interval=1, times=-1, space=0, verbose=0, task_filter="N")
        _set(kind, ignore_gfp_wait="N", ignore_gfp_highmem="N", min_order=0, stacktrace_depth=32, require_start=hex(start), require_end=hex(end))


@contextlib.contextmanager
def short_of_memory(percent: int) -> Iterator[None]:
    """Each allocation and each copy by the module fails with this probability."""
    only_for_the_module()
    for kind in KINDS:
        _set(kind, probability=percent)
    try:
        yield
    finally:
        for kind in KINDS:
            _set(kind, probability=0)
