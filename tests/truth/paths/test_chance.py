# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fifty draws of paths and faults: no figure called valid is false, no cause is named that is not there. `make truth-soak` has thousands.
A false program, planted in the place of ours, is found, and its smallest draw has no fault."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LAB = Path(__file__).resolve().parents[3] / "lab"
DRAWS, PART = 50, 10
PLANTED = {
    "a wrong delay": ("ping", 's/"p50": \\([0-9.]*\\)/"p50": 9\\1/', "false valid", "round trip p50"),
    "a wrong cause": ("ping", 's/"reasons": \\[\\]/"reasons": [{"id": "host_busy", "text": "planted"}]/', "false alarm", "host_busy"),
}


@pytest.fixture(scope="module")
def drawn(truth: Any) -> list[dict[str, Any]]:
    done = truth("chance", "--draws", str(DRAWS), "--json")
    print(f"figure: {done.stderr}")
    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(made) == DRAWS, done.stderr
    return made


@pytest.mark.parametrize("first", range(0, DRAWS, PART))
def test_no_claim_is_false(drawn: list[dict[str, Any]], first: int) -> None:
    for one in drawn[first : first + PART]:
        assert (one["findings"], one["problem"]) == ([], ""), f"ktrxer truth chance --draw {shlex.quote(one['draw'])}"


def test_the_draws_are_measured(drawn: list[dict[str, Any]]) -> None:
    runs = [run for one in drawn for run in one["runs"]]
    assert len(runs) >= 90 and sum(run["figures"] for run in runs) >= 200
    assert sum(run["verdict"] == "valid" for run in runs) >= 0.7 * len(runs)
    assert 25 <= sum(any(run["faulty"] for run in one["runs"]) for one in drawn) <= 47


@pytest.mark.parametrize("name", PLANTED)
def test_a_false_program_is_found(tmp_path: Path, with_program: dict[str, str], name: str) -> None:
    method, script, kind, found = PLANTED[name]
    here = tmp_path / "ktrxer"
    ours = shlex.quote(with_program["KTRXER_BIN"])
    here.write_text(f'#!/bin/sh\n[ "$1" = {method} ] || exec {ours} "$@"\n{ours} "$@" | sed {shlex.quote(script)}\n')
    here.chmod(0o755)
    draw = {"seed": 1, "up": {"delay_ms": 10}, "down": {"delay_ms": 20, "rate_mbps": 5, "queue": "bfifo limit 40000"}}
    words = json.dumps(draw | {"commands": ["ping server -i 10ms -c 50"]})
    done = subprocess.run(
        [sys.executable, "-m", "ktrxer_lab.truth", "chance", "--shrink", "--draw", words],
        env=with_program | {"PATH": f"{tmp_path}:{with_program['PATH']}", "PYTHONPATH": str(LAB)},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"{kind}: ktrxer ping server -i 10ms -c 50: {found}: " in done.stdout
    smallest = next(line for line in done.stdout.splitlines() if line.startswith("smallest: "))
    assert json.loads(smallest.removeprefix("smallest: ")) == {
        "seed": 1, "up": {"delay_ms": 10.0}, "down": {"delay_ms": 10.0}, "commands": ["ping server -i 10ms -c 50"],
    }  # fmt: skip
