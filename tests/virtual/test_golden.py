# SPDX-License-Identifier: MIT OR Apache-2.0
"""All figures of a run's summary repeat exactly, at any date and under any load of this machine: ten tests of the catalogue, over five queues."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from guests import FOR_RUNS, ROOT, Lab

HERE = Path(__file__).parent
FAR = ("-H", "server")
TIMES = ("--for", "2", "--delay", "0.5", "-i", "100ms", "--no-extras", "--json")
WEB = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'tests/system/web.py'))} 80"
RATE = "8mbit"
RUNS = {
    "pfifo limit 50": (("tcp_upload", *FAR), ("udp_flood", *FAR, "--set", "udp_bandwidth=12M")),
    "pfifo limit 200": (("voip-1up", *FAR), ("tcp_2up_delay", *FAR)),
    "codel": (("rtt_fair_var", *FAR, *FAR), ("rrul46", "-H", "server-46")),
    "cake": (("rrul_be", *FAR), ("http-1down", *FAR)),
    "fq_codel": (("rrul", *FAR), ("l4s", *FAR, "--set", "l4s_cc=dctcp")),
}


def figures(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All values of a summary except its name and dates (of the run and of its phases), each with its path."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in ("name", "created", "phases"):
                yield from figures(one, f"{name}.{key}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from figures(one, f"{name}[{number}]")
    else:
        yield name, value


def summaries(folder: Path, queue: str) -> dict[str, dict[str, Any]]:
    """Of each test over this queue, in one guest."""
    runs = RUNS[queue]
    lab = Lab(folder, FOR_RUNS)
    (lab.folder / "words").write_text(json.dumps([("run", *words, *TIMES) for words in runs]))
    beside = f"server={WEB} & exec ktrxer serve"
    done = lab("run", "flent", "--time", "virtual", "--set", f"rate={RATE}", "--set", f"leaf={queue}", "--beside", beside, "--",
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


@pytest.mark.parametrize("queue", RUNS)
def test_runs_repeat(tmp_path: Path, queue: str) -> None:
    """Two guests at the same time, and a third program that takes as much of the processors as it gets."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with ThreadPoolExecutor(2) as pool:
            first, second = (dict(figures(made)) for made in pool.map(lambda name: summaries(tmp_path / name, queue), ("1", "2")))
    finally:
        busy.kill()
        busy.wait()
    for test, *_ in RUNS[queue]:
        assert sum(name.startswith(f".{test}.") for name in first) > 50 and first[f".{test}.throughput[0].mean_mbps"] > 0.1
    assert {name: (value, second.get(name)) for name, value in first.items() if value != second.get(name)} == {}
    assert first.keys() == second.keys()
