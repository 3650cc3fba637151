# SPDX-License-Identifier: MIT OR Apache-2.0
"""A memory failure at each allocation, on the debug kernel: test_soak.py with this build's own fixtures."""

from __future__ import annotations

import types

import pytest
import test_module_short
from ktrxer_lab.pytest_plugin import in_device
from test_module_short import FAILING, failing, link, wire
from test_soak import KERNEL, LIMIT_S, nothing_was_found, under_the_checkers

__all__ = ["failing", "link", "wire"]
pytestmark = pytest.mark.soak
OTHER = ("net", "net")  # a separate machine, beside that of the other tests

for _name, _test in list(vars(test_module_short).items()):
    if _name.startswith("test_") and isinstance(_test, types.FunctionType):
        globals()[f"test_short__{_name[5:]}"] = under_the_checkers(_test, FAILING, OTHER)


@in_device("pc", kernel=KERNEL, modules=FAILING, timeout=LIMIT_S, layers=OTHER)
def test_the_end_nothing_was_found_where_memory_was_short() -> None:
    nothing_was_found()
