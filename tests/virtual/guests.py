# SPDX-License-Identifier: MIT OR Apache-2.0
"""Starts `ktrxer lab` for tests, and finds the processes of its guests."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KTRXER = Path(os.environ.get("KTRXER_BUILD", ROOT / "build")) / "cli" / "ktrxer"  # the command under test
FOR_RUNS = {"PATH": f"{KTRXER.parent}:{os.environ['PATH']}:/usr/sbin:/sbin", "KTRXER_BIN": str(KTRXER)}  # environment of `ktrxer run`


# For programs in a guest: starts `ktrxer run` with the directory `runs`, and returns after the first samples are stored.
BEGIN_RUN = """
import glob, json, os, subprocess, sys, time
def begin_run(command, bytes=2000):
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while not any(os.path.getsize(part) > bytes for part in glob.glob("runs/*.part/latency.arrows")):
        assert child.poll() is None
        time.sleep(0.02)
    return child
"""


@dataclass
class Lab:
    """`ktrxer lab` in its own folder, with its own TMPDIR, below which the guest's kernel runs."""

    place: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder, self.scratch = self.place / "here", self.place / "scratch"
        self.folder.mkdir(parents=True)
        self.scratch.mkdir()

    def write_token(self) -> None:
        (self.folder / "token").write_text(secrets.token_hex(16))
        (self.folder / "token").chmod(0o600)

    def words(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "ktrxer", "lab", *map(str, arguments)]

    def full_environment(self) -> dict[str, str]:
        more = {"PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(self.scratch)}
        return os.environ | more | self.environment

    def __call__(self, *arguments: object, timeout: float = 200) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*arguments),
            cwd=self.folder,
            env=self.full_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def runs_in_virtual_time(self, server: str, job: str, *arguments: object, timeout: float = 200) -> Any:
        """Runs `ktrxer serve` on the host `server` of net.toml, and on its first host the program `job`, after BEGIN_RUN. Its output, read as JSON."""
        self.environment |= FOR_RUNS
        (self.folder / "runs").mkdir()
        (self.folder / "job.py").write_text(BEGIN_RUN + job)
        program = (sys.executable, "-I", "-S", "job.py", *arguments)
        done = self("run", "./net.toml", "--time", "virtual", "--beside", f"{server}=ktrxer serve", "--", *program, timeout=timeout)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(*arguments),
            cwd=self.folder,
            env=self.full_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kernel(self) -> int | None:
        """The process of the guest's kernel. It leads a session that contains all programs of the guest."""
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words, place = (path / "cmdline").read_bytes(), (path / "cwd").readlink()
                leads = _session(path) == int(path.name)
            except (OSError, ValueError):
                continue
            if leads and b"time-travel=inf-cpu" in words and place.is_relative_to(self.scratch):
                return int(path.name)
        return None


def _session(path: Path) -> int:
    return int((path / "stat").read_text().rpartition(")")[2].split()[3])


def members(session: int) -> list[str]:
    """The processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if _session(path) == session and not re.search(r"\) Z ", (path / "stat").read_text()):
                found.append(path.name)
        except (OSError, ValueError):
            continue
    return found


def until(condition: Callable[[], object], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
