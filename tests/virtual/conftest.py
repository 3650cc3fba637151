# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of virtual time: they need its kernel, which `make test-virtual` builds once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from guests import Lab
from ktrxer.lab.pytest_plugin import *
from ktrxer.lab.pytest_plugin import HERE

LIMIT_S = 240  # limit of one test, on a shared machine


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    def late(*_: object) -> None:
        pytest.fail(f"not done after {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT_S if HERE is None else 0)  # in virtual time the guest has the limit
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path / "here", tmp_path / "scratch")
    made.folder.mkdir()
    made.scratch.mkdir()
    return made
