# SPDX-License-Identifier: MIT OR Apache-2.0
"""`@in_device` in pytest: passes, failures, skips and dead devices are reported as such."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_qemu = pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed (make lab-setup)")
TESTS = """
from pathlib import Path
import pytest
from ktrxer_lab.pytest_plugin import in_device

@in_device("phone")
def test_passes():
    assert Path("/proc/version").exists()

@in_device("phone")
def test_fails():
    answer = 41
    assert answer == 42, "the reason"

@in_device("phone")
def test_is_skipped():
    pytest.skip("no moon tonight")

@in_device("phone")
def test_panics():
    Path("/proc/sysrq-trigger").write_text("c")

@in_device("phone")
def test_comes_after_a_panic():
    pass

def test_of_the_host():
    pass
"""

MIXED = """
from pathlib import Path
import pytest
from ktrxer_lab.pytest_plugin import in_device

@pytest.fixture(scope="module", autouse=True)
def of_the_module():
    yield
    Path("ended").touch()

def test_of_the_host():
    pass

@in_device("phone")
def test_of_the_device():
    pass
"""


def run_tests(folder: Path, **environment: str) -> str:
    (folder / "conftest.py").write_text("from ktrxer_lab.pytest_plugin import *\n")
    (folder / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--rootdir=."]
    return subprocess.run(command, cwd=folder, env={**os.environ, "COLUMNS": "200", **environment}, capture_output=True, text=True, timeout=300, check=False).stdout


@needs_qemu
def test_each_test_is_reported_as_what_it_was(tmp_path: Path) -> None:
    message = run_tests(tmp_path)
    for word, name in (("PASSED", "test_passes[phone]"), ("PASSED", "test_comes_after_a_panic[phone]"), ("PASSED", "test_of_the_host")):
        assert f"{word} test_it.py::{name}\n" in message
    assert "FAILED test_it.py::test_fails[phone] - AssertionError: the reason" in message
    assert "no moon tonight" in message
    assert "FAILED test_it.py::test_panics[phone] - phone (6.1, virtual time): its kernel died during the command" in message
    assert "2 failed, 3 passed, 1 skipped in" in message


def test_without_an_emulator_they_are_skipped_and_told_why(tmp_path: Path) -> None:
    message = run_tests(tmp_path, PATH=str(tmp_path))
    assert "qemu-system-arm is not installed; install it with: apt-get install --no-install-recommends qemu-system-arm" in message
    assert "1 passed, 5 skipped in" in message


@pytest.mark.parametrize("workers", ["0", "1"])
def test_the_module_of_the_last_test_before_a_machine_ends_with_it(tmp_path: Path, workers: str) -> None:
    """A file whose first test is of the host and whose last one is of a device, and a file after it: in a worker of pytest-xdist they run in
    this order."""
    (tmp_path / "conftest.py").write_text("from ktrxer_lab.pytest_plugin import *\n")
    (tmp_path / "test_first.py").write_text(MIXED)
    (tmp_path / "test_second.py").write_text("def test_after():\n    pass\n")
    words = ["-n", workers, "--dist", "loadfile"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--rootdir=.", *words]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "COLUMNS": "200", "PATH": str(tmp_path)}, capture_output=True, text=True, timeout=300, check=False
    )
    assert "2 passed, 1 skipped in" in done.stdout, done.stdout
    assert (tmp_path / "ended").exists()
