# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fixtures for tests of ktrxer.ko: loaded for one test, unloaded after it, without a warning of the kernel."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from inside import run
from ktx_raw import Ear

MODULE = ("../../module",)
COMPLAINTS = re.compile(r"BUG|WARNING|Oops|Call Trace|refcount|hung_task|stall|unregister_netdevice|leak|scheduling while|panic|sleeping function")


def kernel_warnings() -> list[str]:
    return [line for line in run("dmesg", "-c").splitlines() if COMPLAINTS.search(line)]


def close_all() -> None:
    """Close the files that a failed test has left open."""
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{entry}") == "/dev/ktx":
                os.close(int(entry))


def unload(limit_s: float = 2.0) -> None:
    """Wait until the kernel has closed the files of a killed process."""
    end = time.monotonic() + limit_s
    while subprocess.run(["rmmod", "ktrxer"], capture_output=True, check=False).returncode:
        assert time.monotonic() < end, "ktrxer.ko cannot be unloaded: " + run("lsmod")
        time.sleep(0.01)


@pytest.fixture
def module() -> Iterator[None]:
    run("dmesg", "-c")
    if not Path("/dev/ktx").exists():
        run("insmod", "/root/ktrxer.ko")
    try:
        yield
    finally:
        close_all()
        unload()
        assert kernel_warnings() == []
    assert not Path("/dev/ktx").exists()


@contextlib.contextmanager
def two_ends() -> Iterator[None]:
    """A veth pair, `wire0` and `wire1`, without other traffic. Tests may take it down or rename it."""
    run("ip", "link", "add", "name", "wire0", "type", "veth", "peer", "name", "wire1")
    try:
        for name in ("wire0", "wire1"):
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
            run("ip", "link", "set", name, "up")
        yield
    finally:
        for name in ("wire0", "wire1", "other"):
            subprocess.run(["ip", "link", "del", name], capture_output=True, check=False)


@pytest.fixture
def wire(module: None) -> Iterator[Ear]:
    """Two ends; what arrives at wire1."""
    with two_ends():
        ear = Ear("wire1")
        yield ear
        ear.close()
