# SPDX-License-Identifier: MIT OR Apache-2.0
"""ktrxer.ko on a debug kernel: `make soak-module` (docs/explanation/module.md). Not part of any other test run.

In virtual time: the module's own tests, and (test_soak_short.py) a memory failure at each allocation of the module.
In real time, on two processors: all operations at once, for KTRXER_TEST_SOAK_S seconds. A control test shows that the checkers detect faults.
"""

from __future__ import annotations

import os
import random
import types
from typing import Any

import pytest
import test_module_rx
import test_module_rx_faults
import test_module_tx
import test_module_tx_faults
from inside import run
from ktrxer_lab.pytest_plugin import in_device
from module_help import MODULE
from soak_chaos import Chaos
from soak_kernel import REPORTS, kernel_log, leaks, reports

KERNEL = "6.12-debug"
LIMIT_S = 3000.0
VIRTUAL = in_device("pc", kernel=KERNEL, modules=MODULE, timeout=LIMIT_S)
REAL = in_device("pc", kernel=KERNEL, time="real", modules=MODULE, timeout=LIMIT_S)
# A separate machine, because lockdep reports only once.
CONTROL = in_device("pc", kernel=KERNEL, modules=("planted",), timeout=LIMIT_S, layers=("net",))
# The module's tests of speed are left out, because checks of every access make the kernel slow.
LEFT_OUT = {
    "test_frames_without_a_link_header": "the phone's",
    "test_rules_decide_as_a_linear_scan_does_at_length": "the same as the short one, for minutes",
    "test_what_a_packet_costs": "a figure",
    "test_frames_leave_as_they_are_at_their_times_and_in_trains": "figures of lateness",
    "test_a_sender_that_never_rests_leaves_others_their_share": "figures of shares",
    "test_probes_20_us_apart_are_late_by_less_than_the_verdicts_limit": "figures of lateness",
    "test_a_ring_that_is_full_of_more_than_is_prepared_goes_on": "figures of lateness",
}
pytestmark = pytest.mark.soak


def under_the_checkers(test: types.FunctionType, modules: tuple[str, ...] = MODULE, layers: tuple[str, ...] = ()) -> Any:
    """The same test on the other kernel; different `layers` make a separate machine, which runs in parallel."""
    twin = types.FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    twin.__annotations__ = dict(test.__annotations__)
    twin.pytestmark = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]  # type: ignore[attr-defined]
    return in_device("pc", kernel=KERNEL, modules=modules, timeout=LIMIT_S, layers=layers)(twin)


for _module in (test_module_tx, test_module_tx_faults, test_module_rx, test_module_rx_faults):
    for _name, _test in list(vars(_module).items()):
        if _name.startswith("test_") and isinstance(_test, types.FunctionType) and _name not in LEFT_OUT:
            globals()[f"test_{_module.__name__[12:]}__{_name[5:]}"] = under_the_checkers(_test)


# ---------------------------------------------------------------------------------------------------------------- all at once


@REAL
def test_everything_at_once(pair: None) -> None:
    seconds = float(os.environ.get("KTRXER_TEST_SOAK_S", "60"))
    run("insmod", "/root/ktrxer.ko")
    chaos = Chaos(random.Random(8))
    for title, percent in (("", 0), (", memory short (5 % of the module's allocations and copies)", 5)):
        counts = chaos.run(seconds / 2, percent)
        print(f"soak: everything at once for {seconds / 2:.0f} s{title}: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
        chaos.still_works()
    run("rmmod", "ktrxer")


# ---------------------------------------------------------------------------------------------------------------- what was found


def nothing_was_found() -> None:
    log = kernel_log()
    found = reports(log)
    lost = leaks()
    print(f"soak: {len(found)} reports in {len(log.splitlines())} lines of the kernel's log, kmemleak: {lost.count('unreferenced object')} leaks")
    assert not found, "\n".join(found[:20]) + "\n--- the log from the first one on ---\n" + log[log.index(found[0]) :][:6000]
    assert not lost, lost[:6000]


@VIRTUAL
def test_the_end_nothing_was_found() -> None:
    nothing_was_found()


@REAL
def test_the_end_nothing_was_found_on_two_processors() -> None:
    nothing_was_found()


PLANTED: dict[str, tuple[str, str]] = {
    "order": ("40", "WARNING: possible circular locking dependency detected"),  # first, because lockdep is off after any other report
    "slab": ("40", "BUG: KASAN: slab-out-of-bounds in planted_slab"),
    "vmalloc": ("5000", "BUG: KASAN: vmalloc-out-of-bounds in planted_vmalloc"),
    "freed": ("40", "BUG: KASAN: slab-use-after-free in planted_freed"),
    "shift": ("40", "UBSAN: shift-out-of-bounds in "),
    "bounds": ("9", "UBSAN: array-index-out-of-bounds in "),
    "sleep": ("40", "BUG: sleeping function called from invalid context"),
    "timer": ("40", "ODEBUG: free active (active state 0) object"),
}


@CONTROL
def test_a_planted_fault_is_found() -> None:
    """The positive control: each checker reports a planted fault, and the parser of the log finds the report."""
    for fault, (number, report) in PLANTED.items():
        before = kernel_log()
        run("insmod", "/root/planted.ko", f"fault={fault}", f"planted_bytes={number}")
        run("rmmod", "planted")
        found = reports(kernel_log()[len(before) :])
        assert any(report in line for line in found), f"{fault}: {found}"
    for _ in range(3):
        run("insmod", "/root/planted.ko", "fault=leak")
        run("rmmod", "planted")
    lost = leaks()
    assert lost.count("unreferenced object") == 3 and 'comm "insmod"' in lost, lost[:3000]
    assert REPORTS.search("kmemleak: 1 new suspected memory leaks (see /sys/kernel/debug/kmemleak)")
    print(f"soak: {len(PLANTED) + 1} planted faults of {len(PLANTED) + 1} were found: {', '.join([*PLANTED, 'leak'])}")
