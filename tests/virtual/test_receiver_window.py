# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flows that the receiver's window limits do not fill the path: a grade of the delay that this load adds would be false.
Reference: the path's rate of 50 Mbit/s, and tcp_rmem of both hosts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from guests import FOR_RUNS, Lab

HERE = Path(__file__).parent
TIMES = ("-H", "server", "-l", "8", "--delay", "2", "-i", "50ms", "--no-extras", "--json", "-D", ".")
WAYS = {"tcp_upload": "up: limited by the server", "tcp_download": "down: limited by this host"}
REASON = ": the window of its socket (tcp_rmem) was full in 1 of 1 flows, and the path had no queue: the path may carry more"


@pytest.mark.parametrize("small", [True, False])
def test_a_receivers_window_is_named_and_gives_no_grade(tmp_path: Path, small: bool) -> None:
    lab = Lab(tmp_path, FOR_RUNS)
    (lab.folder / "words").write_text(json.dumps([("run", name, *TIMES) for name in WAYS]))
    settings = ("--set", "rate=50mbit", "--set", "delay=25ms", "--set", "leaf=pfifo limit 500")
    before = "echo 4096 131072 131072 >/proc/sys/net/ipv4/tcp_rmem; " if small else ""
    done = lab("run", "flent", "--time", "virtual", *settings, "--beside", f"server={before}exec ktrxer serve", "--",
               "sh", "-c", f"{before}exec {sys.executable} {HERE / 'several.py'} words", timeout=400)  # fmt: skip
    assert done.returncode == 0, done.stderr
    for number, limited in enumerate(WAYS.values()):
        made: dict[str, Any] = json.loads((lab.folder / f"{number}.out").read_text())
        rate = made["summary"]["throughput"][0]["mean_mbps"]
        print(rate, made["verdict"], made["reasons"], made["summary"].get("grade"))
        assert (rate < 25) == small, "the reference"
        assert any(limited + REASON in reason for reason in made["reasons"]) == small
        assert (made["verdict"] == "degraded") == small and (made["summary"].get("grade") is None) == small
