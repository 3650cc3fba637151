# SPDX-License-Identifier: MIT OR Apache-2.0
"""All figures of a run's summary repeat exactly, at any date and under any load of this machine: ten tests of the catalogue, over three queues."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guests import ROOT, Lab

HERE = Path(__file__).parent
FAR = ("-H", "server")
TIMES = ("-l", "2", "--delay", "0.5", "-i", "100ms", "--no-extras", "--json")
WEB = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'tests/system/web.py'))} 80"
QUEUES = {
    "FIFO": ("8mbit", "pfifo limit 50", (
        ("tcp_upload", *FAR),
        ("voip-1up", *FAR),
        ("udp_flood", *FAR, "--set", "udp_bandwidth=12M"),
    )),
    "CAKE": ("8mbit", "cake", (
        ("rrul_be", *FAR),
        ("tcp_2up_delay", *FAR),
        ("rtt_fair_var", *FAR, *FAR),
        ("http-1down", *FAR),
    )),
    "FQ-CoDel": ("8mbit", "fq_codel", (
        ("rrul", *FAR),
        ("rrul46", "-H", "server-46"),
        ("l4s", *FAR, "--set", "l4s_cc=dctcp"),
    )),
}  # fmt: skip


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


def summaries(folder: Path, queue: str) -> dict[str, dict[str, Any]]:
    """Of each test over this queue, in one guest."""
    rate, leaf, runs = QUEUES[queue]
    program = ROOT / "build" / "cli" / "ktrxer"
    lab = Lab(folder / "here", folder / "scratch", {"PATH": f"{program.parent}:{os.environ['PATH']}", "KTRXER_BIN": str(program)})
    lab.folder.mkdir(parents=True)
    lab.scratch.mkdir()
    (lab.folder / "words").write_text(json.dumps([("run", *words, *TIMES) for words in runs]))
    beside = f"server={WEB} & exec ktrxer serve"
    done = lab("run", "flent", "--time", "virtual", "--set", f"rate={rate}", "--set", f"leaf={leaf}", "--beside", beside, "--",
               sys.executable, HERE / "several.py", "words", timeout=500)
    assert done.returncode == 0, done.stderr
    made = {}
    for number, words in enumerate(runs):
        out = (lab.folder / f"{number}.out").read_text()
        assert out, f"{words}: {(lab.folder / f'{number}.err').read_text()}"
        one = json.loads(out)
        assert one["verdict"] == "valid", (words, one["reasons"])
        made[words[0]] = one["summary"]
    return made


@pytest.mark.parametrize("queue", QUEUES)
def test_runs_repeat(tmp_path: Path, queue: str) -> None:
    first = dict(figures(summaries(tmp_path / "1", queue)))
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        second = dict(figures(summaries(tmp_path / "2", queue)))
    finally:
        for one in others:
            one.kill()
            one.wait()
    for test, *_ in QUEUES[queue][2]:
        assert sum(name.startswith(f".{test}.") for name in first) > 50 and first[f".{test}.throughput[0].mean_mbps"] > 0.1
    assert {name: (value, second.get(name)) for name, value in first.items() if value != second.get(name)} == {}
    assert first.keys() == second.keys()
