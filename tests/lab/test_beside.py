# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rules beside another XDP program, on a kernel that takes libxdp's dispatcher: the scenario of tests/system/beside.sh in a device."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = ROOT / "tests" / "system"
BUILD = Path(os.environ.get("KTRXER_BUILD", ROOT / "build"))
DISPATCHER = Path("/usr/lib/x86_64-linux-gnu/bpf/xdp-dispatcher.o")
INSIDE = "/opt/beside"


def libraries(*programs: Path) -> set[Path]:
    """What they want beside the C library, which the device has."""
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=True).stdout
    return {Path(path) for path in re.findall(r"=> (/\S+)", told) if not re.search(r"/(libc|libm|ld-linux)[.-]", path)}


def test_beside_another_program(tmp_path: Path) -> None:
    programs = [BUILD / "cli" / "ktrxer", BUILD / "tests" / "system" / "xdp_neighbour"]
    if platform.machine() != "x86_64":
        pytest.skip("this machine's own programs are for another processor than the device pc has")
    if not all(program.exists() for program in programs) or not DISPATCHER.exists():
        pytest.skip("built without libxdp (libxdp-dev), or without BPF programs")
    for file in (*programs, *libraries(*programs), DISPATCHER, SYSTEM / "beside.sh"):
        shutil.copy(file, tmp_path)
    done = subprocess.run([sys.executable, "-m", "ktrxer", "lab", "vm", "--timeout", "150", "--put", f"{tmp_path}:{INSIDE}",
                           "--env", f"LD_LIBRARY_PATH={INSIDE}", "--env", f"LIBXDP_OBJECT_PATH={INSIDE}", "--",
                           "sh", f"{INSIDE}/beside.sh", f"{INSIDE}/ktrxer", f"{INSIDE}/xdp_neighbour", "/tmp/beside"],
                          capture_output=True, text=True, timeout=180, check=False)
    spec = importlib.util.spec_from_file_location("beside", SYSTEM / "beside.py")
    assert spec and spec.loader
    beside = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(beside)
    assert done.returncode == 0, done.stdout + done.stderr
    said = beside.read(done.stdout)
    assert "refused" not in said, said
    beside.judge(said)
