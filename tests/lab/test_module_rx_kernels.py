# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tests of test_module_rx*.py on the other kernels."""

from __future__ import annotations

import types
from typing import Any

import pytest
import test_module_rx
import test_module_rx_faults
import test_module_rx_recv
from krx_link import MODULES
from ktrxer.lab.pytest_plugin import in_device
from test_module_rx_recv import command

__all__ = ["command"]


def on(kernel: str, test: types.FunctionType) -> Any:
    """The same test, with another mark."""
    twin = types.FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    twin.__annotations__ = dict(test.__annotations__)
    twin.pytestmark = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]  # type: ignore[attr-defined]
    return in_device("pc", "phone", kernel=kernel, modules=MODULES, slow=("pc", "phone"))(pytest.mark.slow(twin))


for _kernel in ("5.10", "6.12"):
    for _name, _test in [pair for module in (test_module_rx, test_module_rx_faults, test_module_rx_recv) for pair in vars(module).items()]:
        if _name.startswith("test_") and isinstance(_test, types.FunctionType):
            globals()[f"{_name}_{_kernel.replace('.', '_')}"] = on(_kernel, _test)
