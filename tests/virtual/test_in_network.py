# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests with the mark `in_network` run in a topology; reports of tests that fail, skip or crash the guest."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from guests import ROOT
from ktrxer_lab.pytest_plugin import HERE, in_network

INNER = """
import os
import time
import pytest
from ktrxer_lab.pytest_plugin import in_network

@in_network("flent")
def test_passes():
    time.sleep(3600)

@in_network("flent")
def test_fails():
    assert 1 == 2, "by intent"

@in_network("flent")
def test_skips():
    pytest.skip("by intent")

@in_network("nowhere")
def test_of_no_topology():
    pass
"""


@in_network("flent")
def test_virtual_time_is_the_clock_of_the_test(tmp_path: Path) -> None:
    begun = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(100)
        s.bind(("0.0.0.0", 0))
        with pytest.raises(TimeoutError):
            s.recv(1)
    assert 100 <= time.monotonic() - begun < 100.2, "the kernel may let a poll of 100 s wait for 0.1 s more"
    (tmp_path / "file").write_text("can be written")


@in_network("flent", settings={"delay": "100ms"}, node="server")
def test_the_node_and_the_settings_are_those_of_the_mark() -> None:
    done = subprocess.run(["ping", "-q", "-c", "3", "client"], capture_output=True, text=True, check=True)
    assert "= 200.0" in done.stdout and HERE is not None


def test_reports_come_back(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from ktrxer_lab.pytest_plugin import *\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_inner.py").write_text(INNER)
    words = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "test_inner.py"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert "2 failed, 1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "AssertionError: by intent" in done.stdout
    assert "no topology 'nowhere'" in done.stdout, "what the lab says is the reason"
