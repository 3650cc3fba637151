# SPDX-License-Identifier: MIT OR Apache-2.0
"""The distribution alone: no experiments, no packages but Python's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]
WITH_PYTEST = {"ktrxer_lab.guest", "ktrxer_lab.pytest_plugin"}
PROGRAMS = {"ktrxer_lab.truth.guest", "ktrxer_lab.truth.arrivals"}  # guest.py finds its neighbours by the folder that it starts in
CODE = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
print(sorted(name for name in sys.modules if name.partition(".")[0] == "ktrxer"))
"""


def alone(*words: str) -> subprocess.CompletedProcess[str]:
    """Without the module site: no folder of installed packages is on the search path."""
    return subprocess.run([sys.executable, "-S", *words], capture_output=True, text=True, check=False, cwd="/",
                          env={"PATH": os.environ["PATH"], "PYTHONPATH": str(LAB), "HOME": "/nonexistent"})


def test_each_module_imports_without_the_experiments() -> None:
    files = sorted((LAB / "ktrxer_lab").rglob("*.py"))
    names = {".".join(path.relative_to(LAB).with_suffix("").parts).removesuffix(".__init__") for path in files}
    done = alone("-c", CODE, str(LAB), *sorted(names - WITH_PYTEST - PROGRAMS))
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_its_commands_run_without_the_experiments() -> None:
    done = alone("-m", "ktrxer_lab", "topology", "access", "--describe")
    assert done.returncode == 0 and "modem" in done.stdout, done.stderr
    done = alone("-m", "ktrxer_lab.truth", "--list")
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
