# SPDX-License-Identifier: MIT OR Apache-2.0
"""The module builds on every kernel of Debian without a warning, and is small."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from ktrxer_lab import device, kbuild, vm
from ktrxer_lab.errors import BuildFailure, LabError

SOURCE = Path(__file__).resolve().parents[2] / "module"
MOST_BYTES = 160_000
KERNELS = [(name, kernel) for name in ("pc", "phone", "router") for kernel in (*device.load(name).kernels, *device.load(name).more_kernels)]


def test_the_interface_is_described_as_kernel_doc() -> None:
    """Each struct and enumeration of <linux/ktrxer.h>, with each member, by the kernel's own tool."""
    chosen = device.load("pc")
    try:
        folder = kbuild.headers(chosen, "6.1", vm.quiet)
    except LabError as reason:
        pytest.skip(f"no headers of 6.1 for the pc: {reason}")
    (tool,) = (tool for parent in folder.parents[:3] for tool in parent.glob("usr/lib/linux-kbuild-*/scripts/kernel-doc"))
    header = SOURCE / "uapi/linux/ktrxer.h"
    done = subprocess.run(["perl", tool, "-v", "-none", header], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert [line for line in lines if "info:" not in line] == []
    declared = re.findall(r"^(?:struct|enum) ktrxer_\w+ {$", header.read_text(), re.MULTILINE)
    assert len(lines) == len(declared) > 20


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kernel"), [(name, kernel) for name, kernel in KERNELS if not kernel.endswith("-debug")])
def test_it_builds_without_a_warning_and_is_small(name: str, kernel: str, tmp_path: Path) -> None:
    chosen = device.load(name)
    try:
        kbuild.headers(chosen, kernel, vm.quiet)
    except LabError as reason:
        pytest.skip(f"no headers of {kernel} for the {name}: {reason}")
    try:
        (built,) = kbuild.build(chosen, kernel, SOURCE, tmp_path, vm.quiet)  # with -Werror: conftest.py
    except BuildFailure as failure:
        pytest.fail(f"{failure}\n{failure.log}")
    print(f"{name} {kernel}: {built.stat().st_size} bytes")
    assert built.stat().st_size <= MOST_BYTES
