# SPDX-License-Identifier: MIT OR Apache-2.0
"""The project's methods over ten paths with known properties; `make truth` runs all paths."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from ktrxer_lab.truth import table

QUICK = [path.name for path in table.paths() if path.quick]
OF_PATHS = {
    "own-queue": {"where", "loaded delay up p50", "loaded round trip mean", "TCP up"},
    "queue-fq_codel": {"where", "loaded delay up p50", "loaded delay down p50"},
    "rate-5-5": {"TCP up", "TCP down", "UDP up", "UDP down"},
    "loss-2-0": {"loss up", "loss down", "loss round trip"},
    "standing-up": {"round trip p50"},
}  # figures that must exist


@pytest.mark.parametrize("name", QUICK)
def test_the_path_is_as_constructed(quick: dict[str, Any], name: str) -> None:
    shown = quick[name]["checks"]
    assert len(shown) >= 3 and [row for row in shown if not row["good"]] == []


@pytest.mark.parametrize("name", QUICK)
def test_our_figures_are_true(quick: dict[str, Any], name: str) -> None:
    path = quick[name]
    assert path["problems"] == []
    assert OF_PATHS.get(name, {"round trip p50"}) <= {row["figure"] for row in path["rows"]}
    assert [row for row in path["rows"] if not row["good"]] == []


def test_our_intervals_hold_the_truth(quick: dict[str, Any]) -> None:
    held = [row["holds"] for path in quick.values() for row in path["rows"] if row["holds"] is not None]
    print(f"figure: {sum(held)} of {len(held)} intervals hold the truth")
    assert len(held) > 50 and sum(held) >= 0.92 * len(held)


@pytest.mark.parametrize(
    ("path", "figures", "command"),
    [
        ("delay-5-45", 4, "ping -q -c 100 -i 0.02 server"),
        ("delay-5-45", 4, "fping -q -c 20 -p 100 -t 500 server"),
        ("delay-5-45", 9, "irtt client -d 1s -i 10ms -q server"),
        ("loss-2-0", 9, "irtt client -d 5s -i 10ms -q server"),
        ("rate-10-10", 1, "iperf3 -J -t 3 -c server"),
    ],
)
def test_another_tool(truth: Any, path: str, figures: int, command: str) -> None:
    words = command.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]}: make setup")
    done = truth("--path", path, "--no-check", "--", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{figures} of {figures} figures are true" in done.stdout


def test_a_tool_that_is_false_is_named(truth: Any) -> None:
    says = "echo '100 packets transmitted, 90 received'; echo 'rtt min/avg/max/mdev = 40/50/60/1 ms'"
    done = truth("--path", "delay-5-45", "--no-check", "--json", "--adapter", "ping", "--", "sh", "-c", says)
    assert done.returncode == 3
    (path,) = json.loads(done.stdout)["paths"]
    assert {row["figure"]: row["good"] for row in path["rows"]} == {
        "loss round trip": False, "round trip min": False, "round trip mean": True, "round trip max": False,
    }  # fmt: skip


def test_a_tool_that_fails_is_named(truth: Any) -> None:
    done = truth("--path", "delay-5-45", "--no-check", "--adapter", "irtt", "--beside", ":", "--", "no-such-tool", "server")
    assert done.returncode == 3
    assert "no figures: delay-5-45: no-such-tool server: no line" in done.stdout and "No such file or directory" in done.stdout
