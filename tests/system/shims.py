# SPDX-License-Identifier: MIT OR Apache-2.0
"""Libraries that stand in the place of system calls of one process: clock_shim.c, bpf_shim.c, info_shim.c."""

from pathlib import Path

import pytest


def shim(ktrxer: Path, name: str = "clock_shim") -> Path:
    """For LD_PRELOAD of `ktrxer`. Skips where the build has no such library, or where gcc's sanitizer must be loaded first."""
    path = ktrxer.parents[1] / "tests" / "system" / f"{name}.so"
    if not path.exists():
        pytest.skip(f"{name}.so is not built here (musl, 32 bits, or ThreadSanitizer)")
    if b"libasan.so." in ktrxer.read_bytes():
        pytest.skip("gcc's sanitizer is a shared library, and must be loaded first")
    return path
