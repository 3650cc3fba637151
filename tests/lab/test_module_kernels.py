# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tests of the module on the other kernels of Debian (test_module_builds.py builds it for all kernels)."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import pytest
import test_module_abuse
import test_module_rx
import test_module_rx_faults
import test_module_rx_recv
import test_module_tx
import test_module_tx_faults
from ktrxer_lab import device
from ktrxer_lab.pytest_plugin import HERE

KERNELS = ("5.10", "6.12", "7.3")
SUBJECTS = (test_module_tx, test_module_tx_faults, test_module_abuse, test_module_rx, test_module_rx_faults, test_module_rx_recv)
AT_LENGTH = ("test_rules_decide_as_a_linear_scan_does_at_length",)  # minutes for the same comparison
DEVICES = ("pc", "phone")


def has_kernel(name: str, kernel: str) -> bool:
    """A device holds no description of the others: there, its own tests were chosen by the host."""
    if HERE is not None:
        return True
    chosen = device.load(name)
    return kernel in (*chosen.kernels, *chosen.more_kernels)


def on(kernel: str, test: types.FunctionType) -> Any:
    """The same test with the mark of another kernel; None if no device of the test has that kernel."""
    marks = {mark.name: mark for mark in getattr(test, "pytestmark", [])}
    devices, wish, _ = marks["in_device"].args
    devices = tuple(name for name in devices if name in DEVICES and has_kernel(name, kernel))
    if not devices:
        return None
    twin = types.FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    twin.__annotations__ = dict(test.__annotations__)
    twin.pytestmark = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]  # type: ignore[attr-defined]
    return pytest.mark.in_device(devices, dataclasses.replace(wish, kernel=kernel), devices)(pytest.mark.slow(twin))


for _kernel in KERNELS:
    for _module in SUBJECTS:
        for _name, _test in list(vars(_module).items()):
            if not _name.startswith("test_") or not isinstance(_test, types.FunctionType) or _name in AT_LENGTH:
                continue
            _twin = on(_kernel, _test)
            if _twin is not None:
                globals()[f"{_name}_{_kernel.replace('.', '_')}"] = _twin
