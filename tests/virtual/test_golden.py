# SPDX-License-Identifier: MIT OR Apache-2.0
"""All figures of a run's summary repeat exactly, at any date and under any load of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guests import ROOT, Lab

RUNS = {
    "tcp_upload over a FIFO": (("rate=4mbit", "leaf=pfifo limit 50"), "tcp_upload"),
    "rrul_be over CAKE": (("rate=8mbit", "leaf=cake"), "rrul_be"),
    "rrul over FQ-CoDel": (("rate=4mbit", "leaf=fq_codel"), "rrul"),
}


def figures(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All values of a summary except its name and date, each with its path."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in ("name", "created"):
                yield from figures(one, f"{name}.{key}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from figures(one, f"{name}[{number}]")
    else:
        yield name, value


def summary(folder: Path, kind: str) -> dict[str, Any]:
    settings, test = RUNS[kind]
    program = ROOT / "build" / "cli" / "ktrxer"
    environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "KTRXER_BIN": str(program)}
    lab = Lab(folder / "here", folder / "scratch", environment)
    lab.folder.mkdir(parents=True)
    lab.scratch.mkdir()
    words = [word for one in settings for word in ("--set", one)]
    run = ["-m", "ktrxer", "run", test, "-H", "server", "-l", "4", "--delay", "1", "-i", "50ms", "--no-extras", "--json"]
    done = lab("run", "flent", "--time", "virtual", *words, "--beside", "server=ktrxer serve", "--", sys.executable, *run, timeout=500)
    assert done.returncode in (0, 1) and done.stdout, done.stderr  # 1: the verdict, which is among the figures
    made: dict[str, Any] = json.loads(done.stdout)["summary"]
    return made


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_repeats(tmp_path: Path, kind: str) -> None:
    first = dict(figures(summary(tmp_path / "1", kind)))
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        second = dict(figures(summary(tmp_path / "2", kind)))
    finally:
        for one in others:
            one.kill()
            one.wait()
    assert len(first) > 50 and first[".throughput[0].mean_mbps"] > 0.1
    assert {name: (value, second.get(name)) for name, value in first.items() if value != second.get(name)} == {}
    assert first.keys() == second.keys()
