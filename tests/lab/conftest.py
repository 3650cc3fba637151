# SPDX-License-Identifier: MIT OR Apache-2.0
from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from inside import run
from krx_link import link  # noqa: F401
from ktrxer_lab import pytest_plugin as plugin
from ktrxer_lab.pytest_plugin import (  # noqa: F401
    HERE,
    limited,
    pytest_collection_finish,
    pytest_generate_tests,
    pytest_runtest_protocol,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from module_help import module, wire  # noqa: F401

LIMIT_S = 400  # limit of one test on the host; in a device the boot is limited, and the device's own time is not


def pytest_configure(config: pytest.Config) -> None:
    os.environ["KTRXER_WERROR"] = "y"  # warnings in the kernel modules that the tests build are errors
    plugin.pytest_configure(config)
    config.addinivalue_line("markers", "soak: needs a kernel that is built for it; run by `make soak-module` alone")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Checks of all earlier tests of a device run last in it."""
    plugin.pytest_collection_modifyitems(items)
    items.sort(key=lambda item: item.name.startswith("test_the_end_"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with limited(LIMIT_S if HERE is None else 0):
        yield


@pytest.fixture
def pair() -> Iterator[None]:
    """Two namespaces, `near` at 10.9.0.1 and `far` at 10.9.0.2, joined by a veth pair; each end is called `wire`."""
    names = ("near", "far")
    try:
        for name in names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "name", "wire", "netns", "near", "type", "veth", "peer", "name", "wire", "netns", "far")
        for index, name in enumerate(names, start=1):
            run("ip", "-n", name, "address", "add", f"10.9.0.{index}/24", "dev", "wire")
            run("ip", "-n", name, "link", "set", "dev", "wire", "up")
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@pytest.fixture
def command() -> str:
    path = Path("/usr/bin/ktrxer")
    if not path.exists():
        pytest.skip(f"no build for the {os.environ['KTRXER_LAB_DEVICE']} (make lab-builds)")
    return str(path)
