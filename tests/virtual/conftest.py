# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of virtual time: they need its kernel, which `make test-virtual` builds once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guests import Lab
from ktrxer_lab.pytest_plugin import *
from ktrxer_lab.pytest_plugin import HERE, limited

LIMIT_S = 240  # limit of one test, on a shared machine


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with limited(LIMIT_S if HERE is None else 0):  # in virtual time the guest has the limit
        yield


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
