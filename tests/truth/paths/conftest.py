# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer truth` over paths in virtual time: needs the kernel that `make virtual-kernel` builds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes minutes; run by `make virtual`, not by `make test-virtual`")


ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 600
Truth = Callable[..., subprocess.CompletedProcess[str]]


def environment() -> dict[str, str]:
    program = ROOT / "build" / "cli" / "ktrxer"
    if not program.is_file():
        pytest.fail(f"there is no {program}: `make build`")
    path = os.pathsep.join((str(program.parent), os.environ.get("PATH", os.defpath)))
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "python"), "KTRXER_BIN": str(program)}


@pytest.fixture(scope="session")
def with_program() -> dict[str, str]:
    """Environment variables with the program under test."""
    return environment()


@pytest.fixture(scope="session")
def truth(tmp_path_factory: pytest.TempPathFactory, with_program: dict[str, str]) -> Truth:
    folder = tmp_path_factory.mktemp("here")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ktrxer", "truth", *words]
        return subprocess.run(
            command, cwd=folder, env=with_program, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    return run


@pytest.fixture(scope="session")
def quick(truth: Truth) -> dict[str, Any]:
    """The project's methods over ten paths, in one run."""
    done = truth("--quick", "--json")
    assert done.returncode in (0, 3) and done.stdout, done.stderr
    return {path["name"]: path for path in json.loads(done.stdout)["paths"]}
