# SPDX-License-Identifier: MIT OR Apache-2.0
"""Three kinds of runs repeat to 0.5 % in all figures of their summaries, whatever else this machine does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from guests import ROOT, Lab

pytestmark = pytest.mark.slow

SHARE = 0.005
LEAST = {"ms": 0.002, "us": 1.0, "": 1e-9}  # of times: some readings of the clock, 256 ns each; the units of the names and of series
# Nothing random is on these paths: what a kernel draws for a packet's loss or for a queue's hash is not the same in two runs.
RUNS = {
    "tcp_upload over a FIFO": (("rate=4mbit", "leaf=pfifo limit 50"), "tcp_upload"),
    "tcp_bidirectional over CoDel": (("rate=4mbit", "leaf=codel"), "tcp_bidirectional"),
    "rrul_be over a FIFO": (("rate=8mbit", "leaf=pfifo limit 100"), "rrul_be"),
}


def figures(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All of a summary but its name and its date, each with the way to it."""
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


def unlike(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    ours, theirs = dict(figures(first)), dict(figures(second))
    assert ours.keys() == theirs.keys()
    found = []
    for name, value in ours.items():
        other = theirs[name]
        if isinstance(value, float) and isinstance(other, float):
            unit = "us" if "_us" in name else "" if "bps" in name or "rpm" in name else "ms"
            good = value == pytest.approx(other, rel=SHARE, abs=LEAST[unit])
        elif isinstance(value, int) and not isinstance(value, bool) and isinstance(other, int):
            good = abs(value - other) <= SHARE * max(value, other)
        else:
            good = value == other
        if not good:
            found.append(f"{name}: {value} and {other}")
    return found


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_repeats(tmp_path: Path, kind: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda number: summary(tmp_path / number, kind), ("1", "2"))
    assert len(list(figures(first))) > 50 and first["throughput"][0]["mean_mbps"] > 0.1
    print("\n".join(first["reasons"]))
    assert unlike(first, second) == []
